/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many workers a model has, the largest batch of each, and where each runs. Plain values.
 */
#pragma once

#include "gpu_let.h"
#include "workers.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct sl_error;

struct sl_worker_wish {
        uint32_t batch_size;   /* a size of the plan's ladder; 0: all that a worker may */
        cpu_set_t cores;       /* empty: wherever there is room */
        struct sl_gpu_let gpu; /* name "": on none; SL_GPU_EACH: a worker on each that the model has */
};

struct sl_worker_set {
        uint32_t n; /* 1 to SL_WORKERS_MAX, the largest batches first */
        struct sl_worker_wish wishes[SL_WORKERS_MAX];
};

static inline bool sl_worker_wish_equal(const struct sl_worker_wish *a, const struct sl_worker_wish *b)
{
        return a->batch_size == b->batch_size && CPU_EQUAL(&a->cores, &b->cores) && strcmp(a->gpu.name, b->gpu.name) == 0;
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

/*
 * Where a worker is to run, as an allocation names it: device_let.h, gpu_let.h. @allowed: as of sl_device_let_parse(). Return: 0;
 * -EINVAL with the text: there is no such device, or it is not among those that may be used.
 */
int sl_worker_wish_place(struct sl_worker_wish *wish, const char *device, const cpu_set_t *allowed, struct sl_error *error);

/*
 * A worker on each of @lets for every wish that is on no GPU, or on SL_GPU_EACH, whose percentage then stays: neighbours in the set
 * are on different GPUs. Return: 0; -E2BIG with the numbers: more than SL_WORKERS_MAX.
 */
int sl_worker_set_spread(const struct sl_worker_set *set, const struct sl_gpu_let *lets, uint32_t n_lets,
        struct sl_worker_set *ret_set, struct sl_error *error);

/* The workers of one of its GPUs, on none. */
void sl_worker_set_without_gpus(const struct sl_worker_set *set, struct sl_worker_set *ret_set);

/* Its GPUs, each once, in order; SL_GPU_EACH is none. Return: how many. */
uint32_t sl_worker_set_gpus(const struct sl_worker_set *set, uint32_t ret_gpus[SL_GPUS_MAX]);

/* A worker of it is on each. */
bool sl_worker_set_wants_each(const struct sl_worker_set *set);
