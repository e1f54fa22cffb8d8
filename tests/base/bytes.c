/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include <criterion/criterion.h>

Test(bytes, a_range_is_inside_only_without_overflow)
{
        cr_expect(sl_range_inside(0, 0, 0));
        cr_expect(sl_range_inside(0, 10, 10));
        cr_expect(sl_range_inside(10, 0, 10));
        cr_expect(sl_range_inside(3, 7, 10));
        cr_expect_not(sl_range_inside(3, 8, 10));
        cr_expect_not(sl_range_inside(11, 0, 10));
        cr_expect_not(sl_range_inside(UINT64_MAX, 2, 10));
        cr_expect_not(sl_range_inside(2, UINT64_MAX, 10));
        cr_expect_not(sl_range_inside(UINT64_MAX - 3, UINT64_MAX - 3, UINT64_MAX));
        cr_expect(sl_range_inside(0, UINT64_MAX, UINT64_MAX));
}

Test(bytes, alignment_goes_up_to_the_next_multiple)
{
        cr_expect_eq(sl_align_up(0, 64), 0);
        cr_expect_eq(sl_align_up(1, 64), 64);
        cr_expect_eq(sl_align_up(64, 64), 64);
        cr_expect_eq(sl_align_up(65, 4096), 4096);
}

Test(bytes, powers_of_two_are_known)
{
        cr_expect_not(sl_is_power_of_two(0));
        for (int i = 0; i < 64; i++)
                cr_expect(sl_is_power_of_two(1ull << i));
        cr_expect_not(sl_is_power_of_two(3));
        cr_expect_not(sl_is_power_of_two(UINT64_MAX));
}

Test(bytes, sums_and_products_that_overflow_are_noticed)
{
        uint64_t result;

        cr_expect_not(sl_mul_overflows(1ull << 32, (1ull << 32) - 1, &result));
        cr_expect(sl_mul_overflows(1ull << 32, 1ull << 32, &result));
        cr_expect_not(sl_add_overflows(UINT64_MAX, 0, &result));
        cr_expect(sl_add_overflows(UINT64_MAX, 1, &result));
}
