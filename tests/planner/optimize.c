/* SPDX-License-Identifier: Apache-2.0 */
#include "annealing.h"
#include "base/error.h"
#include "device_time_bound.h"
#include "exhaustive.h"
#include "fleet.h"
#include "matrix.h"
#include "optimizer.h"
#include "problem.h"
#include "rounds.h"
#include "search.h"
#include "simulated_bench.h"
#include "worst_fit.h"

#include <criterion/criterion.h>
#include <string.h>

#define FLEETS SL_ROUNDS(1500)

static struct sl_search search_new(const struct sl_problem *problem)
{
        struct sl_search search = {.problem = problem};

        cr_assert_eq(sl_simulated_bench_new(problem, &search.bench, NULL), 0);
        return search;
}

/* The optimum of the costs' first @n_devices rows; 0: nothing fits; -1: too many matrices. */
static double optimum_of(const struct sl_costs *costs, uint32_t n_devices)
{
        uint32_t devices[8], models[8];
        struct sl_costs *part;
        double score = 0;

        for (uint32_t i = 0; i < 8; i++)
                devices[i] = models[i] = i;
        cr_assert_eq(sl_costs_select(costs, devices, n_devices, models, costs->n_models, &part, NULL), 0);
        struct sl_problem problem = {.costs = part};
        struct sl_search search = search_new(&problem);
        struct sl_matrix *matrix = sl_matrix_new(n_devices, part->n_models);
        int r = sl_exhaustive(&search, 3000, matrix, &score, NULL);
        cr_expect(r == 0 || r == -E2BIG || r == -ENOSPC);
        cr_expect(r < 0 || sl_matrix_check(&problem, matrix, NULL) == 0);
        sl_bench_free(search.bench);
        sl_matrix_free(matrix);
        sl_costs_free(part);
        return r == -E2BIG ? -1 : r < 0 ? 0 : score;
}

Test(exhaustive, another_device_never_lowers_the_optimum)
{
        uint32_t compared = 0;

        for (uint64_t seed = 1; seed < FLEETS; seed++) {
                uint64_t stream = seed;
                struct sl_costs *costs = random_fleet(&stream, 4, 3);

                for (uint32_t n = 1; n < costs->n_devices; n++) {
                        bool own = true;

                        for (uint32_t d = 0; d <= n; d++)
                                own = own && costs->devices[d].memory_of == d;
                        double before = own ? optimum_of(costs, n) : -1, after = before < 0 ? -1 : optimum_of(costs, n + 1);

                        if (after < 0)
                                continue;
                        cr_expect_geq(after, before, "seed %lu: %u devices %g, one more %g", seed, n, before, after);
                        compared++;
                }
                sl_costs_free(costs);
        }
        cr_expect_gt(compared, FLEETS / 10);
}

Test(exhaustive, too_many_matrices_are_refused_and_so_is_a_fleet_that_holds_none)
{
        struct sl_costs *costs = plain_fleet(4, 8);
        struct sl_problem problem = {.costs = costs};
        struct sl_search search = search_new(&problem);
        struct sl_matrix *matrix = sl_matrix_new(5, 8);
        double score;

        cr_expect_eq(sl_exhaustive(&search, 1e6, matrix, &score, NULL), -E2BIG);
        cr_expect_eq(search.bench->runs, 0);
        sl_bench_free(search.bench);
        sl_matrix_free(matrix);
        sl_costs_free(costs);
        costs = plain_fleet(1, 1);
        problem.costs = costs;
        for (uint32_t d = 0; d < 2; d++)
                costs->devices[d].memory_bytes = 0;
        search = search_new(&problem);
        matrix = sl_matrix_new(2, 1);
        cr_expect_eq(sl_exhaustive(&search, 1e6, matrix, &score, NULL), -ENOSPC);
        sl_bench_free(search.bench);
        sl_matrix_free(matrix);
        sl_costs_free(costs);
}

/* Of equal models: all time divided among them. */
Test(device_time_bound, equal_models_divide_what_the_devices_do_together)
{
        for (uint32_t n = 1; n < 6; n++) {
                struct sl_costs *costs = plain_fleet(n, 4);
                struct sl_problem problem = {.costs = costs};
                double bound;

                cr_assert_eq(sl_device_time_bound(&problem, &bound, NULL), 0);
                cr_expect_float_eq(bound / ((n * 1e7 + 1e6) / 4), 1, 1e-9);
                sl_costs_free(costs);
        }
}

/* Two models, each fast on another device, by hand: all of each device to its own model. */
Test(device_time_bound, models_go_where_they_are_fast)
{
        struct sl_costs *costs = plain_fleet(1, 2);
        struct sl_problem problem = {.costs = costs};
        double bound;

        for (uint32_t b = 0; b < 3; b++)
                sl_costs_cell(costs, 0, 1, b)->latency_ns = 100 * costs->batches[b];
        cr_assert_eq(sl_device_time_bound(&problem, &bound, NULL), 0);
        cr_expect_float_eq(bound / 1e7, 1, 1e-2, "%g", bound);
        cr_expect_geq(bound, 1e7 * (1 - 1e-9));
        sl_costs_free(costs);
}

Test(device_time_bound, a_model_that_runs_nowhere_is_named)
{
        struct sl_costs *costs = plain_fleet(1, 2);
        struct sl_problem problem = {.costs = costs};
        struct sl_error error;
        double bound;

        costs->models[1].weights_bytes = 1u << 20;
        cr_expect_eq(sl_device_time_bound(&problem, &bound, &error), -ENOSPC);
        cr_expect_str_eq(error.text, "allocation: \"m1\" runs on none of 2 devices");
        sl_costs_free(costs);
}

/* From @start, twice with the same seed. */
static void check_annealing(const struct sl_problem *problem, const struct sl_matrix *start, uint64_t seed)
{
        const struct sl_annealing_options options = {.benches = 150, .seed = seed};
        struct sl_search search = search_new(problem);
        struct sl_matrix *matrices[2];
        struct sl_error error = {""};
        double before, scores[2];

        cr_assert_eq(sl_search_score(&search, start, &before, NULL), 0);
        for (int i = 0; i < 2; i++) {
                matrices[i] = sl_matrix_new(start->n_devices, start->n_models);
                sl_matrix_copy(matrices[i], start);
                cr_assert_eq(sl_annealing(&search, &options, matrices[i], &scores[i], &error), 0, "seed %lu: %s", seed, error.text);
                cr_expect_eq(sl_matrix_check(problem, matrices[i], &error), 0, "seed %lu: %s", seed, error.text);
        }
        cr_expect_geq(scores[0], before, "seed %lu: %g from %g", seed, scores[0], before);
        cr_expect(sl_matrix_equal(matrices[0], matrices[1]) && scores[0] == scores[1], "seed %lu", seed);
        for (int i = 0; i < 2; i++)
                sl_matrix_free(matrices[i]);
        sl_bench_free(search.bench);
}

/* Valid, fitting, never worse than its start, the same for a seed. */
Test(annealing, holds_its_word_in_thousands_of_fleets)
{
        uint32_t annealed = 0;

        for (uint64_t seed = 1; seed < 2 * FLEETS; seed++) {
                uint64_t stream = seed;
                struct sl_costs *costs = random_fleet(&stream, 5, 5);
                struct sl_problem problem = {.costs = costs, .headroom = 0.01 * draw(&stream, 20)};
                struct sl_matrix *start = sl_matrix_new(costs->n_devices, costs->n_models);

                if (sl_worst_fit(&problem, sl_worst_fit_batch(&problem), start, NULL) == 0) {
                        check_annealing(&problem, start, seed);
                        annealed++;
                }
                sl_matrix_free(start);
                sl_costs_free(costs);
        }
        cr_expect_gt(annealed, FLEETS / 5);
}

static void check_optimum(const struct sl_problem *problem, uint64_t seed)
{
        struct sl_search search = search_new(problem);
        struct sl_optimizer_options options = sl_optimizer_defaults(&search);
        struct sl_matrix *matrices[2];
        struct sl_optimum found[2];
        struct sl_error error = {""};

        options.starts = 2;
        options.benches = 60;
        options.max_iter = 3;
        options.exhaustive_max = 200;
        options.seed = seed;
        for (int i = 0; i < 2; i++) {
                matrices[i] = sl_matrix_new(problem->costs->n_devices, problem->costs->n_models);
                cr_assert_eq(sl_optimize(&search, &options, matrices[i], &found[i], &error), 0, "seed %lu: %s", seed, error.text);
                cr_expect_eq(sl_matrix_check(problem, matrices[i], &error), 0, "seed %lu: %s", seed, error.text);
        }
        cr_expect(sl_matrix_equal(matrices[0], matrices[1]) && found[0].score == found[1].score, "seed %lu", seed);
        cr_expect_geq(found[0].greedy_score, found[0].worst_fit_score);
        cr_expect_geq(found[0].score, found[0].greedy_score);
        /* 1e-3: the nodes of the simulated bench. */
        cr_expect_leq(found[0].score, found[0].bound * (1 + 1e-3), "seed %lu: above the bound", seed);
        for (int i = 0; i < 2; i++)
                sl_matrix_free(matrices[i]);
        sl_bench_free(search.bench);
}

/* Valid, fitting, never worse than WFD or BGO, the same for a seed, and below the bound. */
Test(optimizer, holds_its_word_in_thousands_of_fleets)
{
        for (uint64_t seed = 1; seed < FLEETS; seed++) {
                uint64_t stream = seed;
                struct sl_costs *costs = random_fleet(&stream, 5, 5);
                struct sl_problem problem = {.costs = costs};
                struct sl_matrix *start = sl_matrix_new(costs->n_devices, costs->n_models);
                struct sl_search search = {.problem = &problem};

                if (sl_worst_fit(&problem, sl_optimizer_defaults(&search).default_batch, start, NULL) == 0)
                        check_optimum(&problem, seed);
                sl_matrix_free(start);
                sl_costs_free(costs);
        }
}

/* Has an answer, and says of which batch sizes. */
static uint32_t optimize_once(const struct sl_problem *problem, uint32_t device, uint32_t model)
{
        struct sl_search search = search_new(problem);
        struct sl_optimizer_options options = sl_optimizer_defaults(&search);
        struct sl_matrix *matrix = sl_matrix_new(problem->costs->n_devices, problem->costs->n_models);
        struct sl_optimum optimum;
        struct sl_error error = {""};

        options.benches = 60;
        cr_assert_eq(sl_optimize(&search, &options, matrix, &optimum, &error), 0, "%s", error.text);
        cr_expect_eq(sl_matrix_check(problem, matrix, &error), 0, "%s", error.text);
        uint32_t batch = sl_matrix_batch(matrix, device, model);
        sl_bench_free(search.bench);
        sl_matrix_free(matrix);
        return batch;
}

Test(optimizer, begins_with_smaller_batches_where_the_default_has_no_room_or_no_cost)
{
        struct sl_costs *costs = plain_fleet(0, 2);
        struct sl_problem problem = {.costs = costs};

        /* Batches of 2, 4, 8; m1 has no cost at 8, and then only at 2. */
        for (uint32_t b = 0; b < 3; b++)
                costs->batches[b] = 2u << b;
        sl_costs_cell(costs, 0, 1, 2)->latency_ns = 0;
        cr_expect_leq(optimize_once(&problem, 0, 1), 4);
        sl_costs_cell(costs, 0, 1, 1)->latency_ns = 0;
        cr_expect_eq(optimize_once(&problem, 0, 1), 2);
        /* Weights and workspaces of 80, 160 and 320 bytes each: room for two of the smallest. */
        costs->devices[0].memory_bytes = 2 * (100 + 80);
        cr_expect_eq(optimize_once(&problem, 0, 0), 2);
        sl_costs_free(costs);
}

/* WFD gives the large model the device that the other one needs, and packs five that fit in one way only. */
Test(optimizer, finds_room_where_worst_fit_finds_none)
{
        static const uint64_t weights[] = {300, 300, 200, 200, 200};
        struct sl_costs *costs = plain_fleet(1, 2);
        struct sl_problem problem = {.costs = costs};

        costs->models[0].weights_bytes = 1000;
        costs->models[1].weights_bytes = 900;
        costs->devices[0].memory_bytes = 1080;
        for (uint32_t b = 0; b < 3; b++)
                sl_costs_cell(costs, 0, 1, b)->latency_ns = 0;
        cr_expect_eq(optimize_once(&problem, 0, 1), 8);
        sl_costs_free(costs);
        costs = plain_fleet(2, 5);
        problem.costs = costs;
        costs->devices[0].memory_bytes = 2 * (300 + 80);
        costs->devices[1].memory_bytes = 3 * (200 + 80);
        for (uint32_t m = 0; m < 5; m++) {
                costs->models[m].weights_bytes = weights[m];
                for (uint32_t b = 0; b < 3; b++)
                        sl_costs_cell(costs, 0, m, b)->latency_ns = 0;
                for (uint32_t b = 1; b < 3; b++)
                        sl_costs_cell(costs, 1, m, b)->latency_ns = 0;
        }
        cr_expect_eq(optimize_once(&problem, 0, 1), 8);
        cr_expect_eq(optimize_once(&problem, 1, 4), 8);
        sl_costs_free(costs);
}

Test(optimizer, gives_no_model_more_workers_than_it_may_have)
{
        struct sl_costs *costs = plain_fleet(3, 1);
        struct sl_problem problem = {.costs = costs, .workers_max = 2};
        struct sl_search search = search_new(&problem);
        struct sl_optimizer_options options = sl_optimizer_defaults(&search);
        struct sl_matrix *matrix = sl_matrix_new(4, 1);
        struct sl_optimum optimum;
        struct sl_error error = {""};

        cr_assert_eq(sl_optimize(&search, &options, matrix, &optimum, &error), 0, "%s", error.text);
        cr_expect_eq(sl_matrix_workers_of(matrix, 0), 2);
        for (uint32_t d = 0; d < 3; d++)
                *sl_matrix_entry(matrix, d, 0) = 8;
        cr_expect_eq(sl_matrix_check(&problem, matrix, &error), -EINVAL);
        cr_expect_str_eq(error.text, "allocation: \"m0\" has 3 workers, at most 2");
        sl_bench_free(search.bench);
        sl_matrix_free(matrix);
        sl_costs_free(costs);
}

/* Devices are forbidden and cells pinned, to nothing or to a worker, at random. */
static void rules_draw(uint64_t *stream, const struct sl_costs *costs, bool *forbidden, uint32_t *pinned)
{
        for (uint32_t d = 0; d < costs->n_devices; d++) {
                forbidden[d] = draw(stream, 6) == 0;
                for (uint32_t m = 0; m < costs->n_models; m++) {
                        uint32_t batch = costs->batches[draw(stream, costs->n_batches)], kind = draw(stream, 12);
                        bool may = !forbidden[d] && sl_costs_worker(costs, d, m, batch);

                        pinned[d * costs->n_models + m] = kind == 0 ? 0 : kind == 1 && may ? batch : SL_CELL_FREE;
                }
        }
}

static void check_rules(const struct sl_problem *problem, uint64_t seed, enum sl_objective objective, uint32_t *found)
{
        struct sl_search search = search_new(problem);
        struct sl_optimizer_options options = sl_optimizer_defaults(&search);
        struct sl_matrix *matrix = sl_matrix_new(problem->costs->n_devices, problem->costs->n_models);
        struct sl_optimum optimum;
        struct sl_error error = {""};

        search.objective = objective;
        search.calibration.load = 1000;
        options.starts = 2;
        options.benches = 60;
        options.exhaustive_max = 0;
        options.seed = seed;
        int r = sl_optimize(&search, &options, matrix, &optimum, &error);
        cr_expect(r == 0 || r == -ENOSPC, "seed %lu: %d %s", seed, r, error.text);
        cr_expect(r < 0 || sl_matrix_check(problem, matrix, &error) == 0, "seed %lu: %s", seed, error.text);
        cr_expect(r < 0 || optimum.score >= optimum.worst_fit_score, "seed %lu", seed);
        cr_expect(r < 0 || (optimum.gap == -1) == (objective != SL_MAX_THROUGHPUT));
        *found += r == 0;
        sl_bench_free(search.bench);
        sl_matrix_free(matrix);
}

Test(optimizer_rules, keeps_to_what_is_forbidden_pinned_and_kept_free_whatever_the_objective)
{
        uint32_t found = 0;

        for (uint64_t seed = 1; seed < FLEETS / 3; seed++) {
                uint64_t stream = seed;
                struct sl_costs *costs = random_fleet(&stream, 5, 5);
                bool forbidden[5];
                uint32_t pinned[25];
                struct sl_problem problem = {
                        .costs = costs, .headroom = 0.01 * draw(&stream, 20), .forbidden = forbidden, .pinned = pinned};

                rules_draw(&stream, costs, forbidden, pinned);
                cr_assert_eq(sl_problem_check(&problem, NULL), 0);
                check_rules(&problem, seed, (enum sl_objective)(seed % SL_OBJECTIVES), &found);
                sl_costs_free(costs);
        }
        cr_expect_gt(found, FLEETS / 60, "%u", found);
}

Test(optimizer_quality, without_trying_all_it_comes_within_three_per_cent_of_the_best)
{
        uint32_t compared = 0;

        for (uint64_t seed = 1; seed < 250; seed++) {
                uint64_t stream = seed;
                struct sl_costs *costs = random_fleet(&stream, 3, 3);
                struct sl_problem problem = {.costs = costs};
                struct sl_search search = search_new(&problem);
                struct sl_optimizer_options options = sl_optimizer_defaults(&search);
                struct sl_matrix *matrix = sl_matrix_new(costs->n_devices, costs->n_models);
                struct sl_optimum optimum;
                double best;

                options.benches = 2000;
                options.exhaustive_max = 0;
                if (sl_exhaustive(&search, 20000, matrix, &best, NULL) == 0 &&
                        sl_optimize(&search, &options, matrix, &optimum, NULL) == 0) {
                        cr_expect_geq(optimum.score, 0.97 * best, "seed %lu: %g of %g", seed, optimum.score, best);
                        compared++;
                }
                sl_bench_free(search.bench);
                sl_matrix_free(matrix);
                sl_costs_free(costs);
        }
        cr_expect_gt(compared, 60);
}

static bool stop_at_once(void *context, const struct sl_search *search, const struct sl_matrix *best, double score)
{
        (void)context, (void)search, (void)best, (void)score;
        return false;
}

Test(optimizer, one_that_is_stopped_keeps_the_best_so_far)
{
        struct sl_costs *costs = plain_fleet(4, 8);
        struct sl_problem problem = {.costs = costs};
        struct sl_search search = search_new(&problem);
        struct sl_optimizer_options options = sl_optimizer_defaults(&search);
        struct sl_matrix *matrix = sl_matrix_new(5, 8);
        struct sl_optimum optimum;

        search.progress = stop_at_once;
        cr_assert_eq(sl_optimize(&search, &options, matrix, &optimum, NULL), 0);
        cr_expect(optimum.stopped && optimum.benches < 10, "%lu", optimum.benches);
        cr_expect_eq(sl_matrix_check(&problem, matrix, NULL), 0);
        cr_expect_geq(optimum.score, optimum.worst_fit_score);
        sl_bench_free(search.bench);
        sl_matrix_free(matrix);
        sl_costs_free(costs);
}
