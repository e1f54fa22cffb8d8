/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor that is a lane of a carrier (carrier.h): a runner of its own plan, jobs of its own, and the carrier's thread and
 * room, where it computes in turn with the other lanes. It is made ready by a thread that ends then, so that the carrier goes on
 * meanwhile; a lane joins and leaves while others compute.
 */
#pragma once

#include "executor.h"
#include "prepared.h"

#include <sched.h>

struct sl_bell;
struct sl_error;
struct sl_job_runner;

struct sl_lane_executor_options {
        struct sl_prepare_options prepare; /* but for `called` */
        struct sl_carrier *carrier;        /* of threads (thread_carrier.h) */
        cpu_set_t start_cores;             /* where it is made ready; empty: anywhere */
        bool background;                   /* something is served meanwhile: the start gives way to it */
        struct sl_bell *starter;           /* rung once, when sl_executor_started() has changed */
        const char *name;                  /* of the thread that makes it ready */
};

/*
 * Takes a lane and starts. batch_max becomes a size of the plan's ladder. Return: 0; -ENOSPC the carrier has no lane left; -EAGAIN,
 * -ENOMEM, with a text.
 */
int sl_lane_executor_new(const struct sl_lane_executor_options *options, struct sl_executor **ret_executor, struct sl_error *error);

/* READY: what its trial has shown, which is the caller's from here on. */
struct sl_inline_trial sl_lane_executor_take_trial(struct sl_executor *executor);

/* READY: it computes in the carrier's room, and takes no memory of its own for that. */
bool sl_lane_executor_has_room(const struct sl_executor *executor);

/* The thread of its carrier: the next of its jobs. */
struct sl_job *sl_lane_executor_next(struct sl_executor *executor);
struct sl_job_runner *sl_lane_executor_runner(struct sl_executor *executor);
