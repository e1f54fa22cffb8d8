/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor without a thread: whoever gives a job computes it there and then, and finds the answers at once. No mailbox, no
 * bell, no second thread; for jobs that take less than handing them over.
 *
 * Threads: tried by the thread that prepares the model's first worker, made by the loader, then the giver's.
 */
#pragma once

#include "executor.h"
#include "job_runner.h"

struct sl_accumulator;
struct sl_own_time;

/* Samples of its largest batch. */
#define SL_INLINE_SAMPLES_MAX 32u

/* Elementary steps that the data may decide on (sl_plan_data_work()): `ref`, the slowest, takes some nanoseconds for each. */
#define SL_INLINE_DATA_STEPS 4096u

/* What has been tried: a runner, and how many samples surely take no longer than was asked for. NULL: it is not for inline. */
struct sl_inline_trial {
        struct sl_job_runner *runner;
        uint32_t samples;
        uint64_t bytes;     /* that the runner takes */
        uint64_t sample_ns; /* the shortest that one took */
};

/*
 * Has @tried, a runner of the plan that has computed a sample, compute another, in the own time of the thread: of zeros, which may
 * take @limit_ns, and of denormal numbers, on which some processors are a hundred times slower, and which may take @bound_ns. If
 * they do not take longer a runner is made as @options say, of at most SL_INLINE_SAMPLES_MAX and of 4 MiB. What was tried says
 * nothing of other data where those decide how much is done: plans of more than SL_INLINE_DATA_STEPS are not tried. Return: 0, with
 * or without a runner; -ENOMEM.
 */
int sl_inline_trial_run(const struct sl_job_runner_options *options, struct sl_job_runner *tried, uint64_t limit_ns,
        uint64_t bound_ns, struct sl_inline_trial *ret_trial);

/*
 * Takes the runner. A job that takes longer than @bound_ns, and has then taken so much of the thread's own time (own_time.h), is
 * given up between two steps of its plan: its pieces are answered as SL_LOST_LONG, for a worker to compute. Return: 0, -ENOMEM: the
 * runner is freed.
 */
int sl_inline_executor_new(const struct sl_inline_trial *trial, const struct sl_plan *plan, uint64_t bound_ns,
        struct sl_accumulator *accumulator, struct sl_worker_stats *stats, struct sl_executor **ret_executor);

/* From now on its jobs wait for the launches of @carrier (inline_carrier.h). Before it has any. Return: 0, -ENOSPC. */
int sl_inline_executor_join(struct sl_executor *executor, struct sl_carrier *carrier);

/* For its carrier: the job that it has, to be computed in @own, with all others of the launch; and how long they may take. */
void sl_inline_executor_begin(struct sl_executor *executor, struct sl_own_time *own, struct sl_job_run *ret_run);
uint64_t sl_inline_executor_bound_ns(struct sl_executor *executor);

/* Even on data that take a hundred times as long as those of the trial the job would end in time: it need not be looked at. */
bool sl_inline_executor_is_short(struct sl_executor *executor);
