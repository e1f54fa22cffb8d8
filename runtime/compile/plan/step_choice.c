/* SPDX-License-Identifier: Apache-2.0 */
#include "step_choice.h"

#include <stdio.h>

const char *sl_algorithm_name(uint32_t algorithm)
{
        static const char *const names[SL_ALGORITHM_COUNT] = {
                [SL_ALGORITHM_AUTO] = "",
                [SL_ALGORITHM_DIRECT] = "direct",
                [SL_ALGORITHM_BLOCKED] = "blocked",
                [SL_ALGORITHM_WINOGRAD_2] = "winograd-2",
                [SL_ALGORITHM_WINOGRAD_4] = "winograd-4",
        };

        return algorithm < SL_ALGORITHM_COUNT && names[algorithm] ? names[algorithm] : "";
}

static size_t print_reason(const struct sl_step_choice *choice, char *text)
{
        const char *name = sl_algorithm_name(choice->algorithm);
        int n = 0;

        switch (choice->reason) {
        case SL_CHOICE_GUESS:
                n = snprintf(text, SL_CHOICE_TEXT_BYTES, "%s, the first guess", name);
                break;
        case SL_CHOICE_FASTEST:
                n = snprintf(text, SL_CHOICE_TEXT_BYTES, "%s, the fastest of %u: %.0f us against %.0f us", name, choice->n_timed,
                        (double)choice->microseconds, (double)choice->runner_up_microseconds);
                break;
        case SL_CHOICE_RULED_OUT:
                n = snprintf(text, SL_CHOICE_TEXT_BYTES, "%s, %s is ruled out", name, sl_algorithm_name(choice->passed_over));
                break;
        case SL_CHOICE_INEXACT:
                n = snprintf(text, SL_CHOICE_TEXT_BYTES, "%s, %s is too inexact", name, sl_algorithm_name(choice->passed_over));
                break;
        case SL_CHOICE_BASE:
                n = snprintf(text, SL_CHOICE_TEXT_BYTES, "%s, as in the base plan", name);
                break;
        case SL_CHOICE_AS_FAST:
                n = snprintf(text, SL_CHOICE_TEXT_BYTES, "%s, as fast as the best of %u: %.0f us against %.0f us", name,
                        choice->n_timed, (double)choice->microseconds, (double)choice->runner_up_microseconds);
                break;
        default:
                text[0] = 0;
        }
        return n < 0 ? 0 : (size_t)n;
}

void sl_choice_text(const struct sl_step_choice *choice, char ret_text[SL_CHOICE_TEXT_BYTES])
{
        size_t used = print_reason(choice, ret_text);

        if (used && used < SL_CHOICE_TEXT_BYTES && choice->relative_error > 0)
                snprintf(ret_text + used, SL_CHOICE_TEXT_BYTES - used, ", error %.1e", (double)choice->relative_error);
}
