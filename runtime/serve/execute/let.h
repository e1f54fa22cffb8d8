/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A let: a part of a device on which workers run on their own (Choi et al., gpulets, 2022). Today a set of cores: one for a single
 * worker, or one that many share.
 *
 * Owner: control, which makes lets at its start and chooses one for each worker (control/lets.h). What workers and the dispatcher
 * read does not change; the dispatcher keeps count of what runs on it, so that those who share it run in turns (dispatch/turns.h).
 */
#pragma once

#include "layout.h"
#include "ready_queue.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_let_stats;

struct sl_let {
        cpu_set_t cpus;             /* empty: any */
        uint32_t at_once;           /* jobs that run at a time without sharing a core; at least 1 */
        bool for_one;               /* made for one worker, which may spin: it has no core to give to another */
        uint32_t n_assigned;        /* workers that have it, not gone yet; control */
        struct sl_let_stats *stats; /* its slot in the stats page; NULL: it has none */

        struct sl_ready_queue ready; /* light jobs of its workers, for whichever of their threads is awake */

        /* dispatcher */
        uint32_t n_workers;              /* that it knows */
        uint32_t running[SL_PRIORITIES]; /* jobs given and not answered */
        uint64_t waiting[SL_PRIORITIES]; /* the last run of the scheduler in which segments found no idle worker here */
        uint32_t shown;                  /* its place in a policy's view; meaningless outside of it */
};

/* More than one worker may want it at a time. Dispatcher. */
static inline bool sl_let_is_shared(const struct sl_let *let)
{
        return !let->for_one || let->n_workers > 1;
}
