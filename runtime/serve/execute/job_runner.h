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

struct sl_batcher;
struct sl_job_runner;

struct sl_job_runner_options {
        const struct sl_plan *plan;
        uint32_t batch_max;               /* a size of the plan's ladder: sl_job_runner_batch_max() */
        const struct sl_regions *regions; /* of the jobs' places, as they are mapped here */
        const _Atomic int32_t *verdicts;  /* one for each segment: V2 of job.h */
        bool fake;                        /* nothing is computed: outputs, all of known sizes, are zeros */
};

/* The largest size of the plan's ladder that is not above @batch_max. */
uint32_t sl_job_runner_batch_max(const struct sl_plan_info *info, uint32_t batch_max);

/* What a runner may take: its instance, and its pool. UINT64_MAX: more than can be said. */
uint64_t sl_job_runner_bytes(const struct sl_plan *plan, uint32_t batch_max);

/* All that takes time: kernels and memory. Return: 0; what sl_instance_new() says. */
int sl_job_runner_new(const struct sl_job_runner_options *options, struct sl_job_runner **ret_runner);
struct sl_job_runner *sl_job_runner_free(struct sl_job_runner *runner);

struct sl_instance *sl_job_runner_instance(struct sl_job_runner *runner);
struct sl_batcher *sl_job_runner_batcher(struct sl_job_runner *runner);

/* @answer is called once for each piece of the job, in any order, when its prediction lies in its place or there will be none.
 * With the last one the job is the giver's again. */
typedef void sl_answer_fn(void *context, const struct sl_job *job, struct sl_prediction *prediction);

void sl_job_runner_run(struct sl_job_runner *runner, struct sl_job *job, sl_answer_fn *answer, void *context);
