/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to come and to go now: pure functions over the problem (scale.h) and a few words of memory, which are the caller's. Equal
 * arguments give equal answers, so that a log of problems replays to the same decisions.
 *
 * What every answer keeps, however bad the load is: only kinds that suit come; no resource is exceeded by what comes, and of a
 * resource that both sides of a change hold (memory) not even while they overlap; no more instances than there may be, or than
 * there are to go. A need whose load cannot be met so gets what there is, and is said to lack.
 *
 * The rule of `starling`, of each need:
 *   1. Required is the forecast for when what is loaded now would serve, and at least slack x load (arrival_rate.h). Where all that
 *      runs is overloaded it is at least 1.05 x what that does: who finds no room in time does not come, and is no load.
 *   2. Where what runs does not reach that: the cheapest change that does, by the programme's objective. Needs that lack most
 * first.
 *   3. Where it does: the cheapest change that reaches the highest that was required while the slowest of what runs would have
 *      loaded, if it earns anything. So nothing goes that might be loaded again soon, nor while that time has not passed since it
 * was overloaded.
 *   4. What suits no longer goes with the next change of its need.
 *   Each need by itself, those with something to spare first; what they free others may have, but for what both sides hold.
 *
 * The rule of `infaas`, as 4.2.2 has it, at each look (the paper's are a second apart):
 *   1. Headroom is the saturation throughput of what runs by the load. Below slack: as many instances of something as are lacking;
 *      of what runs already (replicate), or of the same architecture with a higher throughput (upgrade), whichever has the least
 *      objective. Where nothing runs that suits, any that does.
 *   2. Else an instance goes, or an instance is replaced by cheaper ones of the same architecture (downgrade), once that has been
 *      possible for T_load of what goes. One such step a look.
 *   The text leaves open: how many instances an upgrade takes; here what is lacking, as in (1), and what it makes superfluous goes
 *   by 2. Which of several running variants is replicated: the cheapest. What becomes of a step that does not fit: "another
 *   worker", which one host has not; here it is left, and the need lacks.
 *
 * Sources: INFaaS (Romero, Li, Yadwadkar, Kozyrakis, ATC 2021), section 4.2.2.
 */
#pragma once

#include "scale.h"

#define SL_SCALERS(X)                                                                                                              \
        X(starling)                                                                                                                \
        X(infaas)

enum sl_scaler {
#define X(name) SL_SCALER_##name,
        SL_SCALERS(X)
#undef X
                SL_SCALER_COUNT,
};

#define SL_SCALE_VERDICTS(X)                                                                                                       \
        X(STEADY, "steady")   /* nothing changes */                                                                                \
        X(GROWS, "grows")     /* it required more than what ran */                                                                 \
        X(SHRINKS, "shrinks") /* less will do, or cheaper */                                                                       \
        X(LACKS, "lacks")     /* it requires more than there can be */

enum sl_scale_verdict {
#define X(id, name) SL_SCALE_##id,
        SL_SCALE_VERDICTS(X)
#undef X
};

/* What is remembered of each need and kind from look to look; all 0 at first. */
struct sl_scaler_need {
        double required; /* at this look */
        double held[2];  /* the most that was required in this span and in the one before */
        double span_s;   /* so long has this span been */
        double kept_s;   /* so long nothing goes yet, as it has been overloaded */
        enum sl_scale_verdict verdict;
        bool waits; /* for its turn in this look */
};
struct sl_scaler_kind {
        double spare_s; /* one instance has been superfluous for so long */
};

struct sl_scaler_memory {
        struct sl_scaler_need *needs; /* as many as the problem has */
        struct sl_scaler_kind *kinds;
};

/* It is @since_s since the last look. @ret_change: [n_kinds]. Return: how many needs lack. */
uint32_t sl_scaler_look(enum sl_scaler scaler, const struct sl_scale_problem *problem, double since_s,
        struct sl_scaler_memory *memory, int32_t *ret_change);

/* "starling"; NULL: there is no such scaler. */
const char *sl_scaler_name(uint32_t scaler);
const char *sl_scale_verdict_name(enum sl_scale_verdict verdict);
