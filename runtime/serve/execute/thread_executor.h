/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor with a thread of its own: a runner, an inbox of jobs and an outbox of answers. Around the jobs: start (kernels,
 * memory, one run), the rest of the warm-up while no job waits (warm_up.h), shut-down.
 *
 * Light jobs of executors that share a let are run by whichever of their threads is awake, so that no more threads are woken for
 * them than the let has cores (ready_queue.h, thread_loop.c): the runner is whose claim it is (claim.h).
 *
 * Threads: the inbox is filled and the outbox emptied by whoever has the executor.
 */
#pragma once

#include "bell.h"
#include "executor.h"
#include "inline_executor.h"
#include "plan.h"

#include <sched.h>

struct sl_accumulator;
struct sl_error;
struct sl_growth;
struct sl_let;

struct sl_thread_executor_options {
        const struct sl_plan *plan;
        const struct sl_regions *regions;
        struct sl_accumulator *accumulator;
        uint32_t batch_max;                  /* the instance's is the largest size of the plan's ladder that is not above it */
        uint64_t inline_ns, inline_bound_ns; /* of a trial for inline (inline_executor.h), before "ready"; 0: none */
        uint64_t first_ns;                   /* as prepared.h says */
        uint64_t warmup_ns;                  /* how long it may run larger batches than one before its first job */
        bool fake;                           /* predictions are zeros: job_runner.h */
        struct sl_growth *growth;            /* NULL: nobody counts what data-dependent steps take */
        bool background;                     /* something is served meanwhile: the start gives way to it */
        struct sl_let *let;
        cpu_set_t start_cores; /* where it is until it is ready; empty: anywhere */
        uint32_t threads; /* that compute a batch together, each on a core of the let, at most as many as it has; 0 and 1: one */
        uint32_t nth;     /* of the let's workers: whose cores begin where those of the one before end */
        uint64_t spin_ns;
        uint64_t team_spin_ns; /* how long its team's members look for a step while it runs a batch; 0: SL_TEAM_SPIN_NS */
        enum sl_wait_kind wait;
        const char *name;           /* of the thread */
        struct sl_bell *starter;    /* rung once, when sl_executor_started() has changed */
        struct sl_bell *dispatcher; /* rung after each job: sl_bell_ring_for() */
        struct sl_worker_stats *stats;
};

/* Starts the thread. Return: 0; -EAGAIN, -ENOMEM, -EMFILE, with a text. */
int sl_thread_executor_new(
        const struct sl_thread_executor_options *options, struct sl_executor **ret_executor, struct sl_error *error);

/* READY: what its trial has shown, which is the caller's from here on. */
struct sl_inline_trial sl_thread_executor_take_trial(struct sl_executor *executor);
