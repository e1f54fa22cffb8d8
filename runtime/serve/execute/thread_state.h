/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread executor from the inside: the executor, which has jobs and a runner, and its thread, which may run light jobs of the
 * let's other executors as well, as their threads may run those of this one. Files of the thread executor only.
 *
 * Threads: the claim says who runs the executor (claim.h); what belongs to the thread is its own, but for the two words by which
 * others tell it of something.
 */
#pragma once

#include "bell.h"
#include "claim.h"
#include "executor.h"
#include "job_runner.h"
#include "prepared.h"
#include "thread_executor.h"

#include <pthread.h>

struct sl_mailbox;
struct sl_team;

struct thread_executor {
        struct sl_executor common;
        struct sl_thread_executor_options options;
        void *memory;                              /* of the jobs */
        struct sl_job *jobs[SL_EXECUTOR_JOBS_MAX]; /* by slot: not read where the dispatcher counts */
        struct sl_mailbox *inbox, *outbox;         /* slots; answers */
        struct sl_claim claim;                     /* on the inbox, the runner, and what else a job changes */
        struct sl_prepared prepared;
        struct sl_team *team; /* of its runner's instance; whoever has the claim is its owner. NULL: none */
        _Atomic int32_t called; /* J1 of warm_up.h */

        /* its thread, which may run jobs of other executors of the let as well */
        pthread_t thread;
        bool running;
        struct sl_bell bell;
        struct sl_wait *wait;
        _Atomic bool told; /* its executor has been given a job, and it is told of it */
        _Atomic bool quits;
        _Atomic uint32_t tellers; /* other threads that tell it of a job, and touch its bell behind that (thread_loop.c): T1 */
        bool counted; /* as awake, in the let's ready queue */
        bool owes;    /* the dispatcher has not been told of the last answers */
        bool yields;  /* its own executor has more, but a light job of another one is next */
        bool ends;    /* the job at hand: it has completed a segment, or come behind its end, or failed */
};

/* What a thread does once its executor is ready, until it quits. */
void sl_thread_loop(struct thread_executor *thread);

/* It may pause with a job in the background, and has been given another one (thread_background.c). The dispatcher. */
void sl_thread_recall(struct thread_executor *thread);

/* In @thread, which has the claim on @executor. The rest: as sl_job_runner_run(). */
void sl_thread_run_in_background(
        struct thread_executor *thread, struct thread_executor *executor, struct sl_job *job, sl_answer_fn *answer, void *context);

/* Wakes it, if it sleeps, and counts it then as one that is awake for light jobs. Any thread; @from is its own wait, or NULL. */
void sl_thread_ring(struct thread_executor *thread, struct sl_wait *from);

/* The same, of a job of its own executor, which no other thread knows of: K1 of bell.h is the store. */
void sl_thread_tell(struct thread_executor *thread, struct sl_wait *from);
