/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is given out of one model's queue of one class in a run of the scheduler: the model's policy is shown what waits and
 * decides, and jobs are made of that. A part of the run, on its stack. Dispatcher only.
 */
#pragma once

#include "base/clock.h"
#include "scheduler.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_executor;
struct sl_let;
struct sl_task_queue;

/* About what it takes until a thread runs that slept: behind a job that is expected to take no longer another one may wait. */
#define SL_LIGHT_NS (100 * SL_NS_PER_US)

/* About what the call takes that wakes one. */
#define SL_WAKE_CALL_NS (5 * SL_NS_PER_US)

struct sl_handout {
        const struct sl_schedule *schedule;
        struct sl_model *model;
        struct sl_task_queue *queue; /* of the class */
        uint32_t priority;
        uint32_t spared; /* tasks that are other workers' by what was decided */
};

struct sl_handout sl_handout_of(const struct sl_schedule *schedule, struct sl_model *model, uint32_t priority);

/* Tasks. */
uint32_t sl_handout_waiting(const struct sl_handout *handout);

/* The first of them is for the dispatcher itself. */
bool sl_handout_is_inline(const struct sl_handout *handout);

/* The model's workers get what its policy decides. A lane's job waits for the launch of its carrier (bundle.h). Return: jobs. */
uint32_t sl_handout_run(struct sl_handout *handout);

/* The executor gets a job of the next @samples; it can have one. */
void sl_handout_give(struct sl_handout *handout, struct sl_executor *executor, uint32_t samples);

/* A job takes its place on the let, until its last answer. */
void sl_handout_take_turn(struct sl_let *let, uint32_t priority, uint32_t cores);
