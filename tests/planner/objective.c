/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of objectives: which of two allocations scores more, and that none that carries the load scores less than one that does
 * not.
 */
#include "objective.h"
#include "allocation_bench.h"
#include "costs.h"
#include "fleet.h"
#include "matrix.h"
#include "problem.h"

#include <criterion/criterion.h>
#include <math.h>

#define LOAD 100.0

/* Two GPUs and a CPU, two models. */
struct world {
        struct sl_costs *costs;
        struct sl_problem problem;
        struct sl_matrix *matrix;
};

static struct world world_new(void)
{
        struct world world = {.costs = plain_fleet(2, 2), .matrix = sl_matrix_new(3, 2)};

        world.problem.costs = world.costs;
        world.matrix->entries[0] = world.matrix->entries[1] = 8;
        return world;
}

static void world_free(struct world *world)
{
        sl_matrix_free(world->matrix);
        sl_costs_free(world->costs);
}

static double score_at(const struct world *world, enum sl_objective objective, double load, double throughput, double latency_ns)
{
        const struct sl_bench_result result = {throughput, latency_ns};

        return sl_objective_score(objective, load, &world->problem, world->matrix, &result);
}

static double score(const struct world *world, enum sl_objective objective, double throughput, double latency_ns)
{
        return score_at(world, objective, LOAD, throughput, latency_ns);
}

Test(objective, the_larger_throughput_wins_whatever_the_latency)
{
        struct world world = world_new();

        cr_expect_gt(score(&world, SL_MAX_THROUGHPUT, 201, 9e9), score(&world, SL_MAX_THROUGHPUT, 200, 1));
        world_free(&world);
}

Test(objective, the_shorter_latency_wins_whatever_the_throughput)
{
        struct world world = world_new();

        for (double latency_ns = 1e3; latency_ns < 1e12; latency_ns *= 10)
                cr_expect_gt(score(&world, SL_MIN_LATENCY, LOAD * 1.001, latency_ns),
                        score(&world, SL_MIN_LATENCY, LOAD * 1000, latency_ns * 1.01));
        world_free(&world);
}

/* One that carries just the load has an endless queue. Of those that do not carry it the faster one is nearer. */
Test(objective, what_does_not_carry_the_load_loses_to_all_that_do_and_is_better_the_nearer_it_comes)
{
        struct world world = world_new();

        for (int objective = SL_MAX_THROUGHPUT + 1; objective < SL_OBJECTIVES; objective++) {
                double worst = score(&world, objective, LOAD * 1.001, 1e15), before = -INFINITY;

                for (double throughput = 0; throughput <= LOAD; throughput += LOAD / 4) {
                        double now = score(&world, objective, throughput, 1);

                        cr_expect_gt(now, before, "%s at %g", sl_objective_names[objective], throughput);
                        cr_expect_lt(now, worst, "%s at %g", sl_objective_names[objective], throughput);
                        before = now;
                }
        }
        world_free(&world);
}

Test(objective, less_memory_wins_on_all_devices_together)
{
        struct world world = world_new();
        double less = score(&world, SL_MIN_MEMORY, 1e3, 1e9), more;

        *sl_matrix_entry(world.matrix, 2, 1) = 8;
        more = score(&world, SL_MIN_MEMORY, 1e9, 1);
        cr_expect_lt(more, less);
        *sl_matrix_entry(world.matrix, 2, 1) = 16;
        cr_expect_lt(score(&world, SL_MIN_MEMORY, 1e9, 1), more);
        world_free(&world);
}

Test(objective, fewer_devices_win_and_of_as_many_the_larger_throughput)
{
        struct world world = world_new();
        double one_slow = score(&world, SL_MIN_DEVICES, LOAD * 1.001, 1e9), one = score(&world, SL_MIN_DEVICES, 1e4, 1e9);
        double one_slowest = score_at(&world, SL_MIN_DEVICES, 1e-3, 2e-3, 1e9);

        *sl_matrix_entry(world.matrix, 1, 0) = 8;
        double two_slow = score(&world, SL_MIN_DEVICES, LOAD * 1.001, 1e9), two = score(&world, SL_MIN_DEVICES, 1e9, 1);
        *sl_matrix_entry(world.matrix, 2, 0) = 8;
        cr_expect_gt(one, one_slow);
        cr_expect_gt(one_slow, two);
        cr_expect_gt(one_slowest, two);
        cr_expect_gt(two, two_slow);
        cr_expect_gt(two_slow, score(&world, SL_MIN_DEVICES, 1e12, 1));
        world_free(&world);
}
