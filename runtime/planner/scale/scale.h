/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many instances of what are to run: the problem of section 4.2 of INFaaS, as plain values. The oracle
 * (../bound/scale_oracle.h) and the scalers (scaler.h) solve it.
 *
 *     kind    a variant as it would run: plan, device, batch and team; it belongs to one need
 *     need    a task, or a model by its name: its load, and what its answers have to be
 *     change  d, of each kind: instances that are to come (above 0) or to go
 *
 * How the paper's formulas, which its text has lost, are read:
 *
 *     minimise    sum over kinds of  up (C + lambda T_load) - down C          where d = up - down, and one of them is 0
 *     (1)  sum of Q (N + d) over the kinds that suit a need  >=  slack x its load
 *     (2)  latency of a kind <= the need's, and accuracy >= the need's,       where d > 0
 *     (3)  sum of R (N + d) over all kinds                   <=  total, for each resource
 *     (4)  N + d >= 0
 *
 *     slack is a factor: 4.2.2 has headroom as "the ratio of the combined saturation throughput and the combined load", at least
 *     1.05. T_load is not part of (2): the least that the paper saw is 0.59 s, and its objectives are 50 ms, so nothing could be
 *     loaded. What goes earns its hardware's cost and no T_load: else unloading what is slow to load would pay. What suits no
 *     longer does not count in (1): it cannot serve that load. Accuracy is a bound of the query, and so of (2).
 *     "Saturation QPS" is of one instance alone; that neighbours cost something is what slack is for.
 *
 * Sources: INFaaS (Romero, Li, Yadwadkar, Kozyrakis, ATC 2021), section 4.2.1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_SCALE_RESOURCES     4u
#define SL_SCALE_NEEDS_MAX     4096u
#define SL_SCALE_KINDS_MAX     16u /* of one need */
#define SL_SCALE_INSTANCES_MAX 4096u

struct sl_scale_kind {
        uint32_t architecture; /* of the need's: what differs in precision, batch or device alone has the same */
        double cost;           /* of an instance, a second; above 0 */
        double load_s;         /* until a new one serves */
        double rate;           /* requests a second at its peak, above 0 */
        double latency_s, accuracy;
        double resources[SL_SCALE_RESOURCES]; /* that an instance holds */
        uint32_t n;                           /* that run */
        uint32_t most;                        /* that may run; at most SL_SCALE_INSTANCES_MAX */
};

struct sl_scale_need {
        double load;                /* requests a second, now */
        double trend, burst;        /* arrival_rate.h; 0: not known. The oracle and `infaas` look at the load alone */
        double latency_s, accuracy; /* at most, at least; 0: any */
        bool is_overloaded; /* all that runs is busy without a break while more waits; the oracle and `infaas` do not look */
        uint32_t first, n;          /* its kinds, at most SL_SCALE_KINDS_MAX: those of the first need, then the second's ... */
};

struct sl_scale_resource {
        double total; /* INFINITY: there is no limit */
        bool both;    /* what comes is there before what goes has gone, and holds this beside it: memory */
};

struct sl_scale_problem {
        const struct sl_scale_need *needs;
        const struct sl_scale_kind *kinds;
        uint32_t n_needs, n_kinds;
        struct sl_scale_resource resources[SL_SCALE_RESOURCES];
        double slack, lambda; /* at least 1; at least 0, of cost a second for a second of loading */
};

/* (2): a new instance of @kind may answer the need. */
static inline bool sl_scale_suits(const struct sl_scale_need *need, const struct sl_scale_kind *kind)
{
        return (need->latency_s <= 0 || kind->latency_s <= need->latency_s) && kind->accuracy >= need->accuracy;
}

/* The left side of (1). @change: NULL: none. */
double sl_scale_capacity(const struct sl_scale_problem *problem, const struct sl_scale_need *need, const int32_t *change);

/* What is minimised. */
double sl_scale_cost(const struct sl_scale_problem *problem, const int32_t *change);

/* A second, of all that runs after the change. */
double sl_scale_price(const struct sl_scale_problem *problem, const int32_t *change);
