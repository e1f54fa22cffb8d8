/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many workers a model has, and the largest batch of each. Plain values.
 */
#pragma once

#include "workers.h"

#include <stdbool.h>
#include <string.h>

struct sl_worker_set {
        uint32_t n;                           /* 1 to SL_WORKERS_MAX */
        uint32_t batch_sizes[SL_WORKERS_MAX]; /* sizes of the plan's ladder, the largest first; 0: all that a worker may; behind n: 0 */
};

static inline bool sl_worker_set_equal(const struct sl_worker_set *a, const struct sl_worker_set *b)
{
        return a->n == b->n && memcmp(a->batch_sizes, b->batch_sizes, a->n * sizeof(a->batch_sizes[0])) == 0;
}
