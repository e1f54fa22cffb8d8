/* SPDX-License-Identifier: Apache-2.0 */
/* What both scalers keep whatever they are asked, by sums of the test's own; what each does by hand; how far from the oracle. */
#include "scaler.h"
#include "arrival_rate.h"
#include "base/error.h"
#include "rounds.h"
#include "scale_fleet.h"
#include "scale_oracle.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

struct memory {
        struct sl_scaler_need needs[8];
        struct sl_scaler_kind kinds[KINDS_MOST];
        struct sl_scaler_memory words;
};

static struct sl_scaler_memory *words(struct memory *memory)
{
        memory->words = (struct sl_scaler_memory){memory->needs, memory->kinds};
        return &memory->words;
}

/* ---- properties ---- */

static void check_kinds(const struct scale_fleet *fleet, const int32_t *change, uint64_t seed)
{
        for (uint32_t i = 0; i < fleet->problem.n_needs; i++) {
                const struct sl_scale_need *need = &fleet->needs[i];

                for (uint32_t k = need->first; k < need->first + need->n; k++) {
                        const struct sl_scale_kind *kind = &fleet->kinds[k];

                        cr_assert_geq((int32_t)kind->n + change[k], 0, "seed %lu: %u and %d", seed, kind->n, change[k]);
                        if (change[k] <= 0)
                                continue;
                        cr_assert_leq(kind->n + (uint32_t)change[k], kind->most, "seed %lu", seed);
                        cr_assert_geq(kind->accuracy, need->accuracy, "seed %lu", seed);
                        cr_assert(need->latency_s == 0 || kind->latency_s <= need->latency_s, "seed %lu", seed);
                }
        }
}

/* After the change; of a resource that both sides hold, while both are there. */
static void check_resources(const struct scale_fleet *fleet, const int32_t *change, uint64_t seed)
{
        for (uint32_t r = 0; r < SL_SCALE_RESOURCES; r++) {
                double held = 0, comes = 0;

                for (uint32_t k = 0; k < fleet->problem.n_kinds; k++) {
                        int32_t n = change[k] < 0 && fleet->problem.resources[r].both ? 0 : change[k];

                        comes += change[k] > 0 ? change[k] * fleet->kinds[k].resources[r] : 0;
                        held += ((double)fleet->kinds[k].n + n) * fleet->kinds[k].resources[r];
                }
                cr_assert(comes == 0 || held <= fleet->problem.resources[r].total * (1 + 1e-9), "seed %lu: resource %u: %g of %g",
                        seed, r, held, fleet->problem.resources[r].total);
        }
}

static double capacity_of(const struct scale_fleet *fleet, const struct sl_scale_need *need, const int32_t *change)
{
        double capacity = 0;

        for (uint32_t k = need->first; k < need->first + need->n; k++)
                if (fleet->kinds[k].accuracy >= need->accuracy &&
                        (need->latency_s == 0 || fleet->kinds[k].latency_s <= need->latency_s))
                        capacity += fleet->kinds[k].rate * ((double)fleet->kinds[k].n + change[k]);
        return capacity;
}

static void check_needs(
        const struct scale_fleet *fleet, const struct memory *memory, const int32_t *change, uint32_t lacking, uint64_t seed)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < fleet->problem.n_needs; i++) {
                double capacity = capacity_of(fleet, &fleet->needs[i], change);

                if (memory->needs[i].verdict == SL_SCALE_LACKS) {
                        n++;
                        continue;
                }
                cr_assert_geq(capacity, fleet->needs[i].load * fleet->problem.slack * (1 - 1e-9), "seed %lu, need %u: %g for %g",
                        seed, i, capacity, fleet->needs[i].load);
        }
        cr_assert_eq(n, lacking, "seed %lu", seed);
}

/* Load, trend and burst are others, as after a while. */
static void stir(struct scale_fleet *fleet, uint64_t *seed)
{
        for (uint32_t i = 0; i < fleet->problem.n_needs; i++) {
                fleet->needs[i].load *= scale_between(seed, 0.2, 5);
                fleet->needs[i].trend = scale_draw(seed, 2) ? 0 : (scale_draw(seed, 401) - 200.0);
                fleet->needs[i].burst = scale_draw(seed, 2) ? 0 : scale_between(seed, 0.1, 20);
        }
}

static void check_run(enum sl_scaler scaler, uint64_t seed)
{
        struct scale_fleet fleet;
        struct memory memory = {0}, again;

        scale_fleet(seed, 1 + (uint32_t)(seed % 4), 1 + (uint32_t)(seed % 5), 1 + (uint32_t)(seed % 7), &fleet);
        for (uint32_t look = 0; look < 8; look++) {
                int32_t change[KINDS_MOST], same[KINDS_MOST];
                uint32_t lacking;

                again = memory;
                lacking = sl_scaler_look(scaler, &fleet.problem, 1, words(&memory), change);
                check_kinds(&fleet, change, seed);
                check_resources(&fleet, change, seed);
                check_needs(&fleet, &memory, change, lacking, seed);
                cr_assert_eq(sl_scaler_look(scaler, &fleet.problem, 1, words(&again), same), lacking);
                cr_assert_arr_eq(change, same, fleet.problem.n_kinds * sizeof(*change));
                for (uint32_t k = 0; k < fleet.problem.n_kinds; k++)
                        fleet.kinds[k].n = (uint32_t)((int32_t)fleet.kinds[k].n + change[k]);
                stir(&fleet, &seed);
        }
}

Test(scaler, no_decision_of_thousands_of_fleets_breaks_accuracy_latency_memory_or_share)
{
        for (uint64_t seed = 1; seed <= SL_ROUNDS(4000); seed++)
                for (uint32_t scaler = 0; scaler < SL_SCALER_COUNT; scaler++)
                        check_run(scaler, seed);
}

/* ---- beside the oracle ---- */

/* Both from nothing, at the same slack. Return: what ours costs by what the oracle does; 0: one of them has no answer. */
static double beside_oracle(uint64_t seed, uint32_t n_needs, bool *ret_missed)
{
        struct scale_fleet fleet;
        struct memory memory = {0};
        int32_t best[KINDS_MOST], ours[KINDS_MOST];
        double least;

        scale_fleet(seed, n_needs, 4, 30, &fleet);
        for (uint32_t k = 0; k < fleet.problem.n_kinds; k++)
                fleet.kinds[k].n = 0;
        if (sl_scale_oracle(&fleet.problem, best, NULL) < 0)
                return 0;
        *ret_missed = sl_scaler_look(SL_SCALER_starling, &fleet.problem, 1, words(&memory), ours);
        least = sl_scale_cost(&fleet.problem, best);
        return *ret_missed || least == 0 ? 0 : sl_scale_cost(&fleet.problem, ours) / least;
}

Test(scaler, starling_is_the_oracle_for_one_need)
{
        uint32_t n = 0;

        for (uint64_t seed = 1; seed <= SL_ROUNDS(200); seed++) {
                bool missed = false;
                double ratio = beside_oracle(seed, 1, &missed);

                cr_expect_not(missed, "seed %lu: the oracle has an answer", seed);
                cr_expect(ratio == 0 || fabs(ratio - 1) < 1e-6, "seed %lu: %g x", seed, ratio);
                n += ratio > 0;
        }
        cr_expect_geq(n, SL_ROUNDS(200u) / 3);
}

Test(scaler, starling_costs_5_percent_more_than_the_oracle_at_most_in_the_mean)
{
        double sum = 0;
        uint32_t n = 0, misses = 0;

        for (uint64_t seed = 1; seed <= SL_ROUNDS(200); seed++) {
                bool missed = false;
                double ratio = beside_oracle(seed, 4, &missed);

                sum += ratio;
                n += ratio > 0;
                misses += missed;
        }
        cr_expect_geq(n, SL_ROUNDS(200u) / 8);
        cr_expect_leq(sum / n, 1.05, "%g x in the mean of %u", sum / n, n);
        cr_expect_leq(misses, n / 10, "%u of %u that the oracle can serve are not", misses, n + misses);
}

/* ---- by hand ---- */

/* Of one architecture: slow and cheap, fast and dear. */
static const struct sl_scale_kind two[] = {
        {.cost = 1, .load_s = 2, .rate = 10, .most = 100},
        {.cost = 4, .load_s = 3, .rate = 100, .most = 100},
};

/* A need whose kinds are those two, and what has become of it. */
struct rig {
        struct sl_scale_need need;
        struct sl_scale_kind kinds[2];
        struct memory memory;
        int32_t change[2];
        double lambda, slack;
};

static struct rig rig(uint32_t n_slow, uint32_t n_fast)
{
        struct rig rig = {.need = {.n = 2}, .kinds = {two[0], two[1]}, .slack = 1.05};

        rig.kinds[0].n = n_slow;
        rig.kinds[1].n = n_fast;
        return rig;
}

static enum sl_scale_verdict look(struct rig *rig, enum sl_scaler scaler, double load, double since_s)
{
        struct sl_scale_problem problem = scale_problem(&rig->need, 1, rig->kinds);

        rig->need.load = load;
        problem.slack = rig->slack;
        problem.lambda = rig->lambda;
        sl_scaler_look(scaler, &problem, since_s, words(&rig->memory), rig->change);
        for (uint32_t k = 0; k < 2; k++)
                rig->kinds[k].n = (uint32_t)((int32_t)rig->kinds[k].n + rig->change[k]);
        return rig->memory.needs[0].verdict;
}

static void expect_running(const struct rig *rig, uint32_t n_slow, uint32_t n_fast)
{
        cr_expect(rig->kinds[0].n == n_slow && rig->kinds[1].n == n_fast, "%u slow and %u fast, not %u and %u", rig->kinds[0].n,
                rig->kinds[1].n, n_slow, n_fast);
}

Test(infaas, replicates_where_that_is_cheaper_and_upgrades_where_it_is_not)
{
        struct rig r = rig(1, 0);

        cr_expect_eq(look(&r, SL_SCALER_infaas, 9, 1), SL_SCALE_STEADY);
        cr_expect_eq(look(&r, SL_SCALER_infaas, 25, 1), SL_SCALE_GROWS);
        expect_running(&r, 3, 0);
        cr_expect_eq(look(&r, SL_SCALER_infaas, 90, 1), SL_SCALE_GROWS);
        expect_running(&r, 3, 1);
}

/* Two slow ones would be cheaper; the paper's way up is to what does more. */
Test(infaas, goes_up_to_nothing_that_does_less)
{
        struct rig r = rig(0, 1);

        look(&r, SL_SCALER_infaas, 105, 1);
        expect_running(&r, 0, 2);
}

Test(infaas, lambda_weighs_what_loads_slowly)
{
        struct rig r = rig(1, 0);

        r.lambda = 10; /* 3 slow ones: 3 (1 + 20); a fast one: 4 + 30 */
        look(&r, SL_SCALER_infaas, 36, 1);
        expect_running(&r, 1, 1);
}

Test(infaas, below_the_slack_of_1_05_it_scales)
{
        struct rig r = rig(1, 0);

        cr_expect_eq(look(&r, SL_SCALER_infaas, 9.5, 1), SL_SCALE_STEADY);
        cr_expect_eq(look(&r, SL_SCALER_infaas, 9.6, 1), SL_SCALE_GROWS);
}

Test(infaas, goes_down_one_by_one_each_after_the_time_of_its_load)
{
        struct rig r = rig(3, 0);

        for (uint32_t i = 0; i < 2; i++) {
                cr_expect_eq(look(&r, SL_SCALER_infaas, 5, 1), SL_SCALE_STEADY);
                cr_expect_eq(look(&r, SL_SCALER_infaas, 5, 1), SL_SCALE_SHRINKS);
                expect_running(&r, 2 - i, 0);
        }
        for (uint32_t i = 0; i < 10; i++)
                cr_expect_eq(look(&r, SL_SCALER_infaas, 5, 1), SL_SCALE_STEADY);
}

Test(infaas, a_load_that_comes_back_ends_the_wait)
{
        struct rig r = rig(2, 0);

        for (uint32_t i = 0; i < 10; i++)
                look(&r, SL_SCALER_infaas, i % 2 ? 15 : 5, 1);
        expect_running(&r, 2, 0);
}

Test(infaas, downgrades_where_cheaper_ones_do)
{
        struct rig r = rig(0, 1);

        for (uint32_t i = 0; i < 2; i++)
                cr_expect_eq(look(&r, SL_SCALER_infaas, 15, 1), SL_SCALE_STEADY);
        cr_expect_eq(look(&r, SL_SCALER_infaas, 15, 1), SL_SCALE_SHRINKS);
        expect_running(&r, 2, 0);
}

Test(starling, keeps_what_was_required_while_it_would_have_loaded)
{
        struct rig r = rig(3, 0);
        uint32_t looks = 0;

        look(&r, SL_SCALER_starling, 28, 0.1);
        for (; r.kinds[0].n > 1 && looks < 1000; looks++)
                look(&r, SL_SCALER_starling, 5, 0.1);
        cr_expect_geq(looks, 20u);
        cr_expect_leq(looks, 40u);
        expect_running(&r, 1, 0);
}

Test(starling, loads_ahead_of_a_load_that_grows)
{
        struct rig r = rig(2, 0);

        cr_expect_eq(look(&r, SL_SCALER_starling, 15, 1), SL_SCALE_STEADY);
        r.need.trend = 5;
        cr_expect_eq(look(&r, SL_SCALER_starling, 15, 1), SL_SCALE_GROWS);
        r = rig(2, 0);
        r.need.trend = -5;
        cr_expect_eq(look(&r, SL_SCALER_starling, 15, 1), SL_SCALE_STEADY);
}

/* The trend of 8 fades over 2 s: 10.1 requests more in 2 s, 16 in 30 s. */
Test(starling, looks_as_far_ahead_as_what_it_takes_has_to_load)
{
        struct rig r = rig(0, 0);

        r.kinds[1] = (struct sl_scale_kind){.cost = 0.9, .load_s = 30, .rate = 17.5, .most = 100};
        r.need.trend = 8;
        look(&r, SL_SCALER_starling, 17, 1);
        expect_running(&r, 0, 2);
        r.kinds[1].n = 0;
        r.kinds[1].rate = 15.5;
        look(&r, SL_SCALER_starling, 17, 1);
        cr_expect_geq(r.kinds[0].n * 10 + r.kinds[1].n * 15.5, 32.9);
}

Test(starling, leaves_room_for_a_bursty_load)
{
        struct rig r = rig(2, 0);

        r.need.burst = 4;
        cr_expect_eq(look(&r, SL_SCALER_starling, 15, 1), SL_SCALE_GROWS);
        expect_running(&r, 4, 0);
}

/* Who finds no room in time does not come: the load that is seen is what they do. */
Test(starling, what_is_overloaded_wants_more_than_it_does_whatever_its_load)
{
        struct rig r = rig(2, 0);

        cr_expect_eq(look(&r, SL_SCALER_starling, 15, 1), SL_SCALE_STEADY);
        r.need.is_overloaded = true;
        cr_expect_eq(look(&r, SL_SCALER_starling, 15, 1), SL_SCALE_GROWS);
        expect_running(&r, 3, 0);
        r.need.is_overloaded = false;
        r.kinds[0].rate = 20; /* it has been learned to do more; nothing goes as yet */
        cr_expect_eq(look(&r, SL_SCALER_starling, 15, 1), SL_SCALE_STEADY);
        expect_running(&r, 3, 0);
        r.kinds[0].rate = 10;
        r.kinds[0].most = 3;
        r.kinds[1].most = 0;
        r.need.is_overloaded = true;
        cr_expect_eq(look(&r, SL_SCALER_starling, 15, 1), SL_SCALE_LACKS);
        expect_running(&r, 3, 0);
}

Test(starling, a_need_without_a_load_has_nothing_in_the_end)
{
        struct rig r = rig(3, 2);

        for (uint32_t i = 0; i < 20; i++)
                look(&r, SL_SCALER_starling, 0, 1);
        expect_running(&r, 0, 0);
}

/* ---- rates ---- */

/* A second's requests in @looks looks. */
static void second(struct sl_arrival_rate *rate, double requests, uint32_t looks)
{
        double due = 0;

        for (uint32_t i = 0; i < looks; i++) {
                uint64_t n;

                due += requests / looks;
                n = (uint64_t)due;
                due -= (double)n;
                sl_arrival_rate_learn(rate, n, 1.0 / looks);
        }
}

Test(arrival_rate, of_a_steady_load_is_that_without_trend_or_burst)
{
        struct sl_arrival_rate rate = {0};

        for (uint32_t i = 0; i < 30; i++)
                second(&rate, 200, 20);
        cr_expect_float_eq(rate.rate, 200, 1);
        cr_expect_float_eq(rate.trend, 0, 1);
        cr_expect_lt(rate.burst, 0.1);
}

Test(arrival_rate, of_a_load_that_grows_is_its_slope)
{
        struct sl_arrival_rate rate = {0};

        for (uint32_t i = 0; i < 30; i++)
                second(&rate, 100 + 20 * i, 20);
        cr_expect_float_eq(rate.rate, 100 + 20 * 29.5, 25);
        cr_expect_float_eq(rate.trend, 20, 4);
}

Test(arrival_rate, a_load_times_4_is_seen_after_one_look)
{
        struct sl_arrival_rate rate = {0};

        for (uint32_t i = 0; i < 30; i++)
                second(&rate, 200, 20);
        sl_arrival_rate_learn(&rate, 40, 0.05);
        cr_expect_gt(sl_arrival_forecast(rate.rate, rate.trend, rate.burst, 0.5), 1.25 * 200);
}

Test(arrival_rate, requests_at_random_are_bursty_by_1_and_in_tens_by_10)
{
        for (uint32_t batch = 1; batch <= 10; batch += 9) {
                struct sl_arrival_rate rate = {0};
                uint64_t seed = batch;
                double sum = 0;

                for (uint32_t i = 0; i < 4000; i++) {
                        uint32_t n = 0;

                        for (uint32_t k = 0; k < 1000; k++)
                                n += scale_draw(&seed, 1000) < 10;
                        sl_arrival_rate_learn(&rate, n * batch, 0.05);
                        sum += i >= 2000 ? rate.burst / 2000 : 0;
                }
                cr_expect(sum > 0.8 * batch && sum < 1.3 * batch, "%g, not %u", sum, batch);
        }
}

Test(arrival_rate, a_forecast_is_at_most_three_times_the_rate)
{
        cr_expect_float_eq(sl_arrival_forecast(100, 1e6, 0, 10), 300, 1e-9);
        cr_expect_float_eq(sl_arrival_forecast(100, 0, 1e9, 10), 300, 1e-9);
        cr_expect_float_eq(sl_arrival_forecast(100, -1e6, 0, 10), 100, 1e-9);
        cr_expect_float_eq(sl_arrival_forecast(100, 10, 0, 1e6), 120, 1e-6);
        cr_expect_float_eq(sl_arrival_forecast(100, 0, 4, 1), 140, 1e-9);
}

/* After an idle second, or an idle minute. */
Test(arrival_rate, a_load_that_begins_is_believed_within_a_second)
{
        struct sl_arrival_rate rate = {0};

        for (uint32_t i = 0; i < 60; i++)
                sl_arrival_rate_learn(&rate, 0, i % 2 ? 1 : 60);
        for (uint32_t i = 0; i < 20; i++)
                sl_arrival_rate_learn(&rate, 5000, 0.05);
        cr_expect(rate.rate > 80000 && rate.rate < 130000, "%g", rate.rate);
        cr_expect_lt(sl_arrival_forecast(rate.rate, rate.trend, rate.burst, 0.02), 150000);
}
