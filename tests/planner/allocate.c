/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "best_batch.h"
#include "bounded_greedy.h"
#include "fleet.h"
#include "matrix.h"
#include "problem.h"
#include "rounds.h"
#include "search.h"
#include "simulated_bench.h"
#include "worst_fit.h"

#include <criterion/criterion.h>
#include <string.h>

#define CASES SL_ROUNDS(3000)

static struct sl_search search_new(const struct sl_problem *problem)
{
        struct sl_search search = {.problem = problem};

        cr_assert_eq(sl_simulated_bench_new(problem, &search.bench, NULL), 0);
        return search;
}

/* Models of 400, 300, 200, 100 bytes and 80 for the workspace; GPUs of 600, 500: by hand. */
Test(worst_fit, the_largest_goes_where_most_is_left_and_to_the_cpu_when_no_gpu_holds_it)
{
        struct sl_costs *costs = plain_fleet(2, 4);
        struct sl_problem problem = {.costs = costs};
        struct sl_matrix *matrix = sl_matrix_new(3, 4);
        const uint32_t wanted[] = {0, 0, 0, 8, /* gpu0 */ 8, 0, 0, 0, /* gpu1 */ 0, 8, 8, 0 /* cpu */};

        costs->devices[0].memory_bytes = 350;
        costs->devices[1].memory_bytes = 500;
        for (uint32_t m = 0; m < 4; m++)
                costs->models[m].weights_bytes = 400 - 100 * m;
        costs->models[1].weights_bytes = 301;
        costs->models[2].weights_bytes = 280;
        cr_assert_eq(sl_worst_fit(&problem, 8, matrix, NULL), 0);
        cr_expect_arr_eq(matrix->entries, wanted, sizeof(wanted));
        costs->devices[2].memory_bytes = 400;
        struct sl_error error = {""};
        cr_expect_eq(sl_worst_fit(&problem, 8, matrix, &error), -ENOSPC);
        cr_expect_str_eq(error.text, "allocation: no device has enough memory for \"m2\": batch 8 takes 360 bytes, the most that "
                                     "is left is 350 on \"gpu0\"");
        cr_expect_eq(sl_worst_fit(&problem, 12, matrix, &error), -EINVAL);
        sl_matrix_free(matrix);
        sl_costs_free(costs);
}

Test(worst_fit, gpus_come_first_though_the_cpu_has_more_memory)
{
        struct sl_costs *costs = plain_fleet(2, 4);
        struct sl_problem problem = {.costs = costs};
        struct sl_matrix *matrix = sl_matrix_new(3, 4);
        const uint32_t wanted[] = {8, 0, 8, 0, /* gpu0 */ 0, 8, 0, 8, /* gpu1 */ 0, 0, 0, 0 /* cpu */};

        cr_assert_eq(sl_worst_fit(&problem, 8, matrix, NULL), 0);
        cr_expect_arr_eq(matrix->entries, wanted, sizeof(wanted));
        const bool forbidden[] = {true, false, false};
        problem.forbidden = forbidden;
        cr_assert_eq(sl_worst_fit(&problem, 8, matrix, NULL), 0);
        cr_expect_eq(sl_matrix_devices(matrix), 1);
        sl_matrix_free(matrix);
        sl_costs_free(costs);
}

Test(worst_fit, thousands_of_fleets_either_fit_or_are_refused_by_name)
{
        uint32_t fits = 0;

        for (uint64_t seed = 1; seed < CASES; seed++) {
                uint64_t stream = seed;
                struct sl_costs *costs = random_fleet(&stream, 8, 8);
                struct sl_problem problem = {.costs = costs, .headroom = 0.01 * draw(&stream, 20)};
                struct sl_matrix *matrix = sl_matrix_new(costs->n_devices, costs->n_models);
                struct sl_error error = {""};
                int r = sl_worst_fit(&problem, 8, matrix, &error);

                cr_expect(r == 0 || (r == -ENOSPC && strncmp(error.text, "allocation: ", 12) == 0), "%d: %s", r, error.text);
                cr_expect(r < 0 || sl_matrix_check(&problem, matrix, &error) == 0, "seed %lu: %s", seed, error.text);
                fits += r == 0;
                sl_matrix_free(matrix);
                sl_costs_free(costs);
        }
        cr_expect(fits > CASES / 10 && fits < CASES, "%u", fits);
}

Test(best_batch, one_gpu_for_each_model_and_its_own_best_batch_size)
{
        struct sl_costs *costs = plain_fleet(3, 2);
        struct sl_problem problem = {.costs = costs};
        struct sl_matrix *matrix = sl_matrix_new(4, 2);
        uint32_t benches = 0;
        const uint32_t wanted[] = {16, 0, 0, 8, 0, 0, 0, 0};

        sl_costs_cell(costs, 1, 0, 1)->latency_ns = 1500;
        sl_costs_cell(costs, 1, 0, 2)->latency_ns = 1;
        sl_costs_cell(costs, 1, 0, 2)->workspace_bytes = 901;
        cr_assert_eq(sl_best_batch(&problem, matrix, &benches, NULL), 0);
        cr_expect_arr_eq(matrix->entries, wanted, sizeof(wanted));
        cr_expect_eq(benches, 6);
        sl_matrix_free(matrix);
        sl_costs_free(costs);
}

Test(best_batch, fewer_gpus_than_models_are_refused)
{
        struct sl_costs *costs = plain_fleet(2, 3);
        struct sl_problem problem = {.costs = costs};
        struct sl_matrix *matrix = sl_matrix_new(3, 3);
        struct sl_error error;
        uint32_t benches;

        cr_expect_eq(sl_best_batch(&problem, matrix, &benches, &error), -ENODEV);
        cr_expect_str_eq(error.text, "allocation: 3 models, and GPUs for the first 2: one each is needed");
        sl_matrix_free(matrix);
        sl_costs_free(costs);
}

Test(best_batch, thousands_of_fleets_either_fit_or_lack_a_gpu)
{
        uint32_t fits = 0;

        for (uint64_t seed = 1; seed < CASES; seed++) {
                uint64_t stream = seed;
                struct sl_costs *costs = random_fleet(&stream, 8, 3);
                struct sl_problem problem = {.costs = costs, .headroom = 0.01 * draw(&stream, 20)};
                struct sl_matrix *matrix = sl_matrix_new(costs->n_devices, costs->n_models);
                struct sl_error error = {""};
                uint32_t benches;
                int r = sl_best_batch(&problem, matrix, &benches, &error);

                cr_expect(r == 0 || r == -ENODEV, "seed %lu: %d: %s", seed, r, error.text);
                cr_expect(r < 0 || sl_matrix_check(&problem, matrix, &error) == 0, "seed %lu: %s", seed, error.text);
                cr_expect(r < 0 || sl_matrix_workers(matrix) == costs->n_models, "seed %lu", seed);
                fits += r == 0;
                sl_matrix_free(matrix);
                sl_costs_free(costs);
        }
        cr_expect(fits > CASES / 20 && fits < CASES, "%u", fits);
}

/* One model on three GPUs and a CPU: each iteration adds one device; then nothing is strictly better. */
Test(bounded_greedy, it_climbs_one_entry_an_iteration_and_ends_where_nothing_is_strictly_better)
{
        struct sl_costs *costs = plain_fleet(3, 1);
        struct sl_problem problem = {.costs = costs};
        struct sl_search search = search_new(&problem);
        struct sl_matrix *matrix = sl_matrix_new(4, 1);
        double score;

        for (uint32_t iterations = 0; iterations < 6; iterations++) {
                const struct sl_bounded_greedy_options options = {.max_neighs = 100, .max_iter = iterations ? iterations : 1};
                uint64_t before = search.bench->runs;

                memset(matrix->entries, 0, 16);
                matrix->entries[0] = 8;
                cr_assert_eq(sl_bounded_greedy(&search, &options, matrix, &score, NULL), 0);
                cr_expect_eq(sl_matrix_workers(matrix), 4, "D - M = 3 iterations use all 4 devices");
                /* The start; 11, 12, 12 neighbours, and with a fourth iteration 12 more that are not better. */
                cr_expect_eq(search.bench->runs - before, iterations > 3 ? 48 : 36);
        }
        cr_expect_float_eq(score, 3.1e7, 1);
        sl_bench_free(search.bench);
        sl_matrix_free(matrix);
        sl_costs_free(costs);
}

Test(bounded_greedy, no_more_than_max_neighs_are_benched_in_an_iteration)
{
        struct sl_costs *costs = plain_fleet(4, 8);
        struct sl_problem problem = {.costs = costs};
        struct sl_search search = search_new(&problem);
        struct sl_matrix *matrix = sl_matrix_new(5, 8);
        const struct sl_bounded_greedy_options options = {.max_neighs = 7, .max_iter = 5, .seed = 3};
        double score;

        cr_assert_eq(sl_worst_fit(&problem, 8, matrix, NULL), 0);
        cr_assert_eq(sl_bounded_greedy(&search, &options, matrix, &score, NULL), 0);
        cr_expect_leq(search.bench->runs, 1 + 5 * 7);
        cr_expect_eq(search.bench->runs % 7, 1);
        sl_bench_free(search.bench);
        sl_matrix_free(matrix);
        sl_costs_free(costs);
}

#define DRAWN_CELLS 12u
#define DRAWS       2000u

/* A bench that finds all alike and counts which cell was changed. */
struct counting_bench {
        struct sl_bench bench;
        uint32_t n, cells[DRAWN_CELLS]; /* of this search */
        uint32_t counts[DRAWN_CELLS];
        const struct sl_matrix *start;
};

static int counting_run(struct sl_bench *bench, const struct sl_matrix *matrix, const struct sl_calibration *calibration,
        struct sl_bench_result *ret_result, struct sl_error *error)
{
        struct counting_bench *counting = (struct counting_bench *)bench;

        (void)calibration, (void)error;
        *ret_result = (struct sl_bench_result){1, 0};
        for (uint32_t i = 0; i < DRAWN_CELLS; i++)
                if (matrix->entries[i] != counting->start->entries[i])
                        counting->cells[counting->n++] = i;
        return 0;
}

static const struct sl_bench_ops counting_ops = {"counting", counting_run, NULL};

/*
 * One model on 12 devices and one batch size: a neighbour is a worker more or less. Of 5 that are drawn none is there twice, each
 * has its share, 5 of 12, and another seed draws others. A share is 0.417 with a standard deviation of 0.011; 5 of these are
 * allowed.
 */
Test(bounded_greedy, draws_its_neighbours_without_repetition_and_each_as_often)
{
        struct sl_costs *costs = plain_fleet(DRAWN_CELLS - 1, 1);
        struct sl_matrix *start = sl_matrix_new(DRAWN_CELLS, 1), *matrix = sl_matrix_new(DRAWN_CELLS, 1);
        struct counting_bench counting = {.bench.ops = &counting_ops, .start = start};
        uint32_t first = 0, others = 0;

        costs->n_batches = 1;
        start->entries[0] = start->entries[1] = 8;
        struct sl_problem problem = {.costs = costs};
        for (uint32_t seed = 1; seed <= DRAWS; seed++) {
                const struct sl_bounded_greedy_options options = {.max_neighs = 5, .max_iter = 1, .seed = seed};
                struct sl_search search = {.problem = &problem, .bench = &counting.bench};
                uint32_t set = 0;
                double score;

                counting.n = 0;
                sl_matrix_copy(matrix, start);
                cr_assert_eq(sl_bounded_greedy(&search, &options, matrix, &score, NULL), 0);
                cr_assert_eq(counting.n, 5);
                for (uint32_t i = 0; i < 5; i++) {
                        cr_expect_not(set >> counting.cells[i] & 1, "seed %u: cell %u twice", seed, counting.cells[i]);
                        set |= 1u << counting.cells[i];
                        counting.counts[counting.cells[i]]++;
                }
                first = seed == 1 ? set : first;
                others += set != first;
        }
        for (uint32_t i = 0; i < DRAWN_CELLS; i++)
                cr_expect_float_eq(counting.counts[i] / (double)DRAWS, 5.0 / 12, 0.055, "cell %u: %u", i, counting.counts[i]);
        cr_expect_gt(others, DRAWS * 9 / 10);
        sl_matrix_free(start);
        sl_matrix_free(matrix);
        sl_costs_free(costs);
}

static bool stop_after(void *context, const struct sl_search *search, const struct sl_matrix *best, double score)
{
        (void)best, (void)score;
        return search->bench->runs < *(uint64_t *)context;
}

static void check_greedy(const struct sl_problem *problem, const struct sl_matrix *start, uint64_t seed)
{
        const struct sl_bounded_greedy_options options = {.max_neighs = 20, .max_iter = 6, .seed = seed};
        struct sl_search search = search_new(problem);
        struct sl_matrix *matrices[3];
        double before, scores[3];
        uint64_t runs_max = 5;
        struct sl_error error = {""};

        cr_assert_eq(sl_search_score(&search, start, &before, NULL), 0);
        for (int i = 0; i < 3; i++) {
                matrices[i] = sl_matrix_new(start->n_devices, start->n_models);
                sl_matrix_copy(matrices[i], start);
                if (i == 2) {
                        runs_max += search.bench->runs;
                        search.progress = stop_after;
                        search.context = &runs_max;
                }
                cr_assert_eq(sl_bounded_greedy(&search, &options, matrices[i], &scores[i], NULL), 0);
                cr_expect_eq(sl_matrix_check(problem, matrices[i], &error), 0, "seed %lu: %s", seed, error.text);
                cr_expect_geq(scores[i], before, "seed %lu", seed);
        }
        cr_expect(sl_matrix_equal(matrices[0], matrices[1]) && scores[0] == scores[1], "seed %lu", seed);
        cr_expect_leq(search.bench->runs, runs_max + 1);
        for (int i = 0; i < 3; i++)
                sl_matrix_free(matrices[i]);
        sl_bench_free(search.bench);
}

/* Valid, fitting, never worse than its start, the same for a seed, also when it is stopped. */
Test(bounded_greedy, holds_its_word_in_thousands_of_fleets)
{
        for (uint64_t seed = 1; seed < CASES; seed++) {
                uint64_t stream = seed;
                struct sl_costs *costs = random_fleet(&stream, 5, 5);
                struct sl_problem problem = {.costs = costs};
                struct sl_matrix *start = sl_matrix_new(costs->n_devices, costs->n_models);

                if (sl_worst_fit(&problem, 8, start, NULL) == 0)
                        check_greedy(&problem, start, seed);
                sl_matrix_free(start);
                sl_costs_free(costs);
        }
}
