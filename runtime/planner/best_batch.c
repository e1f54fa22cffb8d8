/* SPDX-License-Identifier: Apache-2.0 */
#include "best_batch.h"
#include "base/error.h"
#include "matrix.h"
#include "problem.h"

#include <string.h>

static uint32_t next_gpu(const struct sl_problem *problem, uint32_t from)
{
        const struct sl_costs *costs = problem->costs;

        while (from < costs->n_devices && (costs->classes[costs->devices[from].class_index].kind != SL_DEVICE_GPU ||
                                                  (problem->forbidden && problem->forbidden[from])))
                from++;
        return from;
}

static uint32_t best_batch(const struct sl_problem *problem, struct sl_matrix *matrix, uint32_t device, uint32_t model)
{
        const struct sl_costs *costs = problem->costs;
        uint32_t best = 0;
        double most = 0;

        for (uint32_t b = 0; b < costs->n_batches; b++) {
                if (!sl_problem_allows(problem, device, model, costs->batches[b]))
                        continue;
                const struct sl_cost_cell *cell = sl_costs_worker(costs, device, model, costs->batches[b]);
                double rate = (double)costs->batches[b] / (double)sl_costs_period_ns(costs, device, cell);

                *sl_matrix_entry(matrix, device, model) = costs->batches[b];
                if (rate > most && sl_matrix_fits(problem, matrix)) {
                        most = rate;
                        best = costs->batches[b];
                }
        }
        return *sl_matrix_entry(matrix, device, model) = best;
}

int sl_best_batch(const struct sl_problem *problem, struct sl_matrix *matrix, uint32_t *ret_benches, struct sl_error *error)
{
        const struct sl_costs *costs = problem->costs;
        uint32_t device = next_gpu(problem, 0);

        memset(matrix->entries, 0, (size_t)matrix->n_devices * matrix->n_models * sizeof(matrix->entries[0]));
        for (uint32_t m = 0; m < costs->n_models; m++, device = next_gpu(problem, device + 1)) {
                if (device >= costs->n_devices)
                        return sl_error_set(error, ENODEV, "allocation: %u models, and GPUs for the first %u: one each is needed",
                                costs->n_models, m);
                if (!best_batch(problem, matrix, device, m))
                        return sl_error_set(error, ENODEV,
                                "allocation: \"%s\" on \"%s\": no batch size fits, or none has a known cost", costs->models[m].name,
                                costs->devices[device].name);
        }
        *ret_benches = costs->n_models * costs->n_batches;
        return 0;
}
