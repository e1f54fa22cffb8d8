/*
 * A loaded model: its plan, its workers, and the one scheduler that feeds them. Made by the loader (control thread), used by
 * the dispatcher from ADD_MODEL to MODEL_GONE, then freed by the loader.
 */
#pragma once

#include "pace.h"
#include "plan.h"
#include "scheduler.h"

struct sl_memory;
struct sl_stats;
struct sl_worker;

/* Samples of the largest job, whatever the pace. */
#define SL_SLICE_SAMPLES_MAX 65536u

struct sl_model {
        char name[64];
        int64_t version;
        uint64_t stamp;
        struct sl_plan *plan;
        const struct sl_plan_info *info;
        uint32_t n_workers;
        struct sl_worker **workers;
        struct sl_stats *stats;   /* where its workers have their slots */
        struct sl_memory *memory; /* which has promised worker_bytes to its workers; control thread */
        uint64_t worker_bytes;
        uint32_t refs;                /* ensembles; control thread */
        bool takes_turns;             /* its workers share cores with others' */
        uint64_t slice_ns;            /* that a job may take, if it is more than one sample */
        uint32_t first_core;          /* of its workers, when they have cores of their own; control thread */
        struct sl_model *next_loaded; /* list of the registry */

        /* dispatcher */
        struct sl_scheduler scheduler;
        struct sl_pace pace;
        uint32_t slice_samples; /* that fit slice_ns at this pace */
        struct sl_model *next;
};
