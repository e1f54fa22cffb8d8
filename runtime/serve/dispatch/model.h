/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loaded model: its plan, its workers, and the one scheduler that feeds them. Made by the loader (control thread), used by
 * the dispatcher from ADD_MODEL to MODEL_GONE, then freed by the loader.
 */
#pragma once

#include "fault.h"
#include "inline_rule.h"
#include "layout.h"
#include "pace.h"
#include "plan.h"
#include "policy.h"
#include "scheduler.h"
#include "service_time.h"
#include "size_line.h"
#include "workers.h"

struct sl_bundle;
struct sl_crew;
struct sl_memory;
struct sl_queue_stats;
struct sl_stats;
struct sl_executor;

/* So many jobs have forgotten the worker's first sample, which was cold: then the service time says what others will wait. */
#define SL_JOBS_KNOWN 8u

struct sl_model {
        int64_t version;
        uint64_t stamp;
        struct sl_plan *plan;
        const struct sl_plan_info *info;
        struct sl_executor *inliner; /* for the dispatcher itself; NULL: it is not for that */
        struct sl_stats *stats;      /* where the inliner has its slot */
        struct sl_memory *memory;    /* which has promised it this; control thread */
        uint64_t inliner_bytes;
        struct sl_crew *crew;         /* its workers as control sees them; NULL: it has none, as its dimensions are open */
        uint32_t refs;                /* ensembles; control thread */
        uint64_t content[2];          /* low and high of the digest of its file's content; 0, 0: not known. Control thread */
        uint64_t serial;              /* of no other model of this runtime; control thread */
        uint64_t begun;               /* number of the last want when its load began; control thread */
        bool reruns;                  /* what a process has died with is run again, once */
        struct sl_bundle *bundle;     /* whose carriers its workers are lanes of; NULL: they are its own */
        uint32_t place;               /* among the bundle's models. Dispatcher */
        uint32_t rows_max;            /* of a batch of one kind (taking.h), of a plan of any size; 1: there are none */
        uint64_t slice_ns;            /* that a job may take, if it is more than one sample */
        struct sl_model *next_loaded; /* list of the registry */
        struct {
                uint64_t idle_ns; /* since when no request is in flight of any ensemble that it is in; UINT64_MAX: some are */
                uint32_t names;   /* that it serves, but ensembles and sizes */
                bool is_had;      /* by a name of any kind */
        } seen;                   /* as control looked last */
        uint32_t scaling_row;     /* of the autoscaler's table; control thread */

        /* dispatcher */
        struct sl_workers workers;
        struct sl_fault down; /* without a worker: why what waits fails; none told: it waits for one */
        struct sl_scheduler scheduler;
        uint64_t samples_given;       /* and not answered */
        struct sl_queue_stats *shown; /* what waits, in the stats page; NULL: it has no slot */
        sl_policy_fn *policy;
        struct sl_batching batching; /* what it is told */
        struct sl_batching_state batching_state;
        struct sl_service_time service_time;
        struct sl_size_line line; /* of a plan of any size */
        struct sl_inline_gauge gauge;
        bool is_watched;        /* a variant of a task: states of its workers are learned (conditions.h), */
        struct sl_pace pace;    /* by this profile */
        uint32_t passed_over;   /* so many passes of the dispatcher had no time for what waits here, and kept it */
        uint32_t jobs;          /* of which it was learned while serving, up to SL_JOBS_KNOWN */
        uint32_t slice_samples; /* that fit slice_ns */
        uint32_t background_samples; /* of a job in the background: half when one has left, twice when one has ended; 0: any number
                                      */
        uint64_t number;        /* grows with each that is added */
        bool is_busy, is_new;   /* busy.h */
        struct sl_model *next, *next_busy, *next_waiting[SL_CLASSES]; /* next_waiting: of a run of the scheduler */

        char name[SL_MODEL_NAME_BYTES]; /* last: no request looks at it */
};

/* A job of @samples took @ns. Dispatcher; the loader, before the dispatcher has it. */
static inline void sl_model_learn(struct sl_model *model, uint32_t samples, uint64_t ns)
{
        sl_service_time_learn(&model->service_time, samples, ns);
        model->slice_samples = sl_service_time_samples(&model->service_time, model->slice_ns, SL_SLICE_SAMPLES_MAX);
}
