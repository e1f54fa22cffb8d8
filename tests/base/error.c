/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <criterion/criterion.h>
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
