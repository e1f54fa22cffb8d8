/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a policy is shown of a model's queues, of its workers, and of the lets that they share with others: filled here, for the
 * dispatcher and for whoever simulates it. What is the model's own in the view its owner fills. A part of one run of the scheduler,
 * on its stack.
 */
#pragma once

#include "policy.h"
#include "turns.h"

struct sl_look {
        struct sl_policy_view *view;
        uint32_t priority;
        uint64_t run; /* of the scheduler */
        struct sl_turns *lets[SL_POLICY_WORKERS_MAX];
};

/* What waits in class @priority; no worker and no let yet, and no co-run model: lets that are shared are divided by time. */
void sl_look_begin(struct sl_look *look, struct sl_policy_view *view, const struct sl_task_queue queues[SL_CLASSES],
        uint32_t priority, uint64_t run);

/* The next worker of the model, which runs where @turns are. Its number in the view's lets is filled here. */
void sl_look_at(struct sl_look *look, const struct sl_policy_worker *worker, struct sl_turns *turns);

/* Of what is waiting when these decisions are done: is no worker idle that it could go to? A policy may hold something back. */
bool sl_look_lacks_workers(const struct sl_look *look, const struct sl_decision *decisions, uint32_t n);

/* The decisions are done: what waits still has found no idle worker on any of these lets. */
void sl_look_end(const struct sl_look *look);
