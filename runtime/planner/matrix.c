/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix.h"
#include "base/bytes.h"
#include "base/error.h"
#include "problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t entries_bytes(const struct sl_matrix *matrix)
{
        return (size_t)matrix->n_devices * matrix->n_models * sizeof(matrix->entries[0]);
}

struct sl_matrix *sl_matrix_new(uint32_t n_devices, uint32_t n_models)
{
        struct sl_matrix *matrix = calloc(1, sizeof(*matrix) + (size_t)n_devices * n_models * sizeof(matrix->entries[0]));

        if (matrix) {
                matrix->n_devices = n_devices;
                matrix->n_models = n_models;
        }
        return matrix;
}

struct sl_matrix *sl_matrix_free(struct sl_matrix *matrix)
{
        free(matrix);
        return NULL;
}

void sl_matrix_copy(struct sl_matrix *to, const struct sl_matrix *from)
{
        memcpy(to->entries, from->entries, entries_bytes(from));
}

bool sl_matrix_equal(const struct sl_matrix *a, const struct sl_matrix *b)
{
        return a->n_devices == b->n_devices && a->n_models == b->n_models && memcmp(a->entries, b->entries, entries_bytes(a)) == 0;
}

uint32_t sl_matrix_workers_of(const struct sl_matrix *matrix, uint32_t model)
{
        uint32_t n = 0;

        for (uint32_t d = 0; d < matrix->n_devices; d++)
                n += sl_matrix_batch(matrix, d, model) != 0;
        return n;
}

uint32_t sl_matrix_workers(const struct sl_matrix *matrix)
{
        uint32_t n = 0;

        for (uint32_t m = 0; m < matrix->n_models; m++)
                n += sl_matrix_workers_of(matrix, m);
        return n;
}

static bool row_is_used(const struct sl_matrix *matrix, uint32_t device)
{
        for (uint32_t m = 0; m < matrix->n_models; m++)
                if (sl_matrix_batch(matrix, device, m))
                        return true;
        return false;
}

uint32_t sl_matrix_devices(const struct sl_matrix *matrix)
{
        uint32_t n = 0;

        for (uint32_t d = 0; d < matrix->n_devices; d++)
                n += row_is_used(matrix, d);
        return n;
}

/* An earlier row than @device that draws on the same memory has a worker of @model. */
static bool weights_are_there(const struct sl_costs *costs, const struct sl_matrix *matrix, uint32_t device, uint32_t model)
{
        for (uint32_t d = 0; d < device; d++)
                if (costs->devices[d].memory_of == costs->devices[device].memory_of && sl_matrix_batch(matrix, d, model))
                        return true;
        return false;
}

/* What a worker takes in the memory that its row draws on. */
static uint64_t entry_memory(const struct sl_costs *costs, const struct sl_matrix *matrix, uint32_t device, uint32_t model)
{
        const struct sl_cost_cell *cell = sl_costs_worker(costs, device, model, sl_matrix_batch(matrix, device, model));
        uint64_t bytes = cell ? cell->workspace_bytes : 0;

        return weights_are_there(costs, matrix, device, model) ? bytes : bytes + costs->models[model].weights_bytes;
}

/* Of all workers of a model in the memory of row @device; its weights once. UINT64_MAX: beyond all numbers. */
static uint64_t column_memory(const struct sl_costs *costs, const struct sl_matrix *matrix, uint32_t device, uint32_t model)
{
        bool is_there = false;
        uint64_t bytes = 0;

        for (uint32_t d = 0; d < matrix->n_devices; d++) {
                uint32_t batch = costs->devices[d].memory_of == device ? sl_matrix_batch(matrix, d, model) : 0;

                if (!batch)
                        continue;
                const struct sl_cost_cell *cell = sl_costs_worker(costs, d, model, batch);
                if (sl_add_overflows(bytes, cell ? cell->workspace_bytes : 0, &bytes))
                        return UINT64_MAX;
                is_there = true;
        }
        return is_there && sl_add_overflows(bytes, costs->models[model].weights_bytes, &bytes) ? UINT64_MAX : bytes;
}

uint64_t sl_matrix_memory(const struct sl_problem *problem, const struct sl_matrix *matrix, uint32_t device)
{
        uint64_t bytes = 0;

        for (uint32_t m = 0; m < matrix->n_models; m++)
                if (sl_add_overflows(bytes, column_memory(problem->costs, matrix, device, m), &bytes))
                        return UINT64_MAX;
        return bytes;
}

/* A row has room for all that draw on its memory; none draws on that of a row that draws on another one. */
static bool row_fits(const struct sl_problem *problem, const struct sl_matrix *matrix, uint32_t device)
{
        return problem->costs->devices[device].memory_of != device ||
               sl_matrix_memory(problem, matrix, device) <= sl_problem_room(problem, device);
}

static bool column_fits(const struct sl_problem *problem, const struct sl_matrix *matrix, uint32_t model)
{
        return !problem->workers_max || sl_matrix_workers_of(matrix, model) <= problem->workers_max;
}

bool sl_matrix_fits(const struct sl_problem *problem, const struct sl_matrix *matrix)
{
        for (uint32_t m = 0; m < matrix->n_models; m++)
                if (!column_fits(problem, matrix, m))
                        return false;
        for (uint32_t d = 0; d < matrix->n_devices; d++)
                if (!row_fits(problem, matrix, d))
                        return false;
        return true;
}

static int entry_check(
        const struct sl_problem *problem, const struct sl_matrix *matrix, uint32_t device, uint32_t model, struct sl_error *error)
{
        const struct sl_costs *costs = problem->costs;
        uint32_t batch = sl_matrix_batch(matrix, device, model);
        const char *m = costs->models[model].name, *d = costs->devices[device].name;
        char sizes[SL_COST_BATCHES_MAX * 8] = "";
        size_t used = 0;

        if (sl_problem_allows(problem, device, model, batch))
                return 0;
        if (problem->pinned && problem->pinned[(size_t)device * costs->n_models + model] != SL_CELL_FREE)
                return sl_error_set(error, EINVAL, "allocation: \"%s\" on \"%s\": batch %u, pinned to %u", m, d, batch,
                        problem->pinned[(size_t)device * costs->n_models + model]);
        if (problem->forbidden && problem->forbidden[device])
                return sl_error_set(error, EINVAL, "allocation: \"%s\" on \"%s\": batch %u, the device is forbidden", m, d, batch);
        if (sl_costs_find_batch(costs, batch) != SL_COST_NONE)
                return sl_error_set(
                        error, EINVAL, "allocation: \"%s\" on \"%s\": batch %u, no cost is known for it there", m, d, batch);
        for (uint32_t b = 0; b < costs->n_batches; b++)
                used += (size_t)snprintf(sizes + used, sizeof(sizes) - used, " %u", costs->batches[b]);
        return sl_error_set(error, EINVAL, "allocation: \"%s\" on \"%s\": batch %u, allowed are%s", m, d, batch, sizes);
}

/* The cell that takes most of the memory of row @device. */
static int row_error(const struct sl_problem *problem, const struct sl_matrix *matrix, uint32_t device, struct sl_error *error)
{
        const struct sl_costs *costs = problem->costs;
        uint32_t row = device, largest = 0;
        uint64_t most = 0;

        for (uint32_t d = 0; d < matrix->n_devices; d++)
                for (uint32_t m = 0; m < matrix->n_models && costs->devices[d].memory_of == device; m++)
                        if (sl_matrix_batch(matrix, d, m) && entry_memory(costs, matrix, d, m) >= most) {
                                row = d;
                                largest = m;
                                most = entry_memory(costs, matrix, d, m);
                        }
        return sl_error_set(error, ENOSPC,
                "allocation: \"%s\" on \"%s\", batch %u, takes %llu bytes: all there take %llu, the limit is %llu of %llu",
                costs->models[largest].name, costs->devices[row].name, sl_matrix_batch(matrix, row, largest),
                (unsigned long long)most, (unsigned long long)sl_matrix_memory(problem, matrix, device),
                (unsigned long long)sl_problem_room(problem, device), (unsigned long long)costs->devices[device].memory_bytes);
}

int sl_matrix_check(const struct sl_problem *problem, const struct sl_matrix *matrix, struct sl_error *error)
{
        const struct sl_costs *costs = problem->costs;
        int r = 0;

        if (matrix->n_devices != costs->n_devices || matrix->n_models != costs->n_models)
                return sl_error_set(error, EINVAL, "allocation: %u x %u, the costs are of %u devices and %u models",
                        matrix->n_devices, matrix->n_models, costs->n_devices, costs->n_models);
        for (uint32_t d = 0; d < matrix->n_devices; d++)
                for (uint32_t m = 0; m < matrix->n_models && r == 0; m++)
                        r = entry_check(problem, matrix, d, m, error);
        for (uint32_t m = 0; m < matrix->n_models && r == 0; m++)
                if (!sl_matrix_workers_of(matrix, m))
                        r = sl_error_set(error, EINVAL, "allocation: \"%s\" has no worker on any of %u devices",
                                costs->models[m].name, matrix->n_devices);
        for (uint32_t m = 0; m < matrix->n_models && r == 0; m++)
                if (!column_fits(problem, matrix, m))
                        r = sl_error_set(error, EINVAL, "allocation: \"%s\" has %u workers, at most %u", costs->models[m].name,
                                sl_matrix_workers_of(matrix, m), problem->workers_max);
        for (uint32_t d = 0; d < matrix->n_devices && r == 0; d++)
                if (!row_fits(problem, matrix, d))
                        r = row_error(problem, matrix, costs->devices[d].memory_of, error);
        return r;
}
