/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a worker becomes warm. Before "ready" one sample is run once, for a second at most: that touches the weights, the kernels of
 * that size and its memory, and nothing else has to be there for the first answer. A plan on standby that has run before is not run
 * once more: whoever wakes it waits for its own sample alone. The rest is done after "ready" while no job
 * waits, in pieces that a job need not wait for long: for each larger size of the ladder, ascending,
 *
 *     memory   its share of the workspace, and the pool where jobs of several segments lie, one huge page at a time
 *     a run    as long as the worker's warm-up time lasts; the first job ends it, and those of the sizes behind it
 *
 * Kernels of all sizes have been compiled before, so what has not been warmed is slower by cold caches, and by the pages that it is
 * the first to touch. Belongs to the worker's thread.
 */
#pragma once

#include "plan.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

struct sl_batcher;
struct sl_worker_stats;

struct sl_warm_up {
        struct sl_instance *instance;
        struct sl_batcher *batcher;
        struct sl_worker_stats *stats; /* counts the runs */
        const struct sl_plan_info *info;
        bool dynamic;       /* its runs may fail: zeros need be no input that a step which depends on data can do anything with */
        uint32_t batch_max; /* sizes above are none of the worker's */
        uint64_t until_ns;  /* no run goes on beyond */
        uint32_t size;      /* index of the size at hand */
        uint64_t first_ns;  /* that the run of one sample took */

        /*
         *   (J1) dispatcher: store-release -EINTR to the word before the first job is given.
         *   (J2) worker:     load-acquire it between the steps of a warm-up run (kernels/stop.h).        pairs with J1
         */
        const _Atomic int32_t *called; /* the executor's */
};

/* Runs one sample. Before: all fields but size and first_ns are set. Return: 0; what sl_instance_run() says. */
int sl_warm_up_first(struct sl_warm_up *warm_up);

/* Nothing is run: as of a plan that took @first_ns when it did. */
void sl_warm_up_recall(struct sl_warm_up *warm_up, uint64_t first_ns);

/* One piece more. False: there is nothing left. */
bool sl_warm_up_next(struct sl_warm_up *warm_up);

/* Dispatcher: a job comes. */
static inline void sl_warm_up_call(_Atomic int32_t *called)
{
        if (!atomic_load_explicit(called, memory_order_relaxed))
                atomic_store_explicit(called, -EINTR, memory_order_release); /* J1 */
}
