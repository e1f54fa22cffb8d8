/* SPDX-License-Identifier: Apache-2.0 */
#include "problem.h"
#include "base/error.h"

#include <math.h>

static int pin_check(const struct sl_problem *problem, uint32_t device, uint32_t model, struct sl_error *error)
{
        const struct sl_costs *costs = problem->costs;
        uint32_t pin = problem->pinned[(size_t)device * costs->n_models + model];
        bool forbidden = problem->forbidden && problem->forbidden[device];

        if (pin == SL_CELL_FREE || pin == 0 || (!forbidden && sl_costs_worker(costs, device, model, pin)))
                return 0;
        return sl_error_set(error, EINVAL, "allocation: \"%s\" pinned to \"%s\", batch %u: %s", costs->models[model].name,
                costs->devices[device].name, pin, forbidden ? "the device is forbidden" : "no cost is known for that");
}

int sl_problem_check(const struct sl_problem *problem, struct sl_error *error)
{
        const struct sl_costs *costs = problem->costs;
        int r = sl_costs_check(costs, error);

        if (r == 0 && !(problem->headroom >= 0 && problem->headroom <= SL_HEADROOM_MAX))
                r = sl_error_set(
                        error, EINVAL, "allocation: headroom %g, from 0 to %g of the memory", problem->headroom, SL_HEADROOM_MAX);
        for (uint32_t d = 0; problem->pinned && d < costs->n_devices; d++)
                for (uint32_t m = 0; m < costs->n_models && r == 0; m++)
                        r = pin_check(problem, d, m, error);
        return r;
}

uint64_t sl_problem_room(const struct sl_problem *problem, uint32_t device)
{
        const struct sl_cost_device *row = &problem->costs->devices[device];

        return row->memory_of == device ? (uint64_t)floor((double)row->memory_bytes * (1 - problem->headroom)) : 0;
}

bool sl_problem_allows(const struct sl_problem *problem, uint32_t device, uint32_t model, uint32_t batch)
{
        uint32_t pin = problem->pinned ? problem->pinned[(size_t)device * problem->costs->n_models + model] : SL_CELL_FREE;

        if (pin != SL_CELL_FREE)
                return batch == pin;
        if (!batch)
                return true;
        return !(problem->forbidden && problem->forbidden[device]) && sl_costs_worker(problem->costs, device, model, batch);
}
