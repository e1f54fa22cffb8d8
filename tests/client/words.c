/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls without a runtime: texts, types, version.
 */
#include "starling.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

Test(words, every_status_has_a_text)
{
        cr_assert_str_eq(starling_strerror(-EPIPE), "the runtime is gone");
        cr_assert_str_eq(starling_strerror(EPIPE), "the runtime is gone");
        cr_assert_str_eq(starling_strerror(0), "done");
        cr_assert_str_eq(starling_strerror(-ERANGE), "an index in an input is out of range");
        for (int code = -200; code <= 200; code++)
                cr_assert_not_null(starling_strerror(code));
        cr_assert_str_eq(starling_strerror(INT_MIN), "unknown error");
        cr_assert_str_eq(starling_strerror(100000), "unknown error");
}

Test(words, a_completion_without_a_reason_has_the_words_of_its_status)
{
        struct starling_completion completion = {.status = -EPIPE};
        char text[STARLING_TEXT_BYTES], little[8];

        cr_assert_str_eq(starling_reason_text(&completion, text, sizeof(text)), "the runtime is gone");
        cr_assert_str_eq(starling_reason_text(&completion, little, sizeof(little)), "the run");
        completion.reason.code = UINT16_MAX;
        cr_assert_str_eq(starling_reason_text(&completion, text, sizeof(text)), "the runtime is gone");
}

Test(words, types_have_names_and_sizes)
{
        cr_assert_eq(starling_dtype_bytes(STARLING_BF16), 2);
        cr_assert_eq(starling_dtype_bytes(STARLING_F64), 8);
        cr_assert_eq(starling_dtype_bytes(8), 0);
        cr_assert_eq(starling_dtype_bytes(UINT32_MAX), 0);
        cr_assert_str_eq(starling_dtype_name(STARLING_I8), "int8");
        cr_assert_str_eq(starling_dtype_name(99), "unknown");
}

Test(words, the_library_is_the_headers_version)
{
        char expected[32];

        snprintf(expected, sizeof(expected), "%d.%d.%d", STARLING_VERSION_MAJOR, STARLING_VERSION_MINOR, STARLING_VERSION_PATCH);
        cr_assert_str_eq(starling_version(), expected);
}
