/* SPDX-License-Identifier: Apache-2.0 */
#include "bound.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cbc.h"
#include "problem.h"

#include <math.h>
#include <stdlib.h>

#define MAXIMISE (-1)

/* Columns: X, then for each device and model z and a share for each batch size, in units that keep numbers near 1. */
struct programme {
        const struct sl_problem *problem;
        struct sl_cbc cbc;
        Cbc_Model *model;
        double rate_unit; /* the fastest worker, samples a second */
        int n;            /* of the row under way */
        int *cols;
        double *coefs;
};

static int col_of_memory(const struct programme *programme, uint32_t device, uint32_t model)
{
        const struct sl_costs *costs = programme->problem->costs;

        return 1 + (int)((device * costs->n_models + model) * (costs->n_batches + 1));
}

static int col_of_share(const struct programme *programme, uint32_t device, uint32_t model, uint32_t batch_index)
{
        return col_of_memory(programme, device, model) + 1 + (int)batch_index;
}

/* Samples a second of a worker alone; 0 where there may be none, or where it does not fit by itself. */
static double worker_rate(const struct sl_problem *problem, uint32_t device, uint32_t model, uint32_t batch_index)
{
        const struct sl_costs *costs = problem->costs;
        uint32_t batch = costs->batches[batch_index];
        const struct sl_cost_cell *cell = sl_costs_worker(costs, device, model, batch);

        if (!cell || !sl_problem_allows(problem, device, model, batch) ||
                costs->models[model].weights_bytes + cell->workspace_bytes >
                        sl_problem_room(problem, costs->devices[device].memory_of))
                return 0;
        return batch * 1e9 / (double)sl_costs_period_ns(costs, device, cell);
}

static bool model_runs(const struct sl_problem *problem, uint32_t device, uint32_t model)
{
        for (uint32_t b = 0; b < problem->costs->n_batches; b++)
                if (worker_rate(problem, device, model, b) > 0)
                        return true;
        return false;
}

static double fastest_worker(const struct sl_problem *problem)
{
        const struct sl_costs *costs = problem->costs;
        double most = 0;

        for (uint32_t d = 0; d < costs->n_devices; d++)
                for (uint32_t m = 0; m < costs->n_models; m++)
                        for (uint32_t b = 0; b < costs->n_batches; b++)
                                most = fmax(most, worker_rate(problem, d, m, b));
        return most;
}

/* Of alone-time that fits into a second of the device, by the models that run there. */
static double device_time(const struct sl_problem *problem, uint32_t device)
{
        const struct sl_costs *costs = problem->costs;
        double cores = sl_costs_cores(costs, costs->devices[device].class_index), least = 1, n = 0;

        for (uint32_t m = 0; m < costs->n_models; m++) {
                if (!model_runs(problem, device, m))
                        continue;
                n++;
                for (uint32_t o = 0; o < costs->n_models; o++)
                        if (o != m && model_runs(problem, device, o))
                                least = fmin(least, sl_costs_slowdown(costs, costs->devices[device].class_index, m, &o, 1) - 1);
        }
        n = cores > 1 ? fmin(n, cores) : n;
        return n > 1 ? n / (1 + (n - 1) * least) : 1;
}

static void row_add(struct programme *programme, int col, double coef)
{
        programme->cols[programme->n] = col;
        programme->coefs[programme->n++] = coef;
}

static void row_end(struct programme *programme, char sense, double rhs)
{
        programme->cbc.add_row(programme->model, "", programme->n, programme->cols, programme->coefs, sense, rhs);
        programme->n = 0;
}

static void cols_put(struct programme *programme)
{
        const struct sl_costs *costs = programme->problem->costs;

        programme->cbc.add_col(programme->model, "X", 0, INFINITY, 1, 0, 0, NULL, NULL);
        for (uint32_t d = 0; d < costs->n_devices; d++)
                for (uint32_t m = 0; m < costs->n_models; m++) {
                        programme->cbc.add_col(programme->model, "z", 0, 1, 0, 0, 0, NULL, NULL);
                        for (uint32_t b = 0; b < costs->n_batches; b++)
                                programme->cbc.add_col(programme->model, "x", 0, worker_rate(programme->problem, d, m, b) > 0, 0, 0,
                                        0, NULL, NULL);
                }
}

static void model_row(struct programme *programme, uint32_t model)
{
        const struct sl_costs *costs = programme->problem->costs;

        row_add(programme, 0, -1);
        for (uint32_t d = 0; d < costs->n_devices; d++)
                for (uint32_t b = 0; b < costs->n_batches; b++)
                        row_add(programme, col_of_share(programme, d, model, b),
                                worker_rate(programme->problem, d, model, b) / programme->rate_unit);
        row_end(programme, 'G', 0);
}

static void device_rows(struct programme *programme, uint32_t device)
{
        const struct sl_costs *costs = programme->problem->costs;

        for (uint32_t m = 0; m < costs->n_models; m++)
                for (uint32_t b = 0; b < costs->n_batches; b++)
                        row_add(programme, col_of_share(programme, device, m, b), 1);
        row_end(programme, 'L', device_time(programme->problem, device));
        for (uint32_t m = 0; m < costs->n_models; m++) {
                uint32_t memory_of = costs->devices[device].memory_of;

                for (uint32_t b = 0; b < costs->n_batches; b++)
                        row_add(programme, col_of_share(programme, device, m, b), 1);
                row_add(programme, col_of_memory(programme, memory_of, m), -1);
                row_end(programme, 'L', 0);
        }
}

/* Weights once, for all rows that draw on the memory. */
static void memory_row(struct programme *programme, uint32_t device)
{
        const struct sl_costs *costs = programme->problem->costs;
        double room = (double)sl_problem_room(programme->problem, device), unit = room > 0 ? room : 1;

        for (uint32_t m = 0; m < costs->n_models; m++)
                row_add(programme, col_of_memory(programme, device, m), (double)costs->models[m].weights_bytes / unit);
        for (uint32_t d = 0; d < costs->n_devices; d++)
                for (uint32_t m = 0; m < costs->n_models && costs->devices[d].memory_of == device; m++)
                        for (uint32_t b = 0; b < costs->n_batches; b++)
                                row_add(programme, col_of_share(programme, d, m, b),
                                        (double)sl_costs_cell(costs, costs->devices[d].class_index, m, b)->workspace_bytes / unit);
        row_end(programme, 'L', room / unit);
}

static int programme_solve(struct programme *programme, double *ret_throughput, struct sl_error *error)
{
        const struct sl_costs *costs = programme->problem->costs;

        cols_put(programme);
        for (uint32_t m = 0; m < costs->n_models; m++)
                model_row(programme, m);
        for (uint32_t d = 0; d < costs->n_devices; d++) {
                device_rows(programme, d);
                if (costs->devices[d].memory_of == d)
                        memory_row(programme, d);
        }
        programme->cbc.set_sense(programme->model, MAXIMISE);
        programme->cbc.set_log_level(programme->model, 0);
        programme->cbc.solve(programme->model);
        if (!programme->cbc.is_optimal(programme->model))
                return sl_error_set(
                        error, EIO, "bound: CBC found no answer for %u devices and %u models", costs->n_devices, costs->n_models);
        *ret_throughput = programme->cbc.objective(programme->model) * programme->rate_unit;
        return 0;
}

int sl_bound_throughput(const struct sl_problem *problem, double *ret_throughput, struct sl_error *error)
{
        const struct sl_costs *costs = problem->costs;
        size_t n_cols = 1 + (size_t)costs->n_devices * costs->n_models * (costs->n_batches + 1);
        SL_CLEANUP(sl_cleanup_free) int *cols = malloc(n_cols * sizeof(*cols));
        SL_CLEANUP(sl_cleanup_free) double *coefs = malloc(n_cols * sizeof(*coefs));
        struct programme programme = {.problem = problem, .cols = cols, .coefs = coefs, .rate_unit = fastest_worker(problem)};

        if (!cols || !coefs)
                return sl_error_set(error, ENOMEM, "bound: out of memory");
        if (programme.rate_unit <= 0)
                return sl_error_set(error, ENOSPC, "bound: no worker may be anywhere");
        int r = sl_cbc_open(&programme.cbc, error);
        if (r < 0)
                return r;
        programme.model = programme.cbc.new_model();
        r = programme_solve(&programme, ret_throughput, error);
        programme.cbc.delete_model(programme.model);
        sl_cbc_close(&programme.cbc);
        return r;
}
