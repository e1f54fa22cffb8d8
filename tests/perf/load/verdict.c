/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A percentile that too few values lie beyond is no figure.
 */
#include "verdict.h"

#include <criterion/criterion.h>
#include <math.h>

Test(verdict, a_percentile_wants_ten_values_beyond_it)
{
        struct sl_latencies latencies;

        cr_assert_eq(sl_latencies_init(&latencies), 0);
        for (uint64_t i = 1; i <= 999; i++)
                sl_latencies_add(&latencies, i);
        cr_expect_float_eq(sl_verdict_percentile(&latencies, 0.9), 900, 2);
        cr_expect(isnan(sl_verdict_percentile(&latencies, 0.99)));
        sl_latencies_add(&latencies, 1000);
        cr_expect_float_eq(sl_verdict_percentile(&latencies, 0.99), 990, 2);
        cr_expect(isnan(sl_verdict_percentile(&latencies, 0.9999)));
        sl_latencies_deinit(&latencies);
}

Test(verdict, few_answers_are_no_valid_run)
{
        struct sl_verdict verdict;
        struct sl_tally tally;

        cr_assert_eq(sl_tally_init(&tally, &(struct sl_tally_options){.until_ns = 1000000, .n_models = 1}), 0);
        for (uint64_t i = 0; i < SL_VERDICT_LEAST; i++) {
                sl_verdict_of(&tally, true, &verdict);
                cr_expect(!verdict.valid);
                sl_tally_due(&tally, 0, i);
                sl_tally_answer(&tally, &(struct sl_tally_entry){.due_ns = i, .sent_ns = i, .answered_ns = i + 10, .samples = 1});
        }
        sl_verdict_of(&tally, true, &verdict);
        cr_expect(verdict.valid);
        sl_tally_deinit(&tally);
}
