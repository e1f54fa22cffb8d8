/* SPDX-License-Identifier: Apache-2.0 */
#include "exhaustive.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "matrix.h"
#include "problem.h"
#include "search.h"

#include <stdbool.h>
#include <stdlib.h>

SL_DEFINE_CLEANUP(struct sl_matrix *, sl_matrix_free)

/* The value after @batch that the cell may have; @batch SL_CELL_FREE: its first one. SL_CELL_FREE after the last. */
static uint32_t next_value(const struct sl_problem *problem, uint32_t device, uint32_t model, uint32_t batch)
{
        const struct sl_costs *costs = problem->costs;

        if (batch == SL_CELL_FREE && sl_problem_allows(problem, device, model, 0))
                return 0;
        for (uint32_t b = 0; b < costs->n_batches; b++)
                if ((batch == SL_CELL_FREE || costs->batches[b] > batch) &&
                        sl_problem_allows(problem, device, model, costs->batches[b]))
                        return costs->batches[b];
        return SL_CELL_FREE;
}

double sl_exhaustive_matrices(const struct sl_problem *problem)
{
        double n = 1;

        for (uint32_t d = 0; d < problem->costs->n_devices; d++)
                for (uint32_t m = 0; m < problem->costs->n_models; m++) {
                        uint32_t values = 0;

                        for (uint32_t v = SL_CELL_FREE; (v = next_value(problem, d, m, v)) != SL_CELL_FREE;)
                                values++;
                        n *= values;
                }
        return n;
}

/* Counts one up. Return: false after the last one. */
static bool next_matrix(const struct sl_problem *problem, struct sl_matrix *matrix)
{
        for (uint32_t d = 0; d < matrix->n_devices; d++)
                for (uint32_t m = 0; m < matrix->n_models; m++) {
                        uint32_t *entry = sl_matrix_entry(matrix, d, m), next = next_value(problem, d, m, *entry);

                        *entry = next != SL_CELL_FREE ? next : next_value(problem, d, m, SL_CELL_FREE);
                        if (next != SL_CELL_FREE)
                                return true;
                }
        return false;
}

static bool is_valid(const struct sl_problem *problem, const struct sl_matrix *matrix)
{
        for (uint32_t m = 0; m < matrix->n_models; m++)
                if (!sl_matrix_workers_of(matrix, m))
                        return false;
        return sl_matrix_fits(problem, matrix);
}

int sl_exhaustive(
        struct sl_search *search, double matrices_max, struct sl_matrix *matrix, double *ret_score, struct sl_error *error)
{
        const struct sl_problem *problem = search->problem;
        SL_CLEANUP(sl_cleanup_sl_matrix_free) struct sl_matrix *now = sl_matrix_new(matrix->n_devices, matrix->n_models);
        bool found = false, goes_on = true;
        double score;

        if (!now)
                return sl_error_set(error, ENOMEM, "allocation: out of memory");
        if (sl_exhaustive_matrices(problem) > matrices_max)
                return sl_error_set(error, E2BIG, "allocation: %g matrices, at most %g are tried", sl_exhaustive_matrices(problem),
                        matrices_max);
        for (uint32_t d = 0; d < now->n_devices; d++)
                for (uint32_t m = 0; m < now->n_models; m++)
                        *sl_matrix_entry(now, d, m) = next_value(problem, d, m, SL_CELL_FREE);
        for (bool more = true; more && goes_on; more = next_matrix(problem, now)) {
                if (!is_valid(problem, now))
                        continue;
                int r = sl_search_score(search, now, &score, error);

                if (r < 0)
                        return r;
                if (!found || score > *ret_score) {
                        *ret_score = score;
                        sl_matrix_copy(matrix, now);
                        found = true;
                }
                goes_on = sl_search_goes_on(search, matrix, *ret_score);
        }
        return found ? 0 : sl_error_set(error, ENOSPC, "allocation: no matrix fits in the memory of %u devices", matrix->n_devices);
}
