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

/* One request in @every is sent @late_ns late, of an answer that takes 1000. */
static bool is_valid_with(uint32_t every, uint64_t late_ns)
{
        struct sl_verdict verdict;
        struct sl_tally tally;

        cr_assert_eq(sl_tally_init(&tally, &(struct sl_tally_options){.until_ns = 1000000000, .n_models = 1}), 0);
        for (uint64_t i = 0; i < 10000; i++) {
                uint64_t sent_ns = i * 10000 + (i % every ? 0 : late_ns);

                sl_tally_due(&tally, 0, i * 10000);
                sl_tally_answer(
                        &tally, &(struct sl_tally_entry){
                                        .due_ns = i * 10000, .sent_ns = sent_ns, .answered_ns = sent_ns + 1000, .samples = 1});
        }
        sl_verdict_of(&tally, false, &verdict);
        sl_tally_deinit(&tally);
        return verdict.valid;
}

Test(verdict, a_generator_that_is_late_so_that_it_shows_makes_the_run_invalid)
{
        cr_expect(is_valid_with(1, 90));
        cr_expect(!is_valid_with(1, 120));
        cr_expect(is_valid_with(200, 5000), "the half of a hundredth shows nowhere");
        cr_expect(!is_valid_with(50, 200), "two of a hundred show at p99");
        cr_expect(!is_valid_with(200, 50000), "few, but of weight");
}
