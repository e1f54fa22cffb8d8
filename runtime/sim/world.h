/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is simulated: lets, what a batch of each model takes on each of them, models with their policies, workers, and ensembles.
 * Plain values and borrowed arrays, read while a simulator is made. fleet.h fills one from costs (planner/costs.h).
 */
#pragma once

#include "policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_SIM_SIZES       17u /* batches of 1, 2, 4, ... 65,536 */
#define SL_SIM_LETS_MAX    4096u
#define SL_SIM_MODELS_MAX  1024u
#define SL_SIM_WORKERS_MAX 4096u
#define SL_SIM_RECORDS_MAX (1u << 24) /* requests, and segments */
#define SL_SIM_CLIENTS_MAX 4096u
#define SL_SIM_COPIERS_MAX 16u
#define SL_SIM_MEMBERS_MAX 64u
#define SL_SIM_JOBS_MAX    2u /* of a worker */

/* A device, or a part of one. Jobs that compute on lets of the same cores slow each other down. */
struct sl_sim_let {
        uint32_t class_index; /* of what batches take there */
        uint32_t cores_of;    /* the let whose cores it uses: its own number, or a lower one that uses its own */
        uint32_t at_once;     /* jobs that compute there before they share it by time; 0: any number. Of those cores, the owner's */
        uint32_t copy_engines; /* 0: a worker copies, then computes */
        bool for_one;          /* made for one worker (turns.h) */
        uint64_t slice_ns;     /* jobs that find @at_once before them wait, and take turns so long; 0: all go on at once, slower */
};

/* What batches of a model take alone on a let. */
struct sl_sim_time {
        uint64_t latency_ns[SL_SIM_SIZES]; /* of 2^i; 0: as dear, a sample, as the next smaller one */
        uint64_t transfer_ns;              /* of a sample, there and back */
        uint64_t launch_ns;                /* of each batch's time; others have the cores as long (cores.h). 0: pairs say it all */
        bool in_steps;                     /* only powers of two run, 12 as 8 and 4; else what lies between is in proportion */
};

struct sl_sim_model {
        struct sl_batching batching;
        bool whole;             /* it has no batch: each job is one task */
        uint64_t slice_ns;      /* that a job may take; 0: @slice_samples holds */
        uint32_t slice_samples; /* at least 1; as long as no service time is known */
        bool ignores_batch_max; /* a task of more samples than a worker's largest batch is computed as one */
};

struct sl_sim_worker {
        uint32_t let, model, batch_max;
};

struct sl_sim_ensemble {
        const uint32_t *members; /* models */
        uint32_t n_members;      /* 1 to SL_SIM_MEMBERS_MAX, each once */
        uint32_t segment_samples;
        uint32_t queue_requests; /* accepted and not ended; more are refused */
        bool direct;             /* no turns among clients and no segments: a request waits for its workers as a whole */
};

/* What a request takes beside computing, measured by whoever wants it to be simulated. */
struct sl_sim_own {
        uint64_t taken_ns; /* a request: from its arrival until the dispatcher has it */
        uint64_t hop_ns;   /* a job: from the decision until an idle worker begins with it */
        uint64_t job_ns;   /* a job, while it computes: what it takes beside the network */
        uint64_t wake_ns;  /* such a job, while it computes: what it takes more than one that lay ready, of a thread that slept */
        uint64_t heard_ns; /* an answer: until the dispatcher has it */
        uint64_t told_ns;  /* a request: from its last answer until the client has it */
};

struct sl_sim_world {
        uint32_t n_lets, n_models, n_workers, n_ensembles;
        const struct sl_sim_let *lets;
        const struct sl_sim_model *models;
        const struct sl_sim_worker *workers; /* of a model, in the order in which its policy sees them; at most 64 */
        const struct sl_sim_ensemble *ensembles;

        uint32_t n_classes;              /* of lets */
        const struct sl_sim_time *times; /* [class][model]; no first latency: it does not run there */
        const double *pairs;             /* [class][model][other]: what a batch takes beside one other; below 1: 1 */

        struct sl_sim_own own;
        uint32_t n_clients, n_requests, n_segments; /* records */
        uint32_t jobs_max;                          /* of a worker: 2 as live, where the next lies ready; 1 */
        bool learns; /* service times, from jobs that ended, as live; else they are those of the first let of each model's workers
                      */
};

/* Return: 0; -EINVAL: a number outside of what stands above, a worker without a time, a member without a worker. */
int sl_sim_world_check(const struct sl_sim_world *world);

static inline const struct sl_sim_time *sl_sim_world_time(const struct sl_sim_world *world, uint32_t let, uint32_t model)
{
        return &world->times[(size_t)world->lets[let].class_index * world->n_models + model];
}

/* What a job of @samples takes alone in batches of at most @batch_max. */
uint64_t sl_sim_time_ns(const struct sl_sim_time *time, uint32_t samples, uint32_t batch_max);
