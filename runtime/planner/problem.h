/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an allocation is looked for: the costs, and what whoever asks forbids or demands. Borrowed and immutable while it is
 * searched; any thread.
 */
#pragma once

#include "costs.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_CELL_FREE    UINT32_MAX
#define SL_HEADROOM_MAX 0.95

struct sl_problem {
        const struct sl_costs *costs;
        double headroom;        /* the share of each device's memory that stays free: 0 to SL_HEADROOM_MAX */
        const bool *forbidden;  /* for each device: no worker there; NULL: none */
        const uint32_t *pinned; /* devices x models: SL_CELL_FREE, or the entry that it must have (0: no worker); NULL: all free */
        uint32_t workers_max;   /* of one model, as a runtime has a limit; 0: any number */
};

/* Return: 0; -EINVAL with the thing, the value and the limit: the costs' own errors, headroom, pins that cannot be. */
int sl_problem_check(const struct sl_problem *problem, struct sl_error *error);

/* Bytes for workers in the memory of row @device; 0 for a row that draws on another one. */
uint64_t sl_problem_room(const struct sl_problem *problem, uint32_t device);

/* True when @batch (0: no worker) may stand in the cell: nobody forbids it, and its cost is known. Memory is not looked at. */
bool sl_problem_allows(const struct sl_problem *problem, uint32_t device, uint32_t model, uint32_t batch);
