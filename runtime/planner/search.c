/* SPDX-License-Identifier: Apache-2.0 */
#include "search.h"
#include "matrix.h"
#include "problem.h"

int sl_search_score(struct sl_search *search, const struct sl_matrix *matrix, double *ret_score, struct sl_error *error)
{
        struct sl_bench_result result;
        int r = sl_bench_run(search->bench, matrix, &search->calibration, &result, error);

        if (r == 0)
                *ret_score = sl_objective_score(search->objective, search->calibration.load, search->problem, matrix, &result);
        return r;
}

bool sl_search_goes_on(const struct sl_search *search, const struct sl_matrix *best, double score)
{
        return !search->progress || search->progress(search->context, search, best, score);
}

uint32_t sl_search_values(
        const struct sl_search *search, const struct sl_matrix *matrix, uint32_t device, uint32_t model, uint32_t *ret_batches)
{
        const struct sl_costs *costs = search->problem->costs;
        uint32_t now = sl_matrix_batch(matrix, device, model), n = 0;
        bool may_go = now && sl_matrix_workers_of(matrix, model) > 1;

        if (may_go && sl_problem_allows(search->problem, device, model, 0))
                ret_batches[n++] = 0;
        for (uint32_t b = 0; b < costs->n_batches; b++)
                if (costs->batches[b] != now && sl_problem_allows(search->problem, device, model, costs->batches[b]))
                        ret_batches[n++] = costs->batches[b];
        return n;
}
