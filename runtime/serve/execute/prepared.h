/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an executor has to have before it is ready: a runner, its first sample run (warm_up.h), and a trial for inline
 * (inline_executor.h). One thread, which may be another one than that which runs jobs afterwards.
 */
#pragma once

#include "inline_executor.h"
#include "plan.h"
#include "warm_up.h"

struct sl_accumulator;
struct sl_growth;
struct sl_worker_stats;

struct sl_prepare_options {
        const struct sl_plan *plan;
        const struct sl_regions *regions;
        struct sl_accumulator *accumulator;
        uint32_t batch_max;                  /* a size of the plan's ladder */
        uint64_t inline_ns, inline_bound_ns; /* of a trial for inline; 0: none */
        uint64_t first_ns;  /* that a sample took before, and none is run now, unless inline is to be tried; 0: none was run */
        uint64_t warmup_ns;                  /* how long it may run larger batches than one before its first job */
        bool fake;                           /* predictions are zeros: job_runner.h */
        struct sl_growth *growth;            /* NULL: nobody counts what data-dependent steps take */
        struct sl_worker_stats *stats;
        const _Atomic int32_t *called; /* J1 of warm_up.h */
};

struct sl_prepared {
        struct sl_prepare_options options;
        struct sl_job_runner *runner;
        struct sl_warm_up warm_up;
        struct sl_inline_trial trial;
};

/* Kernels and memory. Zeroed before. Return: 0; what sl_job_runner_new() says. */
int sl_prepared_make(struct sl_prepared *prepared, const struct sl_prepare_options *options);

/* The first sample, and the trial. Return: 0; what sl_instance_run() says. */
int sl_prepared_run_first(struct sl_prepared *prepared);

/* Whoever has taken the trial frees that. */
void sl_prepared_free(struct sl_prepared *prepared);
struct sl_inline_trial sl_prepared_take_trial(struct sl_prepared *prepared);
