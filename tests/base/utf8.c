/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a name is shown as it is.
 */
#include "base/utf8.h"

#include <criterion/criterion.h>
#include <string.h>

#define EURO  "\xe2\x82\xac"
#define SMILE "\xf0\x9f\x98\x80"

Test(utf8, characters_of_every_length_are_shown_as_they_are)
{
        static const char *const good[] = {"", "image",
                "gr\xc3\xb6\xc3\x9f"
                "e",
                EURO, SMILE, "\xc2\xa0", "\xef\xbf\xbd", "\xf4\x8f\xbf\xbf"};
        char text[16];

        for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
                cr_expect_eq(sl_utf8_printable(good[i]), strlen(good[i]), "%zu", i);
                cr_expect_str_eq(sl_utf8_clean(good[i], text, sizeof(text)), good[i]);
        }
}

Test(utf8, what_is_no_character_or_steers_a_terminal_is_a_question_mark)
{
        static const char *const bad[][2] = {{"im\xffg\x1b", "im?g?"}, {"a\nb", "a?b"}, {"\x7f", "?"},
                {"\xc2\x9b"
                 "2J",
                        "??2J"},
                {"\xc0\xaf", "??"}, {"\xe0\x80\xaf", "???"}, {"\xed\xa0\x80", "???"}, {"\xf4\x90\x80\x80", "????"},
                {"\xe2\x82", "??"}};
        char text[16];

        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                cr_expect_eq(sl_utf8_printable(bad[i][0]), strcspn(bad[i][1], "?"), "%zu", i);
                cr_expect_str_eq(sl_utf8_clean(bad[i][0], text, sizeof(text)), bad[i][1]);
        }
}

Test(utf8, a_cut_is_between_characters)
{
        char text[16];

        cr_expect_str_eq(sl_utf8_clean("a" EURO EURO, text, 5), "a" EURO);
        cr_expect_str_eq(sl_utf8_clean("a" EURO EURO, text, 7), "a" EURO);
        cr_expect_str_eq(sl_utf8_clean("a" EURO EURO, text, 8), "a" EURO EURO);
        cr_expect_str_eq(sl_utf8_clean("abc", text, 1), "");
}

Test(utf8, what_does_not_fit_keeps_its_beginning_and_its_end)
{
        char text[64], name[1025];

        cr_expect_str_eq(sl_utf8_fit("abcdef", text, 7), "abcdef");
        cr_expect_str_eq(sl_utf8_fit("abcdefgh", text, 7), "abcdef", "no room for more than a beginning");
        memset(name, 'n', 1024);
        name[1023] = 'z';
        name[1024] = 0;
        cr_expect_str_eq(sl_utf8_fit(name, text, 22), "nnnnnnnnnnnn...nnnnnz");
        cr_expect_str_eq(sl_utf8_fit(name, name, 22), "nnnnnnnnnnnn...nnnnnz", "in its own place");
}

/* At every place of the cut, whatever a character's length. */
Test(utf8, no_cut_is_inside_of_a_character)
{
        static const char *const characters[] = {"a", "\xc3\xb6", EURO, SMILE};
        char name[512], text[512];

        for (size_t c = 0; c < 4; c++) {
                name[0] = 0;
                for (int i = 0; i < 100; i++)
                        strcat(name, characters[c]);
                for (size_t bytes = 1; bytes < 500; bytes++) {
                        sl_utf8_fit(name, text, bytes);
                        cr_assert_lt(strlen(text), bytes);
                        cr_assert_eq(sl_utf8_printable(text), strlen(text), "%s", text);
                        cr_assert(strlen(text) + 8 > bytes || !strcmp(text, name), "no more is cut than has to be: %zu", bytes);
                        cr_assert_eq(sl_utf8_head(name, bytes) % strlen(characters[c]), 0);
                        cr_assert(sl_utf8_head(name, bytes) + 4 > bytes || sl_utf8_head(name, bytes) == strlen(name));
                }
        }
        cr_expect_eq(sl_utf8_head("\x80\x80\x80\x80\x80\x80\x80\x80", 6), 6, "bytes that are no characters are cut anywhere");
}
