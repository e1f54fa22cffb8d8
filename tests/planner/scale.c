/* SPDX-License-Identifier: Apache-2.0 */
#include "scale.h"
#include "base/error.h"
#include "rounds.h"
#include "scale_fleet.h"
#include "scale_oracle.h"

#include <criterion/criterion.h>
#include <math.h>

/* ---- the paper's example: table 2, and table 3 by it ---- */

static const struct sl_scale_kind table_2[] = {
        {.cost = 1, .rate = 5, .latency_s = 0.2, .most = 1000},     /* A: 4 CPUs */
        {.cost = 3, .rate = 100, .latency_s = 0.02, .most = 1000},  /* B: an Inferentia core */
        {.cost = 16, .rate = 800, .latency_s = 0.015, .most = 1000} /* C: a V100 */
};

static void expect_oracle(double load, double latency_s, double slack, const int32_t wanted[3], double price)
{
        const struct sl_scale_need need = {.load = load, .latency_s = latency_s, .n = 3};
        struct sl_scale_problem problem = scale_problem(&need, 1, table_2);
        struct sl_error error = {""};
        int32_t change[3];

        problem.slack = slack;
        cr_assert_eq(sl_scale_oracle(&problem, change, &error), 0, "%s", error.text);
        cr_expect_float_eq(sl_scale_price(&problem, change), price, 1e-9, "%g requests a second in %g s", load, latency_s);
        for (uint32_t k = 0; k < 3; k++)
                cr_expect_eq(change[k], wanted[k], "%g requests a second in %g s: %d of %c, not %d", load, latency_s, change[k],
                        'A' + (int)k, wanted[k]);
}

Test(scale_oracle, has_the_answers_of_table_3)
{
        expect_oracle(10, 0.3, 1, (const int32_t[]){2, 0, 0}, 2);
        expect_oracle(10, 0.05, 1, (const int32_t[]){0, 1, 0}, 3);
        expect_oracle(1000, 0.3, 1, (const int32_t[]){0, 2, 1}, 22);
}

/* 1,050 requests a second: 200 of B and 800 of C are no longer enough, and ten of A more cost as much as three of B and one. */
Test(scale_oracle, has_others_with_slack)
{
        expect_oracle(1000, 0.05, 1.05, (const int32_t[]){0, 3, 1}, 25);
        expect_oracle(10, 0.05, 1.05, (const int32_t[]){0, 1, 0}, 3);
}

Test(scale_oracle, says_when_nothing_will_do)
{
        const struct sl_scale_need need = {.load = 10, .latency_s = 0.01, .n = 3};
        const struct sl_scale_problem problem = scale_problem(&need, 1, table_2);
        struct sl_error error = {""};
        int32_t change[3];

        cr_expect_eq(sl_scale_oracle(&problem, change, &error), -ENOSPC);
        cr_expect_str_eq(error.text, "oracle: no instances of 3 kinds satisfy 1 needs within the resources");
}

/* ---- random fleets ---- */

/* Every change there is, for few kinds: the least cost, as the formulas stand in scale.h; INFINITY: none. */
static bool holds(const struct sl_scale_problem *p, const int32_t *change)
{
        for (uint32_t i = 0; i < p->n_needs; i++) {
                const struct sl_scale_need *need = &p->needs[i];
                double capacity = 0;

                for (uint32_t k = need->first; k < need->first + need->n; k++) {
                        bool suits = (need->latency_s == 0 || p->kinds[k].latency_s <= need->latency_s) &&
                                     p->kinds[k].accuracy >= need->accuracy;

                        if (change[k] > 0 && !suits)
                                return false;
                        capacity += suits ? p->kinds[k].rate * ((int32_t)p->kinds[k].n + change[k]) : 0;
                }
                if (capacity < p->slack * need->load * (1 - 1e-9))
                        return false;
        }
        for (uint32_t i = 0; i < SL_SCALE_RESOURCES; i++) {
                double held = 0;

                for (uint32_t k = 0; k < p->n_kinds; k++)
                        held += p->kinds[k].resources[i] * ((int32_t)p->kinds[k].n + change[k]);
                if (held > p->resources[i].total * (1 + 1e-9))
                        return false;
        }
        return true;
}

static double cost_of(const struct sl_scale_problem *p, const int32_t *change)
{
        double cost = 0;

        for (uint32_t k = 0; k < p->n_kinds; k++)
                cost += change[k] * p->kinds[k].cost + (change[k] > 0 ? change[k] * p->lambda * p->kinds[k].load_s : 0);
        return cost;
}

static double brute_force(const struct sl_scale_problem *p, int32_t *change, uint32_t kind)
{
        double best = INFINITY;

        if (kind == p->n_kinds)
                return holds(p, change) ? cost_of(p, change) : INFINITY;
        for (change[kind] = -(int32_t)p->kinds[kind].n; change[kind] <= (int32_t)(p->kinds[kind].most - p->kinds[kind].n);
                change[kind]++)
                best = fmin(best, brute_force(p, change, kind + 1));
        return best;
}

Test(scale_oracle, is_the_best_of_all_changes_of_small_fleets)
{
        for (uint64_t seed = 1; seed <= SL_ROUNDS(200); seed++) {
                struct scale_fleet fleet;
                int32_t change[KINDS_MOST], tried[KINDS_MOST];
                struct sl_error error = {""};
                double best;
                int r;

                scale_fleet(seed, 1 + seed % 2, 2, 3, &fleet);
                best = brute_force(&fleet.problem, tried, 0);
                r = sl_scale_oracle(&fleet.problem, change, &error);
                cr_assert_eq(r, isinf(best) ? -ENOSPC : 0, "seed %lu: %s, brute force has %g", seed, error.text, best);
                if (r < 0)
                        continue;
                cr_expect(holds(&fleet.problem, change), "seed %lu", seed);
                cr_expect_float_eq(sl_scale_cost(&fleet.problem, change), best, 1e-6 * (1 + fabs(best)), "seed %lu: %g, not %g",
                        seed, sl_scale_cost(&fleet.problem, change), best);
        }
}
