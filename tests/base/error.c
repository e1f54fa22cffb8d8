/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

Test(error, a_failing_function_ends_with_the_text_and_the_negative_code)
{
        struct sl_error error;

        cr_expect_eq(sl_error_set(&error, EINVAL, "queue \"%s\": %d, at most %d", "a", 5, 4), -EINVAL);
        cr_expect_str_eq(error.text, "queue \"a\": 5, at most 4");
}

Test(error, nobody_has_to_want_the_text)
{
        cr_expect_eq(sl_error_set(NULL, ENOMEM, "%d", 1), -ENOMEM);
        cr_expect_eq(sl_error_prefix(NULL, -ENOMEM, "%d", 1), -ENOMEM);
}

Test(error, a_prefix_names_the_outer_thing_and_keeps_the_result)
{
        struct sl_error error;

        sl_error_set(&error, EIO, "inner");
        cr_expect_eq(sl_error_prefix(&error, -EIO, "model \"%s\"", "m"), -EIO);
        cr_expect_str_eq(error.text, "model \"m\": inner");
}

Test(error, what_does_not_fit_is_cut_and_always_ends)
{
        char prefix[SL_ERROR_TEXT_BYTES + 10];
        struct sl_error error;

        for (size_t length = SL_ERROR_TEXT_BYTES - 5; length < sizeof(prefix); length++) {
                memset(prefix, 'p', length);
                prefix[length] = '\0';
                sl_error_set(&error, EIO, "inner");
                sl_error_prefix(&error, -EIO, "%s", prefix);
                cr_expect_eq(strnlen(error.text, sizeof(error.text)), SL_ERROR_TEXT_BYTES - 1);
                sl_error_set(&error, EIO, "%s", prefix);
                cr_expect_leq(strnlen(error.text, sizeof(error.text)), SL_ERROR_TEXT_BYTES - 1);
        }
}

/* What is wrong with a thing is said, however long its name is. */
Test(error, a_long_name_is_shortened_before_what_is_said_of_it)
{
        char name[1025], shown[64];
        struct sl_error error;

        memset(name, 'x', 1024);
        name[1023] = 'y';
        name[1024] = 0;
        cr_expect_eq(sl_error_set(&error, EINVAL, "model \"%s\": input \"%s\" has 3 samples, the limit is %d", "small", name, 2),
                -EINVAL);
        snprintf(shown, sizeof(shown), "\"%.32s...%s\" has", name, name + 1024 - 16);
        cr_expect_not_null(strstr(error.text, shown), "%s", error.text);
        cr_expect_not_null(strstr(error.text, "model \"small\""), "%s", error.text);
        cr_expect_not_null(strstr(error.text, "has 3 samples, the limit is 2"), "%s", error.text);
        name[0] = 'z';
        for (int i = 1; i < 1023; i += 2)
                memcpy(name + i, "\xc3\xbc", 2);
        sl_error_set(&error, EINVAL, "\"%s\" \"%s\" end", name, name);
        cr_expect_not_null(strstr(error.text, "\xc3\xbc...\xc3\xbc"), "cut between characters: %s", error.text);
        cr_expect_not_null(strstr(error.text, "\" end"), "%s", error.text);
}

Test(error, what_is_added_in_brackets_goes_before_what_is_wrong)
{
        const char *wrong = "a dimension of 5 does not make 2 equal parts";
        char whole[256], shown[128];

        snprintf(whole, sizeof(whole), "%s (1 input: float32 [N,5,8]; of (three) parts; axis = 1)", wrong);
        cr_expect_str_eq(sl_error_fit(whole, shown, sizeof(shown)), whole);
        sl_error_fit(whole, shown, strlen(wrong) + 30);
        cr_expect_eq(strlen(shown), strlen(wrong) + 29, "%s", shown);
        cr_expect(strstr(shown, wrong) == shown && strstr(shown, " (1 input") && strstr(shown, "...") && strstr(shown, "= 1)"),
                "%s", shown);
        cr_expect_str_eq(sl_error_fit(whole, shown, strlen(wrong) + 8), wrong);
        cr_expect_str_eq(sl_error_fit(whole, shown, strlen(wrong) + 1), wrong);
        sl_error_fit(whole, shown, strlen(wrong) - 4);
        cr_expect(strstr(shown, "a dim") == shown && strstr(shown, "..."), "%s", shown);
        sl_error_fit("no end) of (any kind )", shown, 16);
        cr_expect_leq(strlen(shown), 15, "%s", shown);
}
