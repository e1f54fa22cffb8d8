/* SPDX-License-Identifier: Apache-2.0 */
/* The words for a failure: of several pieces that fail, those of the first are kept. */
#include "fault.h"

#include <criterion/criterion.h>
#include <string.h>

Test(fault, is_told_once_until_it_is_cleared)
{
        struct sl_fault fault = {0};

        cr_expect_null(sl_fault_text(&fault));
        sl_fault_tell(&fault, "first");
        sl_fault_tell(&fault, "second");
        cr_expect_str_eq(sl_fault_text(&fault), "first");
        sl_fault_clear(&fault);
        cr_expect_null(sl_fault_text(&fault));
        sl_fault_tell(&fault, "third");
        cr_expect_str_eq(sl_fault_text(&fault), "third");
}

Test(fault, words_that_are_too_long_are_cut)
{
        struct sl_fault fault = {0};
        char text[2 * SL_FAULT_BYTES];

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = 0;
        sl_fault_tell(&fault, text);
        cr_expect_eq(strlen(sl_fault_text(&fault)), SL_FAULT_BYTES - 1);
}
