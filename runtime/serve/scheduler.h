/*
 * The scheduler of one model: owns the model's queue of segments and pushes work to the mailboxes of idle workers; workers
 * never compete for a queue. Elastic only in what it gathers: whatever waits when a worker is idle goes into one
 * job, up to the worker's batch; nothing is delayed to fill a batch. Dispatcher only.
 */
#pragma once

#include <stdint.h>

struct sl_accumulator;
struct sl_model;
struct sl_wait;

struct sl_task {
        uint32_t segment, member;
};

struct sl_scheduler {
        struct sl_task *tasks; /* ring; as many as there are segments, so that it is never full */
        uint32_t mask, head, tail;
};

/* @segments: how many the accumulator can have open. Return: 0, -ENOMEM. */
int sl_scheduler_init(struct sl_scheduler *scheduler, uint32_t segments);
void sl_scheduler_deinit(struct sl_scheduler *scheduler);

/* Queues one segment for the model. */
void sl_scheduler_push(struct sl_scheduler *scheduler, uint32_t segment, uint32_t member);

/* Gives waiting segments to idle workers and stamps the requests' assigned_ns. Return: jobs given. */
uint32_t sl_scheduler_run(struct sl_model *model, struct sl_accumulator *accumulator, struct sl_wait *from, uint64_t now_ns);
