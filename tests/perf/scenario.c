/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of MLPerf's scenarios, as far as they are numbers.
 */
#include "scenario.h"

#include <criterion/criterion.h>
#include <math.h>

/* The least that MLPerf's own documents name: 64 queries for the 90th percentile, 662 for the 99th, one of them slow. */
Test(scenario, early_stopping_wants_as_many_queries_as_mlperf_says)
{
        cr_expect_eq(sl_scenario_queries(1, 0.90), 64);
        cr_expect_eq(sl_scenario_queries(1, 0.99), 662);
        cr_expect_eq(sl_scenario_queries(0, 0.99), 459);
}

Test(scenario, the_more_are_slow_the_more_queries_are_wanted)
{
        uint64_t last = 0;

        for (uint64_t over = 0; over < 3000; over += 50) {
                uint64_t queries = sl_scenario_queries(over, 0.99);

                cr_expect_gt(queries, last);
                cr_expect_gt(queries, 100 * over);
                last = queries;
        }
        cr_expect_lt((double)sl_scenario_queries(100000, 0.99), 1.01 * 100 * 100000, "the penalty vanishes");
}

static struct sl_load_point point_of(uint64_t queries, uint64_t slow, double seconds)
{
        const struct sl_tally_options options = {.until_ns = 1000000000, .objective_ns = 1000, .n_models = 1};
        struct sl_load_point point = {.n_repeats = 1, .measured_s = {seconds}};

        cr_assert_eq(sl_tally_init(&point.tally, &options), 0);
        for (uint64_t i = 0; i < queries; i++) {
                sl_tally_due(&point.tally, 0, i);
                sl_tally_answer(
                        &point.tally, &(struct sl_tally_entry){
                                              .due_ns = i, .sent_ns = i, .answered_ns = i + (i < slow ? 5000 : 100), .samples = 1});
        }
        return point;
}

Test(scenario, a_server_keeps_its_bound_when_few_enough_are_late_for_the_confidence)
{
        static const struct {
                uint64_t queries, slow;
                bool kept;
        } cases[] = {{459, 0, true}, {458, 0, false}, {662, 1, true}, {661, 1, false}, {10000, 100, false}, {10000, 70, true}};

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct sl_load_point point = point_of(cases[i].queries, cases[i].slow, 600);
                struct sl_load_scenario scenario;

                sl_scenario_judge(SL_SCENARIO_SERVER, &point, &scenario);
                cr_expect_eq(scenario.bound_kept, cases[i].kept, "%lu of %lu", cases[i].slow, cases[i].queries);
                cr_expect_eq(sl_scenario_follows_rules(&scenario), cases[i].kept);
                sl_load_point_deinit(&point);
        }
}

Test(scenario, a_short_run_does_not_follow_the_rules)
{
        struct sl_load_point point = point_of(100000, 0, 599);
        struct sl_load_scenario scenario;

        sl_scenario_judge(SL_SCENARIO_SINGLE_STREAM, &point, &scenario);
        cr_expect(scenario.enough_queries && !scenario.long_enough && !sl_scenario_follows_rules(&scenario));
        cr_expect_float_eq(scenario.metric, 100, 1);
        sl_load_point_deinit(&point);
}

/* With 662 queries only the slowest may be taken for the 99th percentile: none is left out. */
Test(scenario, the_estimate_of_few_queries_is_the_slowest)
{
        struct sl_load_point point = point_of(662, 1, 600);
        struct sl_load_scenario scenario;

        sl_scenario_judge(SL_SCENARIO_MULTI_STREAM, &point, &scenario);
        cr_expect_eq(scenario.early_stopping, 5000);
        sl_load_point_deinit(&point);
        point = point_of(661, 1, 600);
        sl_scenario_judge(SL_SCENARIO_MULTI_STREAM, &point, &scenario);
        cr_expect(isnan(scenario.early_stopping));
        sl_load_point_deinit(&point);
}
