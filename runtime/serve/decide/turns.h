/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns on a let that several workers share: as long as something more urgent computes or waits there, no more jobs run than it has
 * room for at once, so that it shares a core with nobody for longer than the jobs last that run already. Among equals the operating
 * system divides the cores by time. What is in the background has no more jobs than there is room for at once, and one less as long
 * as anything else computes or waits, so that a core is free for what comes next. Who has a let for itself waits for nobody. One
 * thread, its owner's; at_once and for_one do not change.
 */
#pragma once

#include "layout.h"

#include <stdbool.h>
#include <stdint.h>

/* Who shares a let, and what runs and waits there. */
struct sl_turns {
        uint32_t at_once;                /* jobs that run at a time without sharing a core; at least 1 */
        bool for_one;                    /* made for one worker, which may spin: it has no core to give to another */
        uint32_t n_workers;              /* known to who decides */
        uint32_t running[SL_CLASSES];    /* jobs given and not answered, each by the cores that compute it */
        uint64_t waiting[SL_CLASSES];    /* the last run of the scheduler in which segments found no idle worker here */
        uint32_t shown;                  /* its place in a policy's view; meaningless outside of it (look.h) */
};

/* More than one worker may want the let at a time. */
static inline bool sl_turns_are_shared(const struct sl_turns *turns)
{
        return !turns->for_one || turns->n_workers > 1;
}

/* How many more jobs of class @priority may start there, in this run of the scheduler. Pure. */
uint32_t sl_turns_left(const struct sl_turns *turns, uint32_t priority, uint64_t run);

/* What runs in the background is to pause: something more urgent computes, and no core is left beside. Pure. */
bool sl_turns_are_wanted(const struct sl_turns *turns);

/* Segments of that class find no idle worker there, in this run. */
void sl_turns_wait(struct sl_turns *turns, uint32_t priority, uint64_t run);
