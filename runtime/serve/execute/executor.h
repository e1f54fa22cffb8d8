/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The boundary between who decides and who computes: an executor takes jobs for one instance of one model and answers their pieces.
 * What it is behind that, a thread, the caller itself, or another process, is its class's.
 *
 *     STARTING --first sample run--> READY          the loader looks (sl_executor_started), then hands it to the dispatcher
 *         |                            +--its process is gone--> -ECHILD     what is given is answered as lost
 *         +--no memory, no thread--> -errno
 *
 *   (S1) executor: first_ns written, then store-release state.
 *   (S2) loader:   load-acquire state, then read first_ns.          pairs with S1
 *
 * What is given and not answered is known here, so that when an executor dies just those pieces fail, or are computed elsewhere.
 * One that has died says so (`ended`), answers all that it has, and leaves as one that is removed does (dispatch/workers.h).
 *
 * Threads: made and freed by the loader (control), in between the dispatcher's. Only `state` and `first_ns` are the executor's own.
 */
#pragma once

#include "condition.h"
#include "job.h"

#include <stdatomic.h>
#include <stdbool.h>

struct sl_carrier;
struct sl_executor;
struct sl_histogram_set;
struct sl_let;
struct sl_model;
struct sl_wait;
struct sl_worker_stats;

/* Jobs that one can have: the next lies ready when one ends. On a GPU several are computed at once. */
#define SL_EXECUTOR_JOBS_MAX  2
#define SL_EXECUTOR_SLOTS_MAX 4

struct sl_executor_class {
        const char *name;   /* "thread", "inline", "process" */
        bool is_immediate;  /* give() returns when the job is computed: its time is the giver's */
        bool gives_way;     /* a job in the background ends early, as SL_LOST_YIELDED, when another one is given */
        bool names_the_job; /* its answers say of which job they are, and come in any order of jobs */

        /* The job is that of the slot. @from: the giver's own wait, or NULL. */
        void (*give)(struct sl_executor *executor, uint32_t slot, struct sl_wait *from);
        /* The next answer: of the oldest job, where jobs are done in the order in which they are given. */
        bool (*poll)(struct sl_executor *executor, struct sl_prediction *ret_prediction);
        /* Is there one? seq_cst, for the last look before a sleep (wait/bell.h). */
        bool (*waiting)(struct sl_executor *executor);
        /* The giver is about to sleep on its wake_fd, or no longer. seq_cst; NULL: it rings the giver's bell by itself. */
        void (*listen)(struct sl_executor *executor, bool listening);
        /* Begins to end what runs. False: it runs still, and stop() would wait for it. Never waits; NULL: stop() does not either.
         */
        bool (*leave)(struct sl_executor *executor);
        /* Ends what runs, and frees. */
        void (*stop)(struct sl_executor *executor);
};

enum { SL_EXECUTOR_STARTING, SL_EXECUTOR_READY };

struct sl_executor {
        const struct sl_executor_class *class;
        uint32_t batch_max;   /* samples of its largest batch */
        uint32_t samples_max; /* of a job */
        uint64_t room_bytes;  /* for each output of a job that says only afterwards how large it is; UINT64_MAX: what pieces say */
        uint32_t jobs_max;    /* that it can have: SL_EXECUTOR_JOBS_MAX, or up to SL_EXECUTOR_SLOTS_MAX */
        uint32_t gpu;         /* 1 + the GPU whose process can combine what members make in it; 0: none */
        int wake_fd;          /* becomes readable, an edge each time, when it answers while its giver listens; -1: it has none */
        struct sl_let *let;   /* where it runs; NULL: in its giver's thread */
        uint32_t cores;       /* of the let that a job takes; READY */
        struct sl_carrier *carrier; /* whose lane it is; NULL: it computes for itself */
        uint32_t lane;
        struct sl_model *model; /* of a lane: whose jobs it has. Its giver's */
        struct sl_worker_stats *stats;
        uint16_t number;                     /* 1 + its slot in the stats page; 0: it has none. Its giver's */
        struct sl_histogram_set *histograms; /* of the pieces that it has answered, by its giver; NULL: it has none */

        _Atomic int32_t state; /* SL_EXECUTOR_*, or -errno */
        uint64_t first_ns;     /* what its first sample took; 0: none was run */

        /* dispatcher */
        bool ended;       /* its class's poll() found that it has died: it answers what it has, and is given no more */
        uint32_t resting; /* jobs that are computed and wait for what other members make, as it says: of n_given, or stale */
        struct sl_worker_condition condition; /* INACTIVE: nothing is learned of it (dispatch/conditions.h) */
        uint32_t n_background;                /* of n_given, those of class SL_BACKGROUND */
        uint32_t n_given, oldest;             /* slots [oldest, oldest + n_given), where jobs end in order */
        struct sl_given_job {
                struct sl_job *job;
                uint32_t unanswered; /* pieces; 0: the slot is free */
                uint64_t answered[SL_JOB_PIECES_MAX / 64];
        } slots[SL_EXECUTOR_SLOTS_MAX];
};

/* For classes. @jobs: memory for @jobs_max times sl_job_bytes(), which stays the class's. */
void sl_executor_init(struct sl_executor *executor, void *jobs, uint32_t jobs_max, uint32_t n_inputs, uint32_t n_outputs);

/* S1, and S2. Return: SL_EXECUTOR_*, or -errno: it cannot start. */
void sl_executor_say(struct sl_executor *executor, int32_t state, uint64_t first_ns);
int32_t sl_executor_started(const struct sl_executor *executor);

/* The dispatcher no longer knows it, and it is to end. True: to free it waits for nothing; false: not yet. Never waits. */
bool sl_executor_leave(struct sl_executor *executor);

/* NULL is fine. Returns NULL. The dispatcher no longer knows it. */
struct sl_executor *sl_executor_free(struct sl_executor *executor);

/* ---- dispatcher ---- */

/* The job to fill next: empty and not light, for this model. NULL: it has all that it can have. */
struct sl_job *sl_executor_job(struct sl_executor *executor);

/* Gives the job that was filled. */
void sl_executor_give(struct sl_executor *executor, struct sl_wait *from);

/* The next answer, and the job that it is about, in its slot, which stays as it is until its last piece is marked as answered. */
bool sl_executor_poll(struct sl_executor *executor, struct sl_job **ret_job, struct sl_prediction *ret_prediction);

/* True when that was the last piece of the slot's job, which is gone then. */
bool sl_executor_answered(struct sl_executor *executor, uint32_t slot, uint32_t piece);

static inline bool sl_executor_waiting(struct sl_executor *executor)
{
        return executor->class->waiting(executor);
}

static inline void sl_executor_listen(struct sl_executor *executor, bool listening)
{
        if (executor->class->listen)
                executor->class->listen(executor, listening);
}

/* Jobs that it has. */
static inline uint32_t sl_executor_jobs(const struct sl_executor *executor)
{
        return executor->n_given;
}

/* Of them, those that it computes or will. */
static inline uint32_t sl_executor_computing(const struct sl_executor *executor)
{
        return executor->n_given - (executor->resting < executor->n_given ? executor->resting : executor->n_given);
}
