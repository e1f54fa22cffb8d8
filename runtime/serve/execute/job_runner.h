/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What computes jobs, whatever thread or process it is in: one instance of one plan, of one largest batch, and a batcher around it
 * (ensemble paper, section II.D, whose batcher, predictor and sender are here one after another on one thread: on a CPU they would
 * compete for the same core, and two hops between threads cost more than gather and send together). What is done with its answers
 * is its owner's.
 *
 * Threads: one at a time.
 */
#pragma once

#include "job.h"
#include "plan.h"

#include <stdatomic.h>

struct sl_batch;
struct sl_batcher;
struct sl_growth;
struct sl_pool_grant;
struct sl_own_time;
struct sl_job_runner;
struct sl_worker_stats;

struct sl_job_runner_options {
        const struct sl_plan *plan;
        uint32_t batch_max;               /* a size of the plan's ladder: sl_job_runner_batch_max() */
        const struct sl_regions *regions; /* of the jobs' places, as they are mapped here */
        const _Atomic int32_t *verdicts;  /* one for each segment: V2 of job.h */
        bool fake;                        /* nothing is computed: outputs, all of known sizes, are zeros */
        struct sl_growth *growth;         /* out of which data-dependent steps take memory; NULL: nobody counts it, or: */
        struct sl_pool_grant *grant;      /* which another process counts; NULL */
        /*
         * Asked before output @output, which says only afterwards how large it is, is written with @bytes. False: there is no
         * memory for it. NULL: there is as much as each job says.
         */
        bool (*make_room)(void *context, uint32_t output, uint64_t bytes);
        void *room_context;
};

/* The largest size of the plan's ladder that is not above @batch_max. */
uint32_t sl_job_runner_batch_max(const struct sl_plan_info *info, uint32_t batch_max);

/* What a runner may take: its instance, and its pool. UINT64_MAX: more than can be said. */
uint64_t sl_job_runner_bytes(const struct sl_plan *plan, uint32_t batch_max);

/* All that takes time: kernels and memory. Return: 0; what sl_instance_new() says. */
int sl_job_runner_new(const struct sl_job_runner_options *options, struct sl_job_runner **ret_runner);
struct sl_job_runner *sl_job_runner_free(struct sl_job_runner *runner);

/* Its workspace and its pool, one behind the other. UINT64_MAX: more than can be said. */
uint64_t sl_job_runner_room_bytes(const struct sl_plan *plan, uint32_t batch_max);

/* Of what sl_job_runner_bytes() says that it may take, that which lies in such a room, and is another's memory then. */
uint64_t sl_job_runner_moved_bytes(const struct sl_plan *plan, uint32_t batch_max);

/*
 * From now on it computes in @room, of so many bytes, which other runners may use between jobs; what it had of its own is given up.
 * The room lives as long as the runner, is aligned to 64 bytes, and its owner faults it. Between jobs.
 */
void sl_job_runner_move(struct sl_job_runner *runner, void *room);

/* From now on it shows in @stats what its data-dependent steps have been promised and have used, and what its plan has packed. */
void sl_job_runner_show(struct sl_job_runner *runner, struct sl_worker_stats *stats);

struct sl_instance *sl_job_runner_instance(struct sl_job_runner *runner);
struct sl_batcher *sl_job_runner_batcher(struct sl_job_runner *runner);

/* Its plan is of any size: requests say the shapes of inputs. */
bool sl_job_runner_is_any_size(const struct sl_job_runner *runner);

/* Runs the batch, whose outputs nobody reads: 1 stands for what a request says. Return: as sl_instance_run(). */
int sl_job_runner_try(struct sl_job_runner *runner, const struct sl_batch *batch);

/* Of any size: runs zeros with @size for all that is open, until @until_ns at most, so that it knows what kernels for others cost.
 */
void sl_job_runner_meet(struct sl_job_runner *runner, uint32_t size, uint64_t until_ns);

/* One batch computes each of its jobs that fits one, whoever runs that: no output has a size of its own, and none is fake. */
bool sl_job_runner_is_plain(const struct sl_job_runner *runner);

/* @answer is called once for each piece of the job, in any order, when its prediction lies in its place or there will be none.
 * With the last one the job is the giver's again. */
typedef void sl_answer_fn(void *context, const struct sl_job *job, struct sl_prediction *prediction);

/* @begun_ns: the clock, as it was read last. Return: when it ended. */
uint64_t sl_job_runner_run(
        struct sl_job_runner *runner, struct sl_job *job, uint64_t begun_ns, sl_answer_fn *answer, void *context);

/*
 * The same in steps, for who computes jobs of several models in one run (block.h):
 *
 *     begin --> alone                                by the runner's own plan
 *           \-> lend --> return --> done             by another plan, in one batch: answered
 *                              \-> alone             which has failed: as if nothing had been
 */
struct sl_job_run {
        struct sl_job_runner *runner;
        struct sl_job *job;
        sl_answer_fn *answer;
        void *context;
        struct sl_worker_stats *stats; /* of whoever has the job: counts what is lent */
        struct sl_own_time *own;       /* behind which all that has not ended is answered as SL_LOST_LONG; NULL: nothing is */
        struct sl_way *way;            /* asked between steps; who leaves has all answered as SL_LOST_YIELDED; NULL: it goes on */
        uint32_t n, samples;           /* pieces that are worth computing, and what they have */
        uint32_t pieces[SL_JOB_PIECES_MAX];
};

/* How one was computed, of which it had this share. */
struct sl_job_share {
        uint64_t started_ns, ended_ns;
        uint64_t busy_ns, computing_ns;
};

/* Samples of the job, before anybody has looked at what is given up. Of a model without a batch: 1. */
uint32_t sl_job_run_batch(const struct sl_job_run *run);

/* Answers what is given up. Before: all fields but the last three are set. True: something is left. */
bool sl_job_run_begin(struct sl_job_run *run, uint64_t now_ns);

/* @begun_ns, and return: as of sl_job_runner_run(). */
uint64_t sl_job_run_alone(struct sl_job_run *run, uint64_t begun_ns);

/* @pool: as of sl_batcher_lend(), for the @samples of its batch. The runner is plain. */
void sl_job_run_lend(struct sl_job_run *run, void *pool, uint32_t samples, struct sl_batch *ret_batch);

/* @is_done: outputs lie in the batch, and go to their places. */
void sl_job_run_return(struct sl_job_run *run, bool is_done);

/* Answers for what has been done. */
void sl_job_run_done(const struct sl_job_run *run, const struct sl_job_share *share);
