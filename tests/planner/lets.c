/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of schedules of lets, over random fleets, and what schedulers find beside a search of everything.
 */
#include "base/error.h"
#include "costs.h"
#include "cycle.h"
#include "cycles.h"
#include "fleet.h"
#include "parts.h"
#include "rounds.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t lets_max_of(const struct parts_case *given, uint32_t scheduler)
{
        bool any = scheduler == SL_PARTITION_STARLING;

        return any ? SL_PARTITION_OF_DEVICE : given->problem.options.lets_max;
}

static struct sl_partition_schedule *made(const struct sl_partition_problem *problem, uint32_t scheduler)
{
        struct sl_partition_schedule *schedule = NULL;
        struct sl_error error = {""};

        cr_assert_eq(sl_partition_make(&sl_partition_schedulers[scheduler], problem, &schedule, &error), 0, "%s", error.text);
        return schedule;
}

Test(lets, keep_to_every_rule_on_random_fleets)
{
        uint32_t schedulable[SL_PARTITION_SCHEDULERS] = {0}, parted = 0, shared = 0;

        for (uint64_t seed = 1; seed <= SL_ROUNDS(700); seed++) {
                struct parts_case given;

                parts_case_init(&given, seed, 4, 5);
                for (uint32_t s = 0; s < SL_PARTITION_SCHEDULERS; s++) {
                        const char *name = sl_partition_schedulers[s].name;
                        struct sl_partition_schedule *schedule = made(&given.problem, s), *again = made(&given.problem, s);
                        struct sl_error error = {""};
                        const char *rule = broken_rule(&given.problem, schedule, lets_max_of(&given, s));

                        cr_assert(!rule, "seed %lu, %s: %s", seed, name, rule);
                        cr_assert_eq(sl_partition_check(&given.problem, schedule, &error), 0, "seed %lu, %s: %s", seed, name,
                                error.text);
                        cr_assert(schedule->n_lets == again->n_lets &&
                                          memcmp(schedule->lets, again->lets, schedule->n_lets * sizeof(*schedule->lets)) == 0 &&
                                          memcmp(schedule->lacking, again->lacking, given.costs->n_models * sizeof(double)) == 0,
                                "seed %lu, %s: not the same again", seed, name);
                        schedulable[s] += schedule->schedulable;
                        for (uint32_t i = 0; i < schedule->n_lets; i++) {
                                shared += schedule->lets[i].n_places > 1;
                                parted += i && schedule->lets[i].device == schedule->lets[i - 1].device;
                        }
                        sl_partition_schedule_free(schedule);
                        sl_partition_schedule_free(again);
                }
                parts_case_deinit(&given);
        }
        for (uint32_t s = 0; s < SL_PARTITION_SCHEDULERS; s++)
                cr_expect_gt(schedulable[s], SL_ROUNDS(700) / 20, "%s: %u", sl_partition_schedulers[s].name, schedulable[s]);
        cr_expect(parted > SL_ROUNDS(700) / 2 && shared > SL_ROUNDS(700) / 2, "%u %u: the rules were not tried", parted, shared);
}

Test(lets, what_is_schedulable_is_below_the_bound_and_late_with_no_regular_arrival)
{
        uint64_t requests = 0;

        for (uint64_t seed = 1; seed <= SL_ROUNDS(400); seed++) {
                struct sl_sim_cycles_count counts[MODELS_MAX];
                struct parts_case given;
                double bound;

                parts_case_init(&given, seed, 4, 5);
                cr_assert_eq(sl_partition_bound(&given.problem, &bound), 0);
                for (uint32_t s = 0; s < SL_PARTITION_SCHEDULERS; s++) {
                        struct sl_partition_schedule *schedule = made(&given.problem, s);
                        const struct sl_sim_cycles_options options = {.seed = seed,
                                .duration_ns = 300000000,
                                .regular = true,
                                .interference = given.problem.options.interference};

                        cr_assert(!schedule->schedulable || bound > 1 - 1e-6, "seed %lu, %s: the bound is %g", seed,
                                sl_partition_schedulers[s].name, bound);
                        cr_assert_eq(sl_sim_cycles_run(&given.problem, schedule, &options, counts), 0);
                        for (uint32_t m = 0; m < given.costs->n_models; m++) {
                                cr_assert(counts[m].late == 0 && counts[m].dropped == 0,
                                        "seed %lu, %s, model %u: %lu late, %lu dropped, of %lu", seed,
                                        sl_partition_schedulers[s].name, m, counts[m].late, counts[m].dropped, counts[m].requests);
                                requests += counts[m].requests;
                        }
                        sl_partition_schedule_free(schedule);
                }
                parts_case_deinit(&given);
        }
        cr_expect_gt(requests, 500 * SL_ROUNDS(400));
}

Test(lets, starling_schedules_what_any_baseline_does)
{
        static const uint32_t baselines[] = {
                SL_PARTITION_SBP, SL_PARTITION_SBP_HALVES, SL_PARTITION_SELF_TUNING, SL_PARTITION_ELASTIC};
        uint32_t more = 0;

        for (uint64_t seed = 5001; seed <= 5000 + SL_ROUNDS(500); seed++) {
                struct parts_case given;
                bool any = false;

                parts_case_init(&given, seed, 4, 5);
                struct sl_partition_schedule *own = made(&given.problem, SL_PARTITION_STARLING);
                for (uint32_t i = 0; i < sizeof(baselines) / sizeof(*baselines); i++) {
                        struct sl_partition_schedule *schedule = made(&given.problem, baselines[i]);

                        cr_assert(own->schedulable || !schedule->schedulable, "seed %lu: %s does", seed,
                                sl_partition_schedulers[baselines[i]].name);
                        any = any || schedule->schedulable;
                        sl_partition_schedule_free(schedule);
                }
                more += own->schedulable && !any;
                sl_partition_schedule_free(own);
                parts_case_deinit(&given);
        }
        cr_expect_gt(more, SL_ROUNDS(500) / 50, "%u", more);
}

Test(lets, one_more_device_never_lowers_the_ideal)
{
        uint32_t schedulable = 0;

        for (uint64_t seed = 10001; seed <= 10000 + SL_ROUNDS(300); seed++) {
                struct sl_costs *larger;
                struct parts_case given;
                uint32_t rows[8], models[MODELS_MAX];

                parts_case_init(&given, seed, 3, 5);
                for (uint32_t d = 0; d <= given.costs->n_devices; d++)
                        rows[d] = d % given.costs->n_devices;
                for (uint32_t m = 0; m < given.costs->n_models; m++)
                        models[m] = m;
                cr_assert_eq(sl_costs_select(
                                     given.costs, rows, given.costs->n_devices + 1, models, given.costs->n_models, &larger, NULL),
                        0);
                struct sl_partition_problem more = given.problem;
                more.costs = larger;
                struct sl_partition_schedule *before = made(&given.problem, SL_PARTITION_IDEAL),
                                             *after = made(&more, SL_PARTITION_IDEAL);
                struct sl_partition_schedule *elastic = made(&given.problem, SL_PARTITION_ELASTIC);
                cr_assert(!before->schedulable || after->schedulable, "seed %lu", seed);
                cr_assert(!elastic->schedulable || before->schedulable, "seed %lu: elastic partitioning does", seed);
                schedulable += before->schedulable;
                sl_partition_schedule_free(before);
                sl_partition_schedule_free(after);
                sl_partition_schedule_free(elastic);
                sl_costs_free(larger);
                parts_case_deinit(&given);
        }
        cr_expect_gt(schedulable, SL_ROUNDS(300) / 10);
}

/* ---- beside everything ---- */

/* planned_ns() of everything. */
struct planned {
        double ns[2][11][MODELS_MAX][33]; /* [device][units][model][batch] */
};

static struct planned *planned_new(const struct sl_partition_problem *problem)
{
        const struct sl_costs *costs = problem->costs;
        struct planned *planned = calloc(1, sizeof(*planned));

        for (uint32_t d = 0; d < costs->n_devices; d++)
                for (uint32_t units = 1; units <= costs->classes[costs->devices[d].class_index].units; units++)
                        for (uint32_t m = 0; m < costs->n_models; m++)
                                for (uint32_t b = 1; b <= costs->batches[costs->n_batches - 1]; b++)
                                        planned->ns[d][units][m][b] = planned_ns(problem, d, units, m, b);
        return planned;
}

/* Is there a batch for each place with which the let meets its objectives? Tries all of them. */
static bool any_batches(
        const struct sl_partition_problem *problem, const struct planned *planned, struct sl_partition_let *let, uint32_t place)
{
        uint32_t largest = problem->costs->batches[problem->costs->n_batches - 1];

        if (place < let->n_places) {
                for (uint32_t b = 1; b <= largest; b++) {
                        let->places[place].batch = b;
                        if (any_batches(problem, planned, let, place + 1))
                                return true;
                }
                return false;
        }
        double took[SL_PARTITION_PLACES_MAX], all = 0;
        for (uint32_t p = 0; p < let->n_places; p++) {
                took[p] = planned->ns[let->device][let->units][let->places[p].model][let->places[p].batch];
                all += took[p];
                if (!(took[p] > 0))
                        return false;
        }
        for (uint32_t p = 0; p < let->n_places; p++) {
                double last = problem->options.worst == SL_PARTITION_ALL_BATCHES ? all : took[p];

                if (all + last > (double)problem->demands[let->places[p].model].objective_ns ||
                        let->places[p].rate * all / 1e9 > let->places[p].batch)
                        return false;
        }
        return true;
}

Test(cycle, is_found_exactly_where_there_is_one)
{
        uint32_t found = 0, tried = 0;

        for (uint64_t seed = 20001; seed <= 20000 + SL_ROUNDS(1500); seed++) {
                struct parts_case given;
                struct sl_partition_times *times;
                struct sl_partition_board *board;
                uint64_t stream = seed;

                parts_case_init(&given, seed, 1, 3);
                given.problem.options.interference = false;
                given.problem.options.places_max = SL_PARTITION_PLACES_MAX;
                cr_assert_eq(sl_partition_times_new(&given.problem, &times), 0);
                cr_assert_eq(sl_board_new(&given.problem, times, &board), 0);
                const struct sl_partition_sizes *sizes = &times->sizes[given.costs->devices[0].class_index];
                uint32_t let = sl_board_add(board, 0, sizes->units[draw(&stream, sizes->n)]);
                struct sl_partition_let *l = &board->lets[let];
                for (uint32_t m = 0; m < given.costs->n_models; m++)
                        if (given.demands[m].rate > 0)
                                l->places[l->n_places++] = (struct sl_partition_place){m, 1, given.demands[m].rate};
                struct sl_partition_let all = *l;
                struct planned *planned = planned_new(&given.problem);
                bool is_there = any_batches(&given.problem, planned, &all, 0), is_found = sl_cycle_find(board, let);
                cr_assert_eq(is_found, is_there, "seed %lu: found %d, there %d", seed, is_found, is_there);
                cr_assert(!is_found || sl_board_holds(board, let, l->cycle_ns), "seed %lu", seed);
                found += is_found;
                tried++;
                free(planned);
                sl_board_free(board);
                sl_partition_times_free(times);
                parts_case_deinit(&given);
        }
        cr_expect(found > tried / 20 && found < tried * 19 / 20, "%u of %u", found, tried);
}

/* All ways to part devices into lets of the costs' sizes, and to have each model on one of these. */
struct everything {
        const struct sl_partition_problem *problem;
        const struct planned *planned;
        struct sl_partition_let lets[8];
        uint32_t n_lets;
};

static bool any_homes(struct everything *e, uint32_t model)
{
        if (model < e->problem->costs->n_models) {
                if (!(e->problem->demands[model].rate > 0))
                        return any_homes(e, model + 1);
                for (uint32_t i = 0; i < e->n_lets; i++) {
                        struct sl_partition_let *let = &e->lets[i];

                        let->places[let->n_places++] = (struct sl_partition_place){model, 1, e->problem->demands[model].rate};
                        bool good = any_homes(e, model + 1);
                        let->n_places--;
                        if (good)
                                return true;
                }
                return false;
        }
        for (uint32_t i = 0; i < e->n_lets; i++) {
                struct sl_partition_let let = e->lets[i];

                if (let.n_places && !any_batches(e->problem, e->planned, &let, 0))
                        return false;
        }
        return true;
}

static bool any_parts(struct everything *e, uint32_t device, uint32_t unused, uint32_t least)
{
        if (device == e->problem->costs->n_devices)
                return any_homes(e, 0);
        const struct sl_cost_class *class = &e->problem->costs->classes[e->problem->costs->devices[device].class_index];
        for (uint32_t k = least; k <= class->n_sizes && e->n_lets < 4; k++) {
                uint32_t units = k < class->n_sizes ? class->sizes[k] : class->units;

                if (units > unused)
                        continue;
                e->lets[e->n_lets++] = (struct sl_partition_let){.device = device, .units = units};
                bool good = any_parts(e, device, unused - units, k);
                e->n_lets--;
                if (good)
                        return true;
        }
        uint32_t next = device + 1;
        return any_parts(e, next,
                next < e->problem->costs->n_devices ? e->problem->costs->classes[e->problem->costs->devices[next].class_index].units
                                                    : 0,
                0);
}

Test(everything, of_what_can_be_scheduled_with_each_model_on_one_let_nearly_all_is_found)
{
        uint32_t there = 0, found = 0;

        for (uint64_t seed = 30001; seed <= 30000 + SL_ROUNDS(120); seed++) {
                struct parts_case given;

                parts_case_init(&given, seed, 2, 3);
                given.problem.options = sl_partition_paper;
                for (uint32_t d = 0; d < given.costs->n_devices; d++)
                        given.costs->devices[d].memory_bytes = 1000000;
                struct planned *planned = planned_new(&given.problem);
                struct everything e = {.problem = &given.problem, .planned = planned};
                if (any_parts(&e, 0, given.costs->classes[given.costs->devices[0].class_index].units, 0)) {
                        struct sl_partition_schedule *schedule = made(&given.problem, SL_PARTITION_STARLING);

                        there++;
                        found += schedule->schedulable;
                        sl_partition_schedule_free(schedule);
                }
                free(planned);
                parts_case_deinit(&given);
        }
        cr_expect_gt(there, SL_ROUNDS(120) / 5, "%u", there);
        cr_expect_geq(found * 100, there * 98, "%u of %u", found, there);
}

/* ---- by hand ---- */

/* Two devices of 10 units with halves; a batch takes 1 ms and 0.1 ms a sample on any let; batches to 8. */
static struct sl_costs *even_costs(uint32_t n_models)
{
        struct sl_costs *costs;

        cr_assert_eq(sl_costs_new_sized(1, 2, n_models, 8, 1, &costs, NULL), 0);
        strcpy(costs->classes[0].name, "c");
        costs->classes[0].units = 10;
        costs->classes[0].n_sizes = 1;
        costs->classes[0].sizes[0] = 5;
        for (uint32_t d = 0; d < 2; d++) {
                snprintf(costs->devices[d].name, SL_COST_NAME_BYTES, "d%u", d);
                costs->devices[d].memory_bytes = 1000;
        }
        for (uint32_t m = 0; m < n_models; m++) {
                snprintf(costs->models[m].name, SL_COST_NAME_BYTES, "m%u", m);
                costs->models[m].weights_bytes = 100;
                for (uint32_t b = 0; b < 8; b++) {
                        costs->batches[b] = b + 1;
                        for (uint32_t size = 0; size < 2; size++)
                                *sl_costs_size_cell(costs, 0, size, m, b) = (struct sl_cost_cell){
                                        .latency_ns = 1000000 + 100000 * (b + 1), .workspace_bytes = 10, .source = SL_COST_DERIVED};
                }
        }
        return costs;
}

Test(sbp, packs_as_it_does_by_hand)
{
        struct sl_costs *costs = even_costs(2);
        /* 2 L(b) <= 3.2 ms: b = 6, L = 1.6 ms, 3,750 a second. Of 4,000 there is one full bin, and 250 are left: L(b) + 4 ms b:
         * none is within 3.2 ms, so one sample at a time in a cycle of 2.1 ms. The other model, 250 a second within 12.4 ms: the
         * largest b with L(b) + 4 ms b within is 2, a cycle of 8 ms. Merged: 2.1 ms, one sample of each: 2.2 ms is too long. */
        struct sl_partition_demand demands[] = {{4000, 3200000}, {250, 12400000}};
        const struct sl_partition_problem problem = {costs, demands, sl_partition_paper};
        struct sl_partition_schedule *schedule = made(&problem, SL_PARTITION_SBP);

        cr_expect_not(schedule->schedulable);
        cr_expect_eq(schedule->n_lets, 2);
        cr_expect(schedule->lets[0].places[0].model == 0 && schedule->lets[0].places[0].batch == 6);
        cr_expect_float_eq(schedule->lets[0].places[0].rate, 3750, 1e-6);
        cr_expect_float_eq(schedule->lets[0].cycle_ns, 1.6e6, 1);
        sl_partition_schedule_free(schedule);
        demands[0].objective_ns = 3400000; /* 7 samples in 1.7 ms: 4,117 a second, so nothing is full; 4,000 are 6.8 in 1.7 ms */
        schedule = made(&problem, SL_PARTITION_SBP);
        cr_expect(schedule->schedulable && schedule->n_lets == 2);
        cr_expect(schedule->lets[1].places[0].model == 1 && schedule->lets[1].places[0].batch == 2);
        cr_expect_float_eq(schedule->lets[1].cycle_ns, 8e6, 1);
        sl_partition_schedule_free(schedule);
        demands[0] = (struct sl_partition_demand){100, 25000000}; /* b = 2: 20 ms + 1.2; with 8 ms: one of it, two of the other */
        schedule = made(&problem, SL_PARTITION_SBP);
        cr_assert(schedule->schedulable && schedule->n_lets == 1 && schedule->lets[0].n_places == 2);
        cr_expect_float_eq(schedule->lets[0].cycle_ns, 8e6, 1);
        for (uint32_t p = 0; p < 2; p++)
                cr_expect_eq(schedule->lets[0].places[p].batch, schedule->lets[0].places[p].model == 0 ? 1 : 2);
        sl_partition_schedule_free(schedule);
        /* 8 in 8 ms, of a share of 0.225, then one in 5 ms, of 0.22: merged the shorter cycle, in which 5 come of the first. */
        demands[0] = (struct sl_partition_demand){1000, 20000000};
        demands[1] = (struct sl_partition_demand){200, 7000000};
        schedule = made(&problem, SL_PARTITION_SBP);
        cr_assert(schedule->schedulable && schedule->n_lets == 1 && schedule->lets[0].n_places == 2);
        cr_expect_float_eq(schedule->lets[0].cycle_ns, 5e6, 1);
        for (uint32_t p = 0; p < 2; p++)
                cr_expect_eq(schedule->lets[0].places[p].batch, schedule->lets[0].places[p].model == 0 ? 5 : 1);
        sl_partition_schedule_free(schedule);
        sl_costs_free(costs);
}

Test(sbp, all_batches_of_a_cycle_are_far_stricter_beside_a_short_objective)
{
        struct sl_costs *costs = even_costs(2);
        struct sl_partition_demand demands[] = {{300, 5000000}, {100, 40000000}}; /* cycle 3.3 ms: 1.1 + 1.1 ms */
        struct sl_partition_problem problem = {costs, demands, sl_partition_paper};
        struct sl_partition_schedule *own = made(&problem, SL_PARTITION_SBP);

        problem.options.worst = SL_PARTITION_ALL_BATCHES;
        struct sl_partition_schedule *all = made(&problem, SL_PARTITION_SBP);
        cr_expect_eq(own->n_lets, 1, "one device bears both: 3.3 ms and 1.1");
        cr_expect_eq(all->n_lets, 2, "3.3 ms and 2.2 are more than 5");
        sl_partition_schedule_free(own);
        sl_partition_schedule_free(all);
        sl_costs_free(costs);
}

/* On any let it takes as long: so the half bears as much as the whole, and bends the curve. */
Test(elastic, splits_at_the_knee_merges_where_it_holds_and_leaves_the_rest_whole)
{
        struct sl_costs *costs = even_costs(2);
        struct sl_partition_demand demands[] = {{4000, 3200000}, {0, 0}};
        const struct sl_partition_problem problem = {costs, demands, sl_partition_paper};
        struct sl_partition_schedule *schedule = made(&problem, SL_PARTITION_ELASTIC);

        cr_assert(schedule->schedulable && schedule->n_lets == 2);
        cr_expect(schedule->lets[0].units == 5 && schedule->lets[1].units == 5 &&
                          schedule->lets[0].device == schedule->lets[1].device,
                "both on the halves of one device");
        sl_partition_schedule_free(schedule);
        demands[0] = (struct sl_partition_demand){100, 25000000};
        demands[1] = (struct sl_partition_demand){250, 12400000};
        schedule = made(&problem, SL_PARTITION_ELASTIC);
        cr_assert(schedule->schedulable && schedule->n_lets == 1, "the second one was merged into the first one's let");
        cr_expect(schedule->lets[0].n_places == 2 && schedule->lets[0].units == 5);
        sl_partition_schedule_free(schedule);
        sl_costs_free(costs);
}

Test(self_tuning, takes_no_turns_and_shares_fairly_what_is_not_enough)
{
        struct sl_costs *costs = even_costs(3);
        struct sl_partition_demand demands[] = {{3000, 3200000}, {11000, 3200000}, {11000, 3200000}};
        const struct sl_partition_problem problem = {costs, demands, sl_partition_paper};
        struct sl_partition_schedule *schedule = made(&problem, SL_PARTITION_SELF_TUNING);
        uint32_t units[3] = {0};

        for (uint32_t i = 0; i < schedule->n_lets; i++) {
                cr_expect_eq(schedule->lets[i].n_places, 1);
                units[schedule->lets[i].places[0].model] += schedule->lets[i].units;
        }
        /* 20 units: 5 are all that the first wants; of 15 each of the others has 7, rounded up to 10 where that is free. */
        cr_expect_eq(units[0], 5);
        cr_expect(units[1] + units[2] <= 15 && units[1] && !schedule->schedulable, "%u %u", units[1], units[2]);
        cr_expect(schedule->lacking[0] == 0 && schedule->lacking[1] > 0 && schedule->lacking[2] > 0);
        sl_partition_schedule_free(schedule);
        sl_costs_free(costs);
}

Test(lets, bad_demands_and_options_are_named)
{
        struct sl_costs *costs = even_costs(1);
        static const struct {
                double rate;
                uint64_t objective_ns;
                const char *text;
        } rows[] = {
                {1e12, 1000, "model \"m0\": 1e+12 requests a second, from 0 to 1e+09"},
                {-1, 1000, "-1 requests a second"},
                {(double)NAN, 1000, "requests a second"},
                {1, 0, "model \"m0\": an objective of 0 ns, from 1 to"},
                {1, UINT64_MAX, "an objective of 18446744073709551615 ns"},
                {0, 1000, "no model has a rate above 0"},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct sl_partition_demand demand = {rows[i].rate, rows[i].objective_ns};
                const struct sl_partition_problem problem = {costs, &demand, sl_partition_paper};
                struct sl_partition_schedule *schedule;
                struct sl_error error = {""};

                cr_expect_eq(sl_partition_make(sl_partition_find("sbp"), &problem, &schedule, &error), -EINVAL);
                cr_expect(strstr(error.text, rows[i].text), "row %zu: %s", i, error.text);
        }
        struct sl_partition_demand demand = {1, 5000000};
        for (uint32_t i = 0; i < 4; i++) {
                struct sl_partition_problem problem = {costs, &demand, sl_partition_paper};
                struct sl_error error = {""};

                problem.options.latency_factor = i == 0 ? 0.5 : 1;
                problem.options.places_max = i == 1 ? 9 : 1;
                problem.options.lets_max = i == 2 ? 0 : 1;
                problem.options.dropped_rate = i == 3 ? -1 : 0;
                cr_expect_eq(sl_partition_problem_check(&problem, &error), -EINVAL, "row %u", i);
        }
        cr_expect_null(sl_partition_find("nonesuch"));
        sl_costs_free(costs);
}

/* Whatever is changed in a good schedule so that it breaks a rule, check says so. */
Test(lets, a_schedule_that_breaks_a_rule_is_refused)
{
        struct sl_costs *costs = even_costs(1);
        struct sl_partition_demand demand = {4000, 3200000};
        const struct sl_partition_problem problem = {costs, &demand, sl_partition_paper};

        for (uint32_t i = 0; i < 10; i++) {
                struct sl_partition_schedule *schedule = made(&problem, SL_PARTITION_ELASTIC);
                struct sl_error error = {""};

                cr_assert_eq(sl_partition_check(&problem, schedule, &error), 0, "%s", error.text);
                struct sl_partition_let *let = &schedule->lets[0];
                if (i == 0)
                        let->units = 10;
                if (i == 1)
                        let->units = 3;
                if (i == 2)
                        let->device = 2;
                if (i == 3)
                        let->places[0].batch = 9;
                if (i == 4)
                        let->places[0].rate += 1;
                if (i == 5)
                        let->cycle_ns *= 1.1;
                if (i == 6)
                        let->cycle_ns *= 0.9;
                if (i == 7)
                        let->n_places = 0;
                if (i == 8)
                        let->places[let->n_places++] = let->places[0];
                if (i == 9)
                        costs->devices[0].memory_bytes = 119;
                cr_expect_eq(sl_partition_check(&problem, schedule, &error), -EINVAL, "change %u", i);
                sl_partition_schedule_free(schedule);
                costs->devices[0].memory_bytes = 1000;
        }
        sl_costs_free(costs);
}
