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
static inline uint32_t sl_gathering_left(const struct sl_gathering *gathering)
{
        return sl_task_queue_length(gathering->view->waiting) - gathering->taken;
}

/* The oldest of them; there is one. */
static inline const struct sl_task *sl_gathering_oldest(const struct sl_gathering *gathering)
{
        return sl_task_queue_at(gathering->view->waiting, gathering->taken);
}

/* Samples up to which tasks are gathered: one batch of this worker, and no longer than a slice. */
static inline uint32_t sl_gathering_samples_max(const struct sl_gathering *gathering, uint32_t worker)
{
        uint32_t batch_max = gathering->view->workers[worker].batch_max;

        return batch_max < gathering->view->slice_samples ? batch_max : gathering->view->slice_samples;
}

/* Its let has a start left, and there is room for the decision. */
static inline bool sl_gathering_may_start(const struct sl_gathering *gathering, uint32_t worker)
{
        return gathering->n < gathering->max && gathering->starts[gathering->view->workers[worker].let] > 0;
}

/* It has no job, and may start one. */
static inline bool sl_gathering_is_idle(const struct sl_gathering *gathering, uint32_t worker)
{
        return gathering->view->workers[worker].jobs == 0 && !(gathering->given >> worker & 1) &&
               sl_gathering_may_start(gathering, worker);
}

uint32_t sl_gathering_count_idle(const struct sl_gathering *gathering);

/*
 * A job for the worker: the oldest task whatever its size, more as long as all have no more than @samples_max together; at most
 * @tasks of them. There is a task. Return: its samples.
 */
uint32_t sl_gathering_give(struct sl_gathering *gathering, uint32_t worker, uint32_t tasks, uint32_t samples_max);

/* The same of the oldest @tasks, which have @samples together. */
void sl_gathering_decide(struct sl_gathering *gathering, uint32_t worker, uint32_t tasks, uint32_t samples);

/*
 * The only worker can have its next job while it computes, and enough waits to fill that: what comes later could not have been
 * gathered with it. Of several workers each gets work when it is idle: which of them will be idle first is not known before.
 * Nothing is given ahead of what is more urgent and waits for the worker to be idle because it does not fill a job.
 */
bool sl_gathering_gives_ahead(const struct sl_gathering *gathering, uint32_t samples_max);
