/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler of one model: owns the model's queue of segments and pushes work to the mailboxes of idle workers; workers
 * never compete for a queue. Elastic only in what it gathers: whatever waits when a worker is idle goes into one
 * job, up to the worker's batch and the model's slice of time; nothing is delayed to fill a batch. More urgent segments
 * go first, and a job is of one priority. What is short enough the dispatcher computes itself (inline_rule.h), behind the jobs that
 * it gives to workers. Dispatcher only.
 */
#pragma once

#include "layout.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_accumulator;
struct sl_model;
struct sl_turns;
struct sl_wait;

struct sl_task {
        uint32_t segment, member;
        bool is_inline; /* for the dispatcher itself, as long as it has time */
};

struct sl_task_queue {
        struct sl_task *tasks; /* ring; as many as there are segments, so that it is never full */
        uint32_t head, tail;
};

struct sl_scheduler {
        struct sl_task_queue queues[SL_PRIORITIES];
        uint32_t mask; /* of every ring */
};

/* @segments: how many the accumulator can have open. Return: 0, -ENOMEM. */
int sl_scheduler_init(struct sl_scheduler *scheduler, uint32_t segments);
void sl_scheduler_deinit(struct sl_scheduler *scheduler);

/* Does a segment wait for a worker? */
bool sl_scheduler_waits(const struct sl_scheduler *scheduler);

/* Queues one segment for the model. */
void sl_scheduler_push(struct sl_scheduler *scheduler, const struct sl_task *task, uint32_t priority);

/* The time that the dispatcher may compute in a pass. */
struct sl_inline_budget {
        uint64_t limit_ns; /* of one job: `inline_us` */
        uint64_t left_ns;
        uint32_t jobs;   /* computed in the last run: their answers wait */
        uint64_t now_ns; /* when the last of them ended */
};

/* What a list of models (through `next`) is given out with. */
struct sl_schedule {
        struct sl_model *models;
        struct sl_turns *turns;
        struct sl_inline_budget *budget;
        struct sl_accumulator *accumulator;
        struct sl_wait *from;
        uint64_t now_ns;
};

/*
 * Gives waiting segments to idle workers, computes some itself, and stamps the requests' assigned_ns: the most urgent first, of all
 * models, as turns and budget allow. Return: jobs given. As long as the budget says that jobs were computed, there may be more to
 * do once their answers have been harvested.
 */
uint32_t sl_scheduler_run(const struct sl_schedule *schedule);
