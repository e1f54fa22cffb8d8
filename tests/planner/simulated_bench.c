/* SPDX-License-Identifier: Apache-2.0 */
#include "simulated_bench.h"
#include "allocation_bench.h"
#include "base/error.h"
#include "fleet.h"
#include "matrix.h"
#include "problem.h"
#include "rounds.h"

#include <criterion/criterion.h>
#include <math.h>

static struct sl_bench_result bench_at(const struct sl_problem *problem, const struct sl_matrix *matrix, double load)
{
        const struct sl_calibration calibration = {.load = load};
        struct sl_bench_result result = {0};
        struct sl_bench *bench;

        cr_assert_eq(sl_simulated_bench_new(problem, &bench, NULL), 0);
        cr_expect_eq(sl_bench_run(bench, matrix, &calibration, &result, NULL), 0);
        cr_expect_eq(bench->runs, 1);
        sl_bench_free(bench);
        return result;
}

/* One GPU and a CPU, @n models; a sample takes 100 ns on the GPU. */
struct world {
        struct sl_costs *costs;
        struct sl_problem problem;
        struct sl_matrix *matrix;
};

static struct world world_new(uint32_t n_gpus, uint32_t n_models)
{
        struct world world = {.costs = plain_fleet(n_gpus, n_models), .matrix = sl_matrix_new(n_gpus + 1, n_models)};

        world.problem.costs = world.costs;
        return world;
}

static void expect_throughput_within(struct world *world, double wanted, double error)
{
        double got = bench_at(&world->problem, world->matrix, 0).throughput;

        cr_expect_float_eq(got / wanted, 1, error, "%.9g, not %.9g", got, wanted);
        sl_matrix_free(world->matrix);
        sl_costs_free(world->costs);
}

static void expect_throughput(struct world *world, double wanted)
{
        expect_throughput_within(world, wanted, 1e-6);
}

Test(simulated_bench, one_worker_is_as_fast_as_its_cost)
{
        struct world world = world_new(1, 1);

        world.matrix->entries[0] = 8;
        expect_throughput(&world, 1e7);
}

Test(simulated_bench, data_parallel_workers_add_up)
{
        struct world world = world_new(2, 1);

        for (uint32_t d = 0; d < 3; d++)
                world.matrix->entries[d] = 8;
        expect_throughput(&world, 1e7 + 1e7 + 1e6);
}

Test(simulated_bench, an_ensemble_is_as_fast_as_its_slowest_member)
{
        for (uint32_t slow = 0; slow < 2; slow++) {
                struct world world = world_new(1, 2);

                *sl_matrix_entry(world.matrix, 0, !slow) = 8;
                *sl_matrix_entry(world.matrix, 1, slow) = 8;
                expect_throughput(&world, 1e6);
        }
}

/* Shared by time: 1 / (p + q + r) whatever p, q and r. */
Test(simulated_bench, a_device_shared_by_time_gives_each_member_what_the_others_leave)
{
        for (uint32_t slower = 1; slower < 100; slower += 7) {
                struct world world = world_new(1, 2);

                for (uint32_t m = 0; m < 2; m++)
                        *sl_matrix_entry(world.matrix, 0, m) = 8;
                sl_costs_cell(world.costs, 1, 1, 0)->latency_ns *= slower;
                expect_throughput(&world, 1e7 / (1 + slower));
        }
}

Test(simulated_bench, equal_members_share_a_device_equally_however_many)
{
        for (uint32_t n = 1; n <= 400; n += n < 20 ? 1 : 95) {
                struct world world = world_new(1, n);

                world.costs->devices[0].memory_bytes = 1u << 20;
                for (uint32_t m = 0; m < n; m++)
                        *sl_matrix_entry(world.matrix, 0, m) = 8;
                expect_throughput(&world, 1e7 / n);
        }
}

Test(simulated_bench, a_pair_that_does_not_hurt_each_other_runs_as_if_alone)
{
        struct world world = world_new(1, 2);

        for (uint32_t m = 0; m < 2; m++)
                *sl_matrix_entry(world.matrix, 0, m) = 8;
        *sl_costs_pair(world.costs, 1, 0, 1) = *sl_costs_pair(world.costs, 1, 1, 0) = 1;
        expect_throughput(&world, 1e7);
}

Test(simulated_bench, busy_pairs_are_slower_by_what_was_measured)
{
        for (double pair = 1.05; pair < 12; pair += 0.05) {
                struct world world = world_new(1, 2);

                for (uint32_t m = 0; m < 2; m++)
                        *sl_matrix_entry(world.matrix, 0, m) = 8;
                *sl_costs_pair(world.costs, 1, 0, 1) = *sl_costs_pair(world.costs, 1, 1, 0) = pair;
                expect_throughput_within(&world, 1e7 / pair, 1e-6);
        }
}

Test(simulated_bench, members_beside_several_are_slower_by_what_was_measured)
{
        for (double pair = 1.5; pair < 1000; pair *= 1.7) {
                struct world world = world_new(1, 3);

                for (uint32_t m = 0; m < 3; m++) {
                        *sl_matrix_entry(world.matrix, 0, m) = 8;
                        for (uint32_t other = 0; other < 3; other++)
                                *sl_costs_pair(world.costs, 1, m, other) = pair;
                }
                expect_throughput_within(&world, 1e7 / (1 + 2 * (pair - 1)), 1e-3);
        }
}

Test(simulated_bench, what_does_not_fit_runs_at_zero)
{
        struct world world = world_new(1, 1);

        world.matrix->entries[0] = 32;
        world.costs->devices[0].memory_bytes = 419;
        cr_expect_eq(bench_at(&world.problem, world.matrix, 5).throughput, 0);
        cr_expect(isinf(bench_at(&world.problem, world.matrix, 5).latency_ns));
        world.costs->devices[0].memory_bytes = 420;
        expect_throughput(&world, 1e7);
}

Test(simulated_bench, latency_is_the_batch_time_at_no_load_and_grows_with_it)
{
        struct world world = world_new(1, 1);
        double before = 800;

        world.matrix->entries[0] = 8;
        cr_expect_float_eq(bench_at(&world.problem, world.matrix, 1).latency_ns, 800, 1e-3);
        for (double load = 1e6; load < 1e7; load += 1e6) {
                double latency = bench_at(&world.problem, world.matrix, load).latency_ns;

                cr_expect_gt(latency, before);
                before = latency;
        }
        cr_expect(isinf(bench_at(&world.problem, world.matrix, 1e7).latency_ns));
        expect_throughput(&world, 1e7);
}

/*
 * By hand. One worker is M/D/1 (Pollaczek and Khinchine); more are Sakasegawa's formula, halved since batches take the same time.
 * Beside another model on one device, at 0.3 of what one alone does: busy(1 - busy / 2) = 0.3. A GPU and a CPU: 10 of 11 batches go
 * to the GPU.
 */
Test(simulated_bench, latency_at_a_load_is_the_batch_time_and_the_wait_before_it)
{
        static const struct {
                uint32_t n_gpus, n_models;
                bool has_cpu;
                double load, latency_ns;
        } cases[] = {
                {1, 1, false, 0.25e7, 933.333333},
                {1, 1, false, 0.5e7, 1200},
                {1, 1, false, 0.8e7, 2400},
                {2, 1, false, 1e7, 946.460361},
                {2, 1, false, 1.6e7, 1523.652272},
                {3, 1, false, 1.5e7, 875.085715},
                {3, 1, false, 2.4e7, 1243.318489},
                {1, 2, false, 0.3e7, 1264.910641},
                {1, 1, true, 0.55e7, 1720.837020},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct world world = world_new(cases[i].n_gpus, cases[i].n_models);

                for (uint32_t d = 0; d < cases[i].n_gpus + cases[i].has_cpu; d++)
                        for (uint32_t m = 0; m < cases[i].n_models; m++)
                                *sl_matrix_entry(world.matrix, d, m) = 8;
                double latency_ns = bench_at(&world.problem, world.matrix, cases[i].load).latency_ns;
                cr_expect_float_eq(latency_ns / cases[i].latency_ns, 1, 1e-6, "case %zu: %.9g", i, latency_ns);
                sl_matrix_free(world.matrix);
                sl_costs_free(world.costs);
        }
}

/* On devices of their own the slower one's latency is the ensemble's, in whatever order they stand. */
Test(simulated_bench, the_latency_is_that_of_the_slowest_member)
{
        for (uint32_t slow = 0; slow < 2; slow++) {
                struct world world = world_new(1, 2);

                *sl_matrix_entry(world.matrix, 0, !slow) = 8;
                *sl_matrix_entry(world.matrix, 1, slow) = 8;
                cr_expect_float_eq(bench_at(&world.problem, world.matrix, 0.5e6).latency_ns, 12000, 1e-3);
                sl_matrix_free(world.matrix);
                sl_costs_free(world.costs);
        }
}

/* A new worker on a device of its own never makes an ensemble slower, in thousands of fleets. */
Test(simulated_bench, another_worker_on_an_idle_device_is_never_slower)
{
        for (uint64_t seed = 1; seed < SL_ROUNDS(3000); seed++) {
                uint64_t stream = seed;
                struct sl_costs *costs = random_fleet(&stream, 6, 5);
                struct sl_problem problem = {.costs = costs};
                struct sl_matrix *matrix = sl_matrix_new(costs->n_devices, costs->n_models);
                uint32_t idle = costs->n_devices - 1, model = draw(&stream, costs->n_models);
                bool good = costs->n_devices > 1 && sl_costs_worker(costs, idle, model, 8);

                for (uint32_t d = 0; d < costs->n_devices; d++) {
                        costs->devices[d].memory_of = d;
                        costs->devices[d].memory_bytes = 1u << 20;
                }
                for (uint32_t m = 0; m < costs->n_models && good; m++) {
                        uint32_t device = draw(&stream, idle);

                        good = sl_costs_worker(costs, device, m, 8);
                        *sl_matrix_entry(matrix, device, m) = 8;
                }
                if (good) {
                        double before = bench_at(&problem, matrix, 0).throughput;

                        *sl_matrix_entry(matrix, idle, model) = 8;
                        double after = bench_at(&problem, matrix, 0).throughput;
                        cr_expect_geq(after, before * (1 - 1e-6), "seed %lu: %g, then %g", seed, before, after);
                }
                sl_matrix_free(matrix);
                sl_costs_free(costs);
        }
}

/*
 * By all sets of busy workers: of model i, which alone does 1 / periods[i] samples, C(i) is what it does on the average over the
 * sets of the others, in which min(1, cores / busy) of a core is its own.
 */
static double throughput_by_sets(const double *periods, uint32_t n, double cores)
{
        double busy[8], rate = 0;

        for (uint32_t i = 0; i < n; i++)
                busy[i] = 1;
        for (int round = 0; round < 2000; round++) {
                double could[8];

                rate = INFINITY;
                for (uint32_t i = 0; i < n; i++) {
                        could[i] = 0;
                        for (uint32_t set = 0; set < 1u << n; set++) {
                                double chance = 1, computing = 0;

                                if (!(set >> i & 1))
                                        continue;
                                for (uint32_t k = 0; k < n; k++) {
                                        computing += set >> k & 1;
                                        if (k != i)
                                                chance *= set >> k & 1 ? busy[k] : 1 - busy[k];
                                }
                                could[i] += chance * fmin(1, cores / computing) / periods[i];
                        }
                        rate = fmin(rate, could[i]);
                }
                for (uint32_t i = 0; i < n; i++)
                        busy[i] = 0.5 * busy[i] + 0.5 * rate / could[i];
        }
        return rate;
}

Test(simulated_bench, a_let_of_several_cores_computes_as_many_workers_at_once)
{
        static const double periods[] = {1, 2, 3, 5, 8};

        for (uint32_t n = 1; n <= 5; n++)
                for (uint32_t cores = 2; cores <= 4; cores++) {
                        struct world world = world_new(0, n);

                        world.costs->classes[0].units = cores;
                        for (uint32_t m = 0; m < n; m++) {
                                *sl_matrix_entry(world.matrix, 0, m) = 8;
                                sl_costs_cell(world.costs, 0, m, 0)->latency_ns = (uint64_t)(8000 * periods[m]);
                        }
                        expect_throughput(&world, 1e6 * throughput_by_sets(periods, n, cores));
                }
}
