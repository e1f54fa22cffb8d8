/* SPDX-License-Identifier: Apache-2.0 */
#include "device_time_bound.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS   4000
#define WORK_MAX 2e8 /* rounds x cells */

struct bound {
        uint32_t n_devices, n_models;
        double *rates;      /* samples a second, devices x models */
        double *capacities; /* of devices */
        double *weights;    /* of models, with sum 1 */
        double *slopes;
};

/* Of the best batch size that is allowed and fits when nothing else is there. */
static double rate_alone(const struct sl_problem *problem, uint32_t device, uint32_t model)
{
        const struct sl_costs *costs = problem->costs;
        double most = 0;

        for (uint32_t b = 0; b < costs->n_batches; b++) {
                uint32_t batch = costs->batches[b];
                const struct sl_cost_cell *cell = sl_costs_worker(costs, device, model, batch);

                if (cell && sl_problem_allows(problem, device, model, batch) &&
                        costs->models[model].weights_bytes + cell->workspace_bytes <=
                                sl_problem_room(problem, costs->devices[device].memory_of))
                        most = fmax(most, batch * 1e9 / (double)sl_costs_period_ns(costs, device, cell));
        }
        return most;
}

static double capacity_of(const struct sl_problem *problem, const double *rates, uint32_t device)
{
        const struct sl_costs *costs = problem->costs;
        double cores = sl_costs_cores(costs, costs->devices[device].class_index), n = 0, more = 1;

        for (uint32_t a = 0; a < costs->n_models; a++) {
                n += rates[a] > 0;
                for (uint32_t b = 0; b < costs->n_models; b++)
                        if (a != b && rates[a] > 0 && rates[b] > 0)
                                more = fmin(more, sl_costs_slowdown(costs, costs->devices[device].class_index, a, &b, 1) - 1);
        }
        n = cores > 1 ? fmin(n, cores) : n;
        return n > 1 ? n / (1 + more * (n - 1)) : 1;
}

/* The bound by the weights as they are; slopes are how much it grows with each weight, shared by those near the largest. */
static double bound_take(const struct bound *bound, double sharpness)
{
        double sum = 0;

        memset(bound->slopes, 0, bound->n_models * sizeof(double));
        for (uint32_t d = 0; d < bound->n_devices; d++) {
                const double *rates = &bound->rates[(size_t)d * bound->n_models];
                double most = 0, near = 0;

                for (uint32_t m = 0; m < bound->n_models; m++)
                        most = fmax(most, bound->weights[m] * rates[m]);
                for (uint32_t m = 0; m < bound->n_models && most > 0; m++)
                        near += exp(sharpness * (bound->weights[m] * rates[m] / most - 1));
                for (uint32_t m = 0; m < bound->n_models && most > 0; m++)
                        bound->slopes[m] +=
                                bound->capacities[d] * rates[m] * exp(sharpness * (bound->weights[m] * rates[m] / most - 1)) / near;
                sum += bound->capacities[d] * most;
        }
        return sum;
}

static void weights_normalize(const struct bound *bound)
{
        double sum = 0;

        for (uint32_t m = 0; m < bound->n_models; m++)
                sum += bound->weights[m];
        for (uint32_t m = 0; m < bound->n_models; m++)
                bound->weights[m] /= sum;
}

static double bound_least(const struct bound *bound)
{
        int rounds = (int)fmin(ROUNDS, fmax(10, WORK_MAX / ((double)bound->n_devices * bound->n_models)));
        double least = INFINITY;

        for (int i = 0; i < rounds; i++) {
                double value = bound_take(bound, 20 + 2000.0 * i / rounds), pace = 0.5 / sqrt(i + 1);

                least = fmin(least, value);
                for (uint32_t m = 0; m < bound->n_models; m++)
                        bound->weights[m] *= exp(-pace * fmin(4, bound->slopes[m] / value - 1));
                weights_normalize(bound);
        }
        return least;
}

static int rates_take(const struct sl_problem *problem, struct bound *bound, struct sl_error *error)
{
        for (uint32_t d = 0; d < bound->n_devices; d++) {
                double *rates = &bound->rates[(size_t)d * bound->n_models];

                for (uint32_t m = 0; m < bound->n_models; m++) {
                        rates[m] = rate_alone(problem, d, m);
                        bound->weights[m] += rates[m];
                }
                bound->capacities[d] = capacity_of(problem, rates, d);
        }
        for (uint32_t m = 0; m < bound->n_models; m++) {
                if (!(bound->weights[m] > 0))
                        return sl_error_set(error, ENOSPC, "allocation: \"%s\" runs on none of %u devices",
                                problem->costs->models[m].name, bound->n_devices);
                bound->weights[m] = 1 / bound->weights[m];
        }
        weights_normalize(bound);
        return 0;
}

int sl_device_time_bound(const struct sl_problem *problem, double *ret_throughput, struct sl_error *error)
{
        struct bound bound = {.n_devices = problem->costs->n_devices, .n_models = problem->costs->n_models};
        size_t cells = (size_t)bound.n_devices * bound.n_models;
        SL_CLEANUP(sl_cleanup_free) double *block = calloc(cells + bound.n_devices + 2 * (size_t)bound.n_models, sizeof(*block));

        if (!block)
                return sl_error_set(error, ENOMEM, "allocation: out of memory");
        bound.rates = block;
        bound.capacities = block + cells;
        bound.weights = bound.capacities + bound.n_devices;
        bound.slopes = bound.weights + bound.n_models;
        int r = rates_take(problem, &bound, error);
        if (r == 0)
                *ret_throughput = bound_least(&bound);
        return r;
}
