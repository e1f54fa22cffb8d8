/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules of lets: which part of which device computes which models, in which batches, so that each model's rate is borne within
 * its objective. Pure arithmetic over costs (costs.h) and demands; deterministic; any thread.
 *
 *     let       some units of a device. Lets of a device do not overlap: their units sum to at most the device's
 *     place     a model on a let, its batch size, and the rate that it takes. Places of a let compute in turns, each by all of the
 * let cycle     the time in which each place has its turn once. It is at least what the batches take together, and brings no place
 *               more requests than its batch
 *
 * A request that has just missed its turn waits for a cycle and then computes. So a schedule meets an objective where
 *
 *     cycle + own batch <= objective        SL_PARTITION_OWN_BATCH, as Nexus has it
 *     cycle + all batches <= objective      SL_PARTITION_ALL_BATCHES, as the authors of gpu-lets have it in their code
 *
 * A place without requests passes its turn on at once, so cycles get no longer than what the batches take. The bound holds where
 * the requests of a place come evenly; of others it says nothing, and whoever wants to know simulates (sim/cycles.h).
 *
 * Times are those of the costs, copies before computing, and never fall with the batch. With @interference each is longer by its
 * neighbours': by the worst place of each other let of the device, of several lets the sum of what each adds.
 *
 * Sources: S. Choi, S. Lee, Y. Kim, J. Park, Y. Kwon, J. Huh, "Serving heterogeneous machine learning models on multi-GPU servers
 * with spatio-temporal sharing", USENIX ATC 2022 ("gpu-lets"); H. Shen et al., "Nexus", SOSP 2019; A. Dhakal et al., "GSLICE", SoCC
 * 2020. Where text and code of gpu-lets differ, both are options.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_costs;
struct sl_error;

#define SL_PARTITION_PLACES_MAX 8u   /* of a let */
#define SL_PARTITION_BATCH_MAX  256u /* larger ones of the costs are not planned with */
#define SL_PARTITION_RATE_MAX   1e9  /* requests a second */
#define SL_PARTITION_OF_DEVICE  16u  /* lets of one device, at most */

/* What is wanted of a model. */
struct sl_partition_demand {
        double rate;           /* requests a second, each of one sample; 0: the model is not wanted */
        uint64_t objective_ns; /* of each, from arrival to answer */
};

enum sl_partition_worst { SL_PARTITION_OWN_BATCH, SL_PARTITION_ALL_BATCHES };

/* One row for each: what it is by section 4.3 of gpu-lets, what it is in the authors' code. */
struct sl_partition_options {
        enum sl_partition_worst worst; /* OWN_BATCH; ALL_BATCHES */
        double latency_factor;         /* that times are planned with: 1; 1.1 */
        double dropped_rate;           /* of each model, that need not be borne: 0; 15 */
        uint32_t places_max;           /* models of a let: SL_PARTITION_PLACES_MAX; 3 */
        uint32_t lets_max;             /* lets of a device: 2; 2. Starling's own scheduler has no such limit */
        bool by_work;                  /* models by rate, descending; by rate x objective, ascending */
        bool by_gain;                  /* most efficient size by curvature; by the largest gain of a step */
        bool merges_last;              /* a let is merged into another whenever that holds; only where nothing is free */
        bool takes_smaller;            /* a model for which no free let is large enough is not schedulable; gets what there is */
        bool interference;
};

extern const struct sl_partition_options sl_partition_paper, sl_partition_authors; /* without interference */

/* Borrowed. One demand for each model of the costs. Each row of their devices is a device, with the units of its class. */
struct sl_partition_problem {
        const struct sl_costs *costs;
        const struct sl_partition_demand *demands;
        struct sl_partition_options options;
};

struct sl_partition_place {
        uint32_t model, batch;
        double rate; /* requests a second */
};

struct sl_partition_let {
        uint32_t device, units, n_places;
        double cycle_ns;
        struct sl_partition_place places[SL_PARTITION_PLACES_MAX];
};

struct sl_partition_schedule {
        uint32_t n_lets; /* those with places, by device */
        struct sl_partition_let *lets;
        double *lacking; /* of each model: requests a second that nothing bears */
        bool schedulable;
};

struct sl_partition_scheduler {
        const char *name, *about;

        /* Pure. Return: 0, also where something is lacking; -ENOMEM. The problem was checked. */
        int (*make)(const struct sl_partition_problem *problem, struct sl_partition_schedule **ret_schedule);
};

enum {
        SL_PARTITION_SBP,
        SL_PARTITION_SBP_HALVES,
        SL_PARTITION_SELF_TUNING,
        SL_PARTITION_ELASTIC,
        SL_PARTITION_IDEAL,
        SL_PARTITION_STARLING,
        SL_PARTITION_SCHEDULERS,
};
extern const struct sl_partition_scheduler sl_partition_schedulers[SL_PARTITION_SCHEDULERS];

/* NULL: there is none of that name. */
const struct sl_partition_scheduler *sl_partition_find(const char *name);

/* Return: 0; -EINVAL with the model or option, its value and the limit. */
int sl_partition_problem_check(const struct sl_partition_problem *problem, struct sl_error *error);

/* Checks the problem as well. Return: 0, also where something is lacking; -EINVAL; -ENOMEM. */
int sl_partition_make(const struct sl_partition_scheduler *scheduler, const struct sl_partition_problem *problem,
        struct sl_partition_schedule **ret_schedule, struct sl_error *error);
struct sl_partition_schedule *sl_partition_schedule_free(struct sl_partition_schedule *schedule);

/*
 * What whoever follows a schedule relies on: lets that exist, units and memory within their devices', rates that sum to the demand
 * or are said to be lacking, and each objective met by the formula above. Return: 0; -EINVAL with let, value and limit; -ENOMEM.
 */
int sl_partition_check(
        const struct sl_partition_problem *problem, const struct sl_partition_schedule *schedule, struct sl_error *error);

/*
 * No schedule bears more than this many times all of the rates: each request at the let and batch that cost it the least share of a
 * device, without memory and interference, lets as if they could be packed without loss. INFINITY: nothing is wanted; 0: a model
 * meets its objective nowhere. Return: 0; -ENOMEM.
 */
int sl_partition_bound(const struct sl_partition_problem *problem, double *ret_scale);
