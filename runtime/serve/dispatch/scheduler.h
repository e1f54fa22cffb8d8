/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler of one model: owns what waits for it, shows it to the model's policy (policy.h), and makes jobs of what that
 * decides, which it pushes to the executors; workers never compete for a queue. More urgent tasks go first, and a job is of one
 * priority. What is short enough the dispatcher computes itself (inline_rule.h), behind the jobs that it gives to workers.
 * Dispatcher only.
 */
#pragma once

#include "layout.h"
#include "task_queue.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_accumulator;
struct sl_bundle;
struct sl_decision_log;
struct sl_model;
struct sl_wait;

struct sl_scheduler {
        uint32_t classes; /* as bits: in no other class anything waits */
        struct sl_task_queue queues[SL_CLASSES];
};

/* @segments: how many the accumulator can have open. Return: 0, -ENOMEM. */
int sl_scheduler_init(struct sl_scheduler *scheduler, uint32_t segments);
void sl_scheduler_deinit(struct sl_scheduler *scheduler);

/* Does a segment wait for a worker? */
bool sl_scheduler_waits(const struct sl_scheduler *scheduler);

/* Queues one task for the model. There is room: no segment is queued twice. */
void sl_scheduler_push(struct sl_scheduler *scheduler, const struct sl_task *task, uint32_t priority);

/* Tasks that may be queued beyond one for each segment. */
uint32_t sl_scheduler_room(const struct sl_scheduler *scheduler, uint32_t priority);

/* Takes out what @ends says of, which has seen to it; of one model that has no worker. Return: how many. */
uint32_t sl_scheduler_drop(struct sl_scheduler *scheduler, bool (*ends)(void *context, const struct sl_task *task), void *context);

/* Samples come back uncomputed: they wait again, before what came later. False: there is no room. */
bool sl_scheduler_return(struct sl_scheduler *scheduler, const struct sl_task *task, uint32_t priority);

/* The time that the dispatcher may compute in a pass. */
struct sl_inline_budget {
        uint64_t limit_ns; /* of one job: `inline_us` */
        uint64_t left_ns;
        bool keeps;          /* what it does not come to in this pass may wait for the next one */
        bool kept;           /* and does: it is not for workers */
        uint32_t kept_class; /* that what is kept is of; of an only request it is all */
        uint32_t jobs;       /* computed in the last run: their answers wait */
        uint64_t now_ns;     /* when the last of them ended */
};

/* What a list of models (through `next_busy`) is given out with, some of which are in one of these bundles. */
struct sl_schedule {
        struct sl_model *models;
        struct sl_bundle *bundles;
        uint64_t run; /* grows with each, from 1 */
        struct sl_inline_budget *budget;
        struct sl_accumulator *accumulator;
        struct sl_wait *from;
        uint64_t now_ns;
        struct sl_decision_log *decisions; /* where they are written; NULL: nowhere */
        uint64_t *ret_next_ns;             /* the earliest time at which a policy wants to be asked again; UINT64_MAX: none does */
        bool *ret_full;                    /* something waits while all workers that could take it have jobs */

        struct sl_model *waiting[SL_CLASSES]; /* the run's own: who has something in the class, through `next_waiting` */
};

/*
 * Gives waiting segments to idle workers, computes some itself, and stamps the requests' assigned_ns: the most urgent first, of all
 * models, as turns and budget allow. Return: jobs given. As long as the budget says that jobs were computed, there may be more to
 * do once their answers have been harvested.
 */
uint32_t sl_scheduler_run(struct sl_schedule *schedule);
