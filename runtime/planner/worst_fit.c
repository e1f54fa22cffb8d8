/* SPDX-License-Identifier: Apache-2.0 */
#include "worst_fit.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "matrix.h"
#include "problem.h"

#include <stdlib.h>
#include <string.h>

struct object {
        uint32_t model, batch;
        uint32_t devices; /* that may run it, where those of few come first */
        uint64_t bytes;
};

static uint64_t worker_bytes(const struct sl_costs *costs, uint32_t device, uint32_t model, uint32_t batch)
{
        const struct sl_cost_cell *cell = sl_costs_worker(costs, device, model, batch);

        return costs->models[model].weights_bytes + (cell ? cell->workspace_bytes : 0);
}

static uint64_t model_bytes(const struct sl_costs *costs, uint32_t model, uint32_t batch)
{
        uint64_t most = 0;

        for (uint32_t d = 0; d < costs->n_devices; d++) {
                uint64_t bytes = worker_bytes(costs, d, model, batch);

                most = bytes > most ? bytes : most;
        }
        return most;
}

static int compare_objects(const void *a, const void *b)
{
        const struct object *x = a, *y = b;

        if (x->devices != y->devices)
                return x->devices < y->devices ? -1 : 1;
        if (x->bytes != y->bytes)
                return x->bytes > y->bytes ? -1 : 1;
        return x->model < y->model ? -1 : 1;
}

static uint64_t memory_left(const struct sl_problem *problem, const struct sl_matrix *matrix, uint32_t device)
{
        uint32_t row = problem->costs->devices[device].memory_of;
        uint64_t room = sl_problem_room(problem, row), taken = sl_matrix_memory(problem, matrix, row);

        return taken < room ? room - taken : 0;
}

/* The row of @kind with the most memory left; SL_COST_NONE where there is no candidate. */
static uint32_t more_remaining_memory(
        const struct sl_problem *problem, const struct sl_matrix *matrix, uint32_t model, uint32_t batch, enum sl_device_kind kind)
{
        const struct sl_costs *costs = problem->costs;
        uint32_t best = SL_COST_NONE;
        uint64_t most = 0;

        for (uint32_t d = 0; d < costs->n_devices; d++) {
                if (costs->classes[costs->devices[d].class_index].kind != kind || !sl_problem_allows(problem, d, model, batch))
                        continue;
                uint64_t left = memory_left(problem, matrix, d);

                if (best == SL_COST_NONE || left > most) {
                        best = d;
                        most = left;
                }
        }
        return best;
}

static bool worker_put(const struct sl_problem *problem, struct sl_matrix *matrix, uint32_t device, uint32_t model, uint32_t batch)
{
        if (device == SL_COST_NONE)
                return false;
        *sl_matrix_entry(matrix, device, model) = batch;
        if (sl_matrix_fits(problem, matrix))
                return true;
        *sl_matrix_entry(matrix, device, model) = 0;
        return false;
}

static int no_device_error(
        const struct sl_problem *problem, const struct sl_matrix *matrix, uint32_t model, uint32_t batch, struct sl_error *error)
{
        const struct sl_costs *costs = problem->costs;
        uint32_t best = SL_COST_NONE;

        for (uint32_t d = 0; d < costs->n_devices; d++)
                if (sl_problem_allows(problem, d, model, batch) &&
                        (best == SL_COST_NONE || memory_left(problem, matrix, d) > memory_left(problem, matrix, best)))
                        best = d;
        if (best == SL_COST_NONE)
                return sl_error_set(error, ENOSPC,
                        "allocation: \"%s\", batch %u: none of %u devices may run it, or its cost is not known",
                        costs->models[model].name, batch, costs->n_devices);
        return sl_error_set(error, ENOSPC,
                "allocation: no device has enough memory for \"%s\": batch %u takes %llu bytes, the most that is left is %llu on "
                "\"%s\"",
                costs->models[model].name, batch, (unsigned long long)worker_bytes(costs, best, model, batch),
                (unsigned long long)memory_left(problem, matrix, best), costs->devices[best].name);
}

static int model_put(
        const struct sl_problem *problem, struct sl_matrix *matrix, uint32_t model, uint32_t batch, struct sl_error *error)
{
        if (sl_matrix_workers_of(matrix, model))
                return 0;
        if (worker_put(problem, matrix, more_remaining_memory(problem, matrix, model, batch, SL_DEVICE_GPU), model, batch) ||
                worker_put(problem, matrix, more_remaining_memory(problem, matrix, model, batch, SL_DEVICE_CPU), model, batch))
                return 0;
        return no_device_error(problem, matrix, model, batch, error);
}

static void pins_put(const struct sl_problem *problem, struct sl_matrix *matrix)
{
        memset(matrix->entries, 0, (size_t)matrix->n_devices * matrix->n_models * sizeof(matrix->entries[0]));
        for (size_t i = 0; problem->pinned && i < (size_t)matrix->n_devices * matrix->n_models; i++)
                if (problem->pinned[i] != SL_CELL_FREE)
                        matrix->entries[i] = problem->pinned[i];
}

static uint32_t devices_of(const struct sl_problem *problem, uint32_t model, uint32_t batch)
{
        uint32_t n = 0;

        for (uint32_t d = 0; d < problem->costs->n_devices; d++)
                n += sl_problem_allows(problem, d, model, batch);
        return n;
}

static uint32_t batch_within(const struct sl_problem *problem, uint32_t model, uint32_t most)
{
        const struct sl_costs *costs = problem->costs;
        uint32_t best = 0;

        for (uint32_t b = 0; b < costs->n_batches && (!best || costs->batches[b] <= most); b++)
                if (devices_of(problem, model, costs->batches[b]))
                        best = costs->batches[b];
        return best ? best : costs->batches[0];
}

/* Each model with the batch size of its object. */
static int objects_put(const struct sl_problem *problem, struct object *objects, struct sl_matrix *matrix, struct sl_error *error)
{
        uint32_t n = problem->costs->n_models;
        int r = 0;

        qsort(objects, n, sizeof(*objects), compare_objects);
        pins_put(problem, matrix);
        for (uint32_t i = 0; i < n && r == 0; i++)
                r = model_put(problem, matrix, objects[i].model, objects[i].batch, error);
        return r < 0 ? r : sl_matrix_check(problem, matrix, error);
}

int sl_worst_fit(const struct sl_problem *problem, uint32_t default_batch, struct sl_matrix *matrix, struct sl_error *error)
{
        const struct sl_costs *costs = problem->costs;

        if (sl_costs_find_batch(costs, default_batch) == SL_COST_NONE)
                return sl_error_set(
                        error, EINVAL, "allocation: default batch size %u is not among the allowed ones", default_batch);
        SL_CLEANUP(sl_cleanup_free) struct object *objects = malloc(costs->n_models * sizeof(*objects));
        if (!objects)
                return sl_error_set(error, ENOMEM, "allocation: out of memory");
        for (uint32_t m = 0; m < costs->n_models; m++)
                objects[m] = (struct object){m, default_batch, 0, model_bytes(costs, m, default_batch)};
        return objects_put(problem, objects, matrix, error);
}

int sl_worst_fit_within(
        const struct sl_problem *problem, uint32_t batch, bool choosy_first, struct sl_matrix *matrix, struct sl_error *error)
{
        const struct sl_costs *costs = problem->costs;
        SL_CLEANUP(sl_cleanup_free) struct object *objects = malloc(costs->n_models * sizeof(*objects));

        if (!objects)
                return sl_error_set(error, ENOMEM, "allocation: out of memory");
        for (uint32_t m = 0; m < costs->n_models; m++) {
                uint32_t own = batch_within(problem, m, batch);

                objects[m] = (struct object){m, own, choosy_first ? devices_of(problem, m, own) : 0, model_bytes(costs, m, own)};
        }
        return objects_put(problem, objects, matrix, error);
}

uint32_t sl_worst_fit_batch(const struct sl_problem *problem)
{
        bool allowed = sl_costs_find_batch(problem->costs, SL_DEFAULT_BATCH) != SL_COST_NONE;

        return allowed ? SL_DEFAULT_BATCH : problem->costs->batches[0];
}
