/* SPDX-License-Identifier: Apache-2.0 */
/* What the exporter writes with: label values, seconds, and an end that is kept. */
#include "text.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

static struct text text;

static void set_up(void)
{
        text_init(&text, 1000);
}

static void tear_down(void)
{
        text_deinit(&text);
}

TestSuite(exporter_text, .init = set_up, .fini = tear_down);

static const char *label(const char *value, size_t bytes)
{
        text_clear(&text);
        text_add(&text, "");
        text_add_label_value(&text, value, bytes);
        return text.bytes;
}

Test(exporter_text, a_label_value_cannot_leave_its_quotes)
{
        cr_expect_str_eq(label("plain-1.0", 64), "plain-1.0");
        cr_expect_str_eq(label("a\"} 1\nup{b=\"", 64), "a\\\"} 1\\nup{b=\\\"");
        cr_expect_str_eq(label("back\\slash\\", 64), "back\\\\slash\\\\");
        cr_expect_str_eq(label("cut off", 3), "cut");
        cr_expect_str_eq(label("", 64), "");
        cr_expect_str_eq(label("\r\t\x01", 64), "\r\t\x01", "these are allowed as they are");
}

Test(exporter_text, what_is_no_utf_8_becomes_the_replacement_character)
{
#define R "\xef\xbf\xbd"
        cr_expect_str_eq(label("gr\xc3\xbc\xc3\x9f"
                               "e \xe2\x82\xac \xf0\x9f\x90\xa6",
                                 64),
                "gr\xc3\xbc\xc3\x9f"
                "e \xe2\x82\xac \xf0\x9f\x90\xa6");
        cr_expect_str_eq(label("a\xff"
                               "b\x80",
                                 64),
                "a" R "b" R);
        cr_expect_str_eq(label("\xc0\xaf", 64), R R, "an overlong form");
        cr_expect_str_eq(label("\xe0\x80\xaf", 64), R R R);
        cr_expect_str_eq(label("\xed\xa0\x80", 64), R R R, "half of a surrogate pair");
        cr_expect_str_eq(label("\xf4\x90\x80\x80", 64), R R R R, "beyond the last character");
        cr_expect_str_eq(label("\xe2\x82", 64), R R, "the end is missing");
        cr_expect_str_eq(label("\xe2\x82\xac", 2), R R, "the end is cut off");
}

Test(exporter_text, seconds_have_all_of_their_nanoseconds)
{
        const struct {
                uint64_t ns;
                const char *seconds;
        } rows[] = {{0, "0"}, {1, "0.000000001"}, {1500, "0.0000015"}, {1000000000, "1"}, {10000000000, "10"},
                {1795415820169515256, "1795415820.169515256"}, {UINT64_MAX, "18446744073.709551615"}};

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                text_clear(&text);
                text_add_seconds(&text, rows[i].ns);
                cr_expect_str_eq(text.bytes, rows[i].seconds);
        }
}

Test(exporter_text, what_passes_the_limit_is_left_out_and_remembered)
{
        text_init(&text, 10);
        text_add(&text, "12345");
        cr_expect_not(text.failed);
        text_add(&text, "123456");
        cr_expect(text.failed);
        cr_expect_str_eq(text.bytes, "12345");
        text_add(&text, "1");
        cr_expect_str_eq(text.bytes, "12345", "nothing comes behind what is missing");
        text_clear(&text);
        text_add(&text, "1234567890");
        cr_expect_not(text.failed);
        cr_expect_str_eq(text.bytes, "1234567890");
}
