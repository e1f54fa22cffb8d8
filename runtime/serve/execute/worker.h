/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker: one instance of one model, of one largest batch, on its cores (ensemble paper, section II.D). Its three stages
 *
 *     batcher    splits a segment into batches, or gathers several small segments into one   (batcher.h)
 *     predictor  runs the network on a batch                                                 (sl_instance_run)
 *     sender     delivers the predictions of a segment to the accumulator and says so        (sender.h)
 *
 * run one after another on the worker's one thread: on a CPU they would compete for the same core, and two hops between
 * threads cost more than gather and send together. Around the stages: start (instance, one run, "ready" or "not enough memory"),
 * the rest of the warm-up while no job waits (warm_up.h), shut-down.
 *
 * Threads: everything belongs to the worker's thread but inbox (dispatcher puts), outbox (dispatcher, before ADD_MODEL the
 * loader, takes), bell, and `outstanding` (dispatcher).
 */
#pragma once

#include "bell.h"
#include "job.h"
#include "mailbox.h"
#include "plan.h"
#include "warm_up.h"

#include <pthread.h>
#include <sched.h>

struct sl_accumulator;
struct sl_batcher;
struct sl_error;
struct sl_worker_stats;

/* Jobs that a worker can have: the next one lies ready when one ends. */
#define SL_WORKER_JOBS_MAX 2

struct sl_worker_options {
        const struct sl_plan *plan;
        struct sl_accumulator *accumulator;
        uint32_t batch_max;
        uint64_t warmup_ns; /* how long it may run larger batches than one before its first job */
        bool background;    /* something is served meanwhile: the start gives way to it */
        cpu_set_t cpus;     /* empty: not pinned */
        uint64_t spin_ns;
        enum sl_wait_kind wait;
        const char *name;           /* of the thread */
        struct sl_bell *starter;    /* rung once, with "ready" or "not enough memory" in the outbox */
        struct sl_bell *dispatcher; /* rung after each job */
        struct sl_worker_stats *stats;
};

struct sl_worker {
        struct sl_worker_options options;
        uint32_t batch_max; /* largest size of the plan's ladder that is not above the option */
        struct sl_mailbox *inbox, *outbox;
        struct sl_bell bell;
        struct sl_wait *wait;
        struct sl_instance *instance;
        struct sl_batcher *batcher;
        struct sl_warm_up warm_up;
        pthread_t thread;
        bool running;

        /* dispatcher: the job that runs and the one that waits behind it */
        struct sl_given_job {
                uint32_t segments; /* given and not answered; 0: no job */
                uint32_t priority;
        } jobs[SL_WORKER_JOBS_MAX];
};

/* The largest size of the plan's ladder that is not above @batch_max: that of the worker's instance. */
uint32_t sl_worker_batch_max(const struct sl_plan_info *info, uint32_t batch_max);

/* Dispatcher: jobs that the worker has; one more; one segment of the oldest was answered: true when that was its last. */
uint32_t sl_worker_jobs(const struct sl_worker *worker);
void sl_worker_give(struct sl_worker *worker, const struct sl_job *job, uint32_t priority, struct sl_wait *from);
bool sl_worker_answered(struct sl_worker *worker);

/* Starts the thread. Return: 0; -EAGAIN, -ENOMEM, -EMFILE. The thread answers through its outbox. */
int sl_worker_new(const struct sl_worker_options *options, struct sl_worker **ret_worker, struct sl_error *error);

/* Sends the shut-down message, joins, frees. NULL is fine. Returns NULL. The dispatcher no longer knows the worker. */
struct sl_worker *sl_worker_free(struct sl_worker *worker);
