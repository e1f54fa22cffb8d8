/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loaded model: its plan, its workers, and the one scheduler that feeds them. Made by the loader (control thread), used by
 * the dispatcher from ADD_MODEL to MODEL_GONE, then freed by the loader.
 */
#pragma once

#include "inline_rule.h"
#include "plan.h"
#include "policy.h"
#include "scheduler.h"
#include "service_time.h"
#include "workers.h"

struct sl_memory;
struct sl_stats;
struct sl_executor;

/* So many jobs have forgotten the worker's first sample, which was cold: then the service time says what others will wait. */
#define SL_JOBS_KNOWN 8u

/* Samples of the largest job, however short they are. */
#define SL_SLICE_SAMPLES_MAX 65536u

struct sl_model {
        char name[64];
        int64_t version;
        uint64_t stamp;
        struct sl_plan *plan;
        const struct sl_plan_info *info;
        struct sl_executor *inliner; /* for the dispatcher itself; NULL: it is not for that */
        struct sl_stats *stats;      /* where its workers have their slots */
        struct sl_memory *memory;    /* which has promised this to each of its workers, and to the inliner; control thread */
        uint64_t worker_bytes, inliner_bytes;
        uint32_t n_promised;
        uint32_t refs;      /* ensembles; control thread */
        uint32_t n_started; /* control thread: all workers that were started and not freed, to be freed with the model */
        struct sl_executor *started[SL_WORKERS_MAX];
        bool takes_turns;             /* its workers share cores with others' */
        bool reruns;                  /* what a process has died with is run again, once */
        uint64_t slice_ns;            /* that a job may take, if it is more than one sample */
        uint32_t first_core;          /* of its workers, when they have cores of their own; control thread */
        struct sl_model *next_loaded; /* list of the registry */

        /* dispatcher */
        struct sl_workers workers;
        struct sl_scheduler scheduler;
        sl_policy_fn *policy;
        struct sl_service_time service_time;
        struct sl_inline_gauge gauge;
        uint32_t jobs;          /* of which it was learned while serving, up to SL_JOBS_KNOWN */
        uint32_t slice_samples; /* that fit slice_ns */
        struct sl_model *next;
};

/* A job of @samples took @ns. Dispatcher; the loader, before the dispatcher has it. */
static inline void sl_model_learn(struct sl_model *model, uint32_t samples, uint64_t ns)
{
        sl_service_time_learn(&model->service_time, samples, ns);
        model->slice_samples = sl_service_time_samples(&model->service_time, model->slice_ns, SL_SLICE_SAMPLES_MAX);
}
