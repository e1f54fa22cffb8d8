/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A let: a part of a device on which workers run on their own (Choi et al., gpulets, 2022): a set of cores, one for a single worker
 * or one that many share; or a GPU, or a part of one, whose workers share no core that jobs would have to take turns on.
 *
 * Owner: control, which makes lets at its start and chooses one for each worker (control/crew/lets.h). What workers and the dispatcher
 * read does not change; the dispatcher keeps count of what runs on it, so that those who share it run in turns (decide/turns.h).
 */
#pragma once

#include "gpu_let.h"
#include "ready_queue.h"
#include "turns.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_let_stats;

struct sl_let {
        cpu_set_t cpus;             /* empty: any */
        struct sl_gpu_let gpu;      /* of a GPU; name "": it is cores */
        struct sl_let *next;        /* control's list */
        uint32_t kind;              /* control's: control/crew/lets.c */
        bool stale;                 /* control: cores of it are gone, nobody gets it any more */
        uint32_t n_assigned;        /* workers that have it, not gone yet; control */
        uint64_t left;              /* control: which departure that was, of a worker that was interfered with; 0: none has */
        struct sl_let_stats *stats; /* its slot in the stats page; NULL: it has none */

        struct sl_ready_queue ready; /* light jobs of its workers, for whichever of their threads is awake */

        struct sl_turns turns; /* the dispatcher's, but for what does not change */

        /* Workers look at it between two steps of a job in the background: as long as it says so they pause. Relaxed on both sides,
         * as nothing is handed over by it. */
        _Atomic bool is_wanted;
};

/* Dispatcher: a job of the class takes so many cores of the let, or (below 0) gives them back. */
static inline void sl_let_turn(struct sl_let *let, uint32_t priority, uint32_t cores)
{
        let->turns.running[priority] += cores;
        if (__builtin_expect(let->turns.running[SL_BACKGROUND] != 0, 0))
                atomic_store_explicit(&let->is_wanted, sl_turns_are_wanted(&let->turns), memory_order_relaxed);
}
