/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many workers a model has, the largest batch of each, and where each runs. Plain values.
 */
#pragma once

#include "workers.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct sl_worker_wish {
        uint32_t batch_size; /* a size of the plan's ladder; 0: all that a worker may */
        cpu_set_t cores;     /* empty: wherever there is room */
};

struct sl_worker_set {
        uint32_t n; /* 1 to SL_WORKERS_MAX, the largest batches first */
        struct sl_worker_wish wishes[SL_WORKERS_MAX];
};

static inline bool sl_worker_wish_equal(const struct sl_worker_wish *a, const struct sl_worker_wish *b)
{
        return a->batch_size == b->batch_size && CPU_EQUAL(&a->cores, &b->cores);
}

static inline int sl_worker_wish_compare(const void *a, const void *b)
{
        uint32_t x = ((const struct sl_worker_wish *)a)->batch_size, y = ((const struct sl_worker_wish *)b)->batch_size;

        return (x < y) - (x > y);
}

static inline void sl_worker_set_sort(struct sl_worker_set *set)
{
        qsort(set->wishes, set->n, sizeof(set->wishes[0]), sl_worker_wish_compare);
}

/* In the same order. */
static inline bool sl_worker_set_equal(const struct sl_worker_set *a, const struct sl_worker_set *b)
{
        for (uint32_t i = 0; i < a->n && a->n == b->n; i++)
                if (!sl_worker_wish_equal(&a->wishes[i], &b->wishes[i]))
                        return false;
        return a->n == b->n;
}

/* Those that run wherever there is room. */
static inline uint32_t sl_worker_set_unplaced(const struct sl_worker_set *set)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < set->n; i++)
                n += CPU_COUNT(&set->wishes[i].cores) == 0;
        return n;
}
