/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best matrices of a search are those that a sorted list of all its runs begins with.
 */
#include "ranking.h"
#include "allocation_bench.h"
#include "base/error.h"
#include "fleet.h"
#include "matrix.h"
#include "problem.h"
#include "simulated_bench.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define RUNS 400u

static int descending(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x < y) - (x > y);
}

/* Scores without repetitions of a matrix. */
struct all {
        struct sl_matrix *matrices[RUNS];
        double scores[RUNS];
        uint32_t n;
};

static void note(struct all *all, const struct sl_matrix *matrix, double score)
{
        for (uint32_t i = 0; i < all->n; i++)
                if (sl_matrix_equal(all->matrices[i], matrix))
                        return;
        all->matrices[all->n] = sl_matrix_new(matrix->n_devices, matrix->n_models);
        sl_matrix_copy(all->matrices[all->n], matrix);
        if (score > 0)
                all->scores[all->n++] = score;
        else
                sl_matrix_free(all->matrices[all->n]);
}

/* Entries that are allowed. Return: false where a column is zero. */
static bool fill(const struct sl_problem *problem, uint64_t *stream, struct sl_matrix *matrix)
{
        const struct sl_costs *costs = problem->costs;
        bool whole = true;

        for (uint32_t m = 0; m < costs->n_models; m++) {
                for (uint32_t d = 0; d < costs->n_devices; d++) {
                        uint32_t batch = draw(stream, 3) ? costs->batches[draw(stream, costs->n_batches)] : 0;

                        *sl_matrix_entry(matrix, d, m) = sl_problem_allows(problem, d, m, batch) ? batch : 0;
                }
                whole &= sl_matrix_workers_of(matrix, m) > 0;
        }
        return whole;
}

static void check_fleet(uint64_t seed)
{
        uint64_t stream = seed;
        struct sl_costs *costs = random_fleet(&stream, 3, 3);
        struct sl_problem problem = {.costs = costs};
        struct sl_matrix *matrix = sl_matrix_new(costs->n_devices, costs->n_models);
        struct all *all = calloc(1, sizeof(*all));
        struct sl_bench *bench, *ranking;
        uint32_t k = 1 + draw(&stream, 9), n;

        cr_assert_eq(sl_simulated_bench_new(&problem, &bench, NULL), 0);
        cr_assert_eq(sl_ranking_new(bench, &problem, SL_MAX_THROUGHPUT, k, &ranking, NULL), 0);
        for (uint32_t run = 0; run < RUNS; run++) {
                const struct sl_calibration calibration = {.load = 0};
                struct sl_bench_result result;

                if (!fill(&problem, &stream, matrix))
                        continue;
                cr_assert_eq(sl_bench_run(ranking, matrix, &calibration, &result, NULL), 0);
                note(all, matrix, result.throughput);
        }
        const struct sl_ranked *ranked = sl_ranking(ranking, &n);
        cr_expect_eq(n, all->n < k ? all->n : k, "seed %lu", seed);
        qsort(all->scores, all->n, sizeof(double), descending);
        for (uint32_t i = 0; i < n; i++) {
                cr_expect_eq(ranked[i].score, all->scores[i], "seed %lu, place %u", seed, i);
                for (uint32_t j = 0; j < i; j++)
                        cr_expect_not(sl_matrix_equal(ranked[i].matrix, ranked[j].matrix), "seed %lu: twice", seed);
        }
        for (uint32_t i = 0; i < all->n; i++)
                sl_matrix_free(all->matrices[i]);
        free(all);
        sl_bench_free(ranking);
        sl_bench_free(bench);
        sl_matrix_free(matrix);
        sl_costs_free(costs);
}

Test(ranking, has_the_best_of_all_that_was_run_each_once)
{
        for (uint64_t seed = 1; seed <= 200; seed++)
                check_fleet(seed);
}
