/* SPDX-License-Identifier: Apache-2.0 */
#include "quantity.h"

#include <criterion/criterion.h>

static char text[QUANTITY_BYTES];

Test(quantity, counts_have_three_digits_and_a_power_of_1000)
{
        cr_expect_str_eq(quantity_count(0, text), "0");
        cr_expect_str_eq(quantity_count(7, text), "7");
        cr_expect_str_eq(quantity_count(0.25, text), "0.25");
        cr_expect_str_eq(quantity_count(12.34, text), "12.3");
        cr_expect_str_eq(quantity_count(999, text), "999");
        cr_expect_str_eq(quantity_count(999.9, text), "1.00k");
        cr_expect_str_eq(quantity_count(1234, text), "1.23k");
        cr_expect_str_eq(quantity_count(45600000, text), "45.6M");
        cr_expect_str_eq(quantity_count(1e15, text), "1000T");
}

Test(quantity, times_have_the_unit_that_fits)
{
        cr_expect_str_eq(quantity_time(0, text), "0");
        cr_expect_str_eq(quantity_time(870, text), "870ns");
        cr_expect_str_eq(quantity_time(1234, text), "1.23us");
        cr_expect_str_eq(quantity_time(45600000, text), "45.6ms");
        cr_expect_str_eq(quantity_time(7890000000, text), "7.89s");
        cr_expect_str_eq(quantity_time(125000000000, text), "2m05s");
}

Test(quantity, ages_have_two_units)
{
        cr_expect_str_eq(quantity_age(45 * 1000000000ull, text), "45s");
        cr_expect_str_eq(quantity_age(11045 * 1000000000ull, text), "3h04m");
        cr_expect_str_eq(quantity_age(453600 * 1000000000ull, text), "5d06h");
}

Test(quantity, bytes_have_powers_of_1024)
{
        cr_expect_str_eq(quantity_bytes(0, text), "0B");
        cr_expect_str_eq(quantity_bytes(512, text), "512B");
        cr_expect_str_eq(quantity_bytes(1536, text), "1.50K");
        cr_expect_str_eq(quantity_bytes(64u << 20, text), "64.0M");
        cr_expect_str_eq(quantity_share(0.456, text), "46%");
}

Test(quantity, nothing_that_a_terminal_acts_on_comes_out)
{
        char plain[16];

        cr_expect_str_eq(quantity_text("a\x1b[2Jb\xff\n", plain, sizeof(plain)), "a?[2Jb??");
        cr_expect_str_eq(quantity_text("a text that is too long", plain, sizeof(plain)), "a text t...long");
}
