/* SPDX-License-Identifier: Apache-2.0 */
#include "bound.h"
#include "base/error.h"
#include "device_time_bound.h"
#include "exhaustive.h"
#include "fleet.h"
#include "matrix.h"
#include "problem.h"
#include "rounds.h"
#include "search.h"
#include "simulated_bench.h"

#include <criterion/criterion.h>

static void expect_bound(const struct sl_costs *costs, double wanted)
{
        const struct sl_problem problem = {.costs = costs};
        struct sl_error error = {""};
        double bound = 0;

        cr_assert_eq(sl_bound_throughput(&problem, &bound, &error), 0, "%s", error.text);
        cr_expect_float_eq(bound / wanted, 1, 1e-6, "%.9g, not %.9g", bound, wanted);
}

/* A GPU does 1e7 samples a second, the CPU 1e6, for two models. */
Test(bound, is_the_device_time_of_a_fleet_by_hand)
{
        struct sl_costs *costs = plain_fleet(2, 2);

        expect_bound(costs, (1e7 + 1e7 + 1e6) / 2);
        *sl_costs_pair(costs, 1, 0, 1) = *sl_costs_pair(costs, 1, 1, 0) = 1;
        expect_bound(costs, 1e7 + 1e7 + 1e6 / 2);
        costs->devices[0].memory_bytes = costs->devices[1].memory_bytes = 0;
        expect_bound(costs, 1e6 / 2);
        sl_costs_free(costs);
}

/* Three models of 1e6 samples a second each, alone. */
Test(bound, a_let_of_several_cores_has_their_time)
{
        static const double wanted[] = {1e6 / 3, 1e6 / 3, 2e6 / 3, 1e6, 1e6};

        for (uint32_t cores = 0; cores <= 4; cores++) {
                struct sl_costs *costs = plain_fleet(0, 3);
                const struct sl_problem problem = {.costs = costs};
                double bound = 0;

                costs->classes[0].units = cores;
                expect_bound(costs, wanted[cores]);
                cr_assert_eq(sl_device_time_bound(&problem, &bound, NULL), 0);
                cr_expect_float_eq(bound / wanted[cores], 1, 1e-3, "%u cores: %g", cores, bound);
                sl_costs_free(costs);
        }
}

/* @weights and @workspace bytes of each worker on a GPU, whatever its batch; models there do not slow each other down. */
static struct sl_costs *tight_fleet(uint32_t n_gpus, uint64_t weights, uint64_t workspace)
{
        struct sl_costs *costs = plain_fleet(n_gpus, 2);

        for (uint32_t m = 0; m < 2; m++) {
                costs->models[m].weights_bytes = weights;
                for (uint32_t b = 0; b < costs->n_batches; b++)
                        sl_costs_cell(costs, 1, m, b)->workspace_bytes = workspace;
        }
        *sl_costs_pair(costs, 1, 0, 1) = *sl_costs_pair(costs, 1, 1, 0) = 1;
        return costs;
}

/*
 * By hand. A GPU has 1,000 bytes; without them both models would have it all the time, and the CPU half of the time each. A model
 * that has a GPU for x of the time has x of its bytes there:
 *     900 of weights and 80 of workspace     980 (x + x) = 1000
 *     80 of weights and 900 of workspace     the same
 *     two lets of one memory, 100 and 450    100 (x + x) + 450 * 4 x = 1000 where each model has x of each let
 */
Test(bound, memory_is_shared_among_weights_once_and_workspaces_of_all_lets)
{
        struct sl_costs *costs = tight_fleet(1, 900, 80);

        expect_bound(costs, 1e7 * 500 / 980 + 1e6 / 2);
        sl_costs_free(costs);
        costs = tight_fleet(1, 80, 900);
        expect_bound(costs, 1e7 * 500 / 980 + 1e6 / 2);
        sl_costs_free(costs);
        costs = tight_fleet(2, 100, 450);
        costs->devices[1].memory_of = 0;
        expect_bound(costs, 2 * 1e7 * 0.5 + 1e6 / 2);
        sl_costs_free(costs);
        costs = tight_fleet(2, 100, 450); /* each with a memory of its own: 550 (x + x) = 1000 */
        expect_bound(costs, 2 * 1e7 * 500 / 550 + 1e6 / 2);
        sl_costs_free(costs);
}

Test(bound, nothing_that_may_run_is_an_error)
{
        struct sl_costs *costs = plain_fleet(1, 1);
        const bool forbidden[] = {true, true};
        const struct sl_problem problem = {.costs = costs, .forbidden = forbidden};
        struct sl_error error = {""};
        double bound;

        cr_expect_eq(sl_bound_throughput(&problem, &bound, &error), -ENOSPC);
        cr_expect_str_eq(error.text, "bound: no worker may be anywhere");
        sl_costs_free(costs);
}

/* The best of all matrices <= CBC's bound <= the bound without memory and without a solver. */
static void check_fleet(const struct sl_problem *problem, uint64_t seed)
{
        struct sl_search search = {.problem = problem};
        struct sl_matrix *matrix = sl_matrix_new(problem->costs->n_devices, problem->costs->n_models);
        struct sl_error error = {""};
        double best, bound, loose;

        cr_assert_eq(sl_simulated_bench_new(problem, &search.bench, NULL), 0);
        if (sl_exhaustive(&search, 3000, matrix, &best, NULL) == 0) {
                cr_expect_eq(sl_bound_throughput(problem, &bound, &error), 0, "seed %lu: %s", seed, error.text);
                cr_expect_leq(best, bound * (1 + 1e-6), "seed %lu", seed);
                cr_assert_eq(sl_device_time_bound(problem, &loose, NULL), 0);
                cr_expect_leq(bound, loose * (1 + 1e-6), "seed %lu: %g, without memory %g", seed, bound, loose);
        }
        sl_bench_free(search.bench);
        sl_matrix_free(matrix);
}

Test(bound, no_matrix_of_a_thousand_fleets_exceeds_it)
{
        for (uint64_t seed = 1; seed <= SL_ROUNDS(1000); seed++) {
                uint64_t stream = seed;
                struct sl_costs *costs = random_fleet(&stream, 3, 3);
                const struct sl_problem problem = {.costs = costs};

                check_fleet(&problem, seed);
                sl_costs_free(costs);
        }
}
