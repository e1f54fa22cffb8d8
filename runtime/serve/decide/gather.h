/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a policy's decisions have got: tasks that are given, and jobs that may still start on each let. For policies that give
 * whole tasks, oldest first; a part of one decision, on its stack.
 */
#pragma once

#include "policy.h"

struct sl_gathering {
        const struct sl_policy_view *view;
        struct sl_decision *decisions;
        uint32_t max, n;  /* decisions */
        uint32_t taken;   /* tasks */
        uint64_t samples; /* of the tasks that are left */
        uint64_t given;   /* workers that got something, as bits */
        uint32_t starts[SL_POLICY_WORKERS_MAX];
};
_Static_assert(SL_POLICY_WORKERS_MAX <= 64, "a bit for each worker");

void sl_gathering_init(
        struct sl_gathering *gathering, const struct sl_policy_view *view, struct sl_decision *ret_decisions, uint32_t max);

/* Tasks that are not given yet. */
uint32_t sl_gathering_left(const struct sl_gathering *gathering);

/* The oldest of them; there is one. */
const struct sl_task *sl_gathering_oldest(const struct sl_gathering *gathering);

/* Samples up to which tasks are gathered: one batch of this worker, and no longer than a slice. */
uint32_t sl_gathering_samples_max(const struct sl_gathering *gathering, uint32_t worker);

/* It has no job, may start one, and there is room for the decision. */
bool sl_gathering_is_idle(const struct sl_gathering *gathering, uint32_t worker);
uint32_t sl_gathering_count_idle(const struct sl_gathering *gathering);

/*
 * A job for the worker: the oldest task whatever its size, more as long as all have no more than @samples_max together; at most
 * @tasks of them. There is a task. Return: its samples.
 */
uint32_t sl_gathering_give(struct sl_gathering *gathering, uint32_t worker, uint32_t tasks, uint32_t samples_max);

/*
 * The only worker can have its next job while it computes, and enough waits to fill that: what comes later could not have been
 * gathered with it. Of several workers each gets work when it is idle: which of them will be idle first is not known before.
 * Nothing is given ahead of what is more urgent and waits for the worker to be idle because it does not fill a job.
 */
bool sl_gathering_gives_ahead(const struct sl_gathering *gathering, uint32_t samples_max);
