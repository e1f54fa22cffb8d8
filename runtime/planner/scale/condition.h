/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of a worker and of a variant, as figure 4 of INFaaS has them, fed with the end of each job. Plain values, one owner.
 *
 *     INACTIVE    it has no workers
 *     ACTIVE      it serves below its peak, and as fast as its profile says
 *     OVERLOADED  it serves at its peak: it has computed all of the time lately, and work waits
 *     INTERFERED  it is below its peak, and slower than its profile (interference.h)
 *
 * Of a worker:
 *
 *     ACTIVE, INTERFERED --peak--> OVERLOADED     busy for at least BUSY_ENTER of the time lately, and work waits
 *     OVERLOADED --below_peak--> ACTIVE           busy for less than BUSY_LEAVE of it, or nothing has waited for a while
 *     ACTIVE --slowed--> INTERFERED               the test says so; one that is overloaded is slowed once that is over
 *     INTERFERED --recovered--> ACTIVE            the test says so, or there was no job for SL_CONDITION_FORGET_NS: where others
 *                                                 have its work nothing else would ever say so
 *
 * "Lately" is a moving average over SL_CONDITION_LATELY_NS, and at least over JOBS_LEAST jobs. The two bounds, and the two tests,
 * are the hysteresis.
 *
 * A variant is INACTIVE without workers, OVERLOADED when all of its workers are, INTERFERED when at least half of the others are,
 * else ACTIVE.
 *
 * Sources: INFaaS (Romero, Li, Yadwadkar, Kozyrakis, ATC 2021), section 4, figure 4. "At their peak throughput" is read as busy
 * without a break and with more to do: what a worker does at its peak then needs no profile of throughputs. The paper has one state
 * for an instance and polls it every 2 s; here each job tells.
 */
#pragma once

#include "interference.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_CONDITIONS(X)                                                                                                           \
        X(INACTIVE, "inactive")                                                                                                    \
        X(ACTIVE, "active")                                                                                                        \
        X(OVERLOADED, "overloaded")                                                                                                \
        X(INTERFERED, "interfered")

enum sl_condition {
#define X(id, name) SL_CONDITION_##id,
        SL_CONDITIONS(X)
#undef X
                SL_CONDITION_COUNT,
};

#define SL_CONDITION_CHANGES(X)                                                                                                    \
        X(PEAK, "peak")                                                                                                            \
        X(BELOW_PEAK, "below_peak")                                                                                                \
        X(SLOWED, "slowed")                                                                                                        \
        X(RECOVERED, "recovered")

enum sl_condition_change {
#define X(id, name) SL_CONDITION_CHANGE_##id,
        SL_CONDITION_CHANGES(X)
#undef X
                SL_CONDITION_CHANGE_COUNT,
};

#define SL_CONDITION_LATELY_NS (20 * 1000000ull)
#define SL_CONDITION_FORGET_NS (1000 * 1000000ull)

struct sl_worker_condition {
        enum sl_condition condition; /* ACTIVE, OVERLOADED or INTERFERED */
        double busy;                 /* share of the time lately */
        double waited;               /* share of the time lately at the end of which work waited */
        uint64_t end_ns;             /* what is known reaches to here; 0: there was no job */
        uint64_t job_end_ns;         /* of the last job */
        uint32_t jobs;
        double level; /* pace.h */
        struct sl_interference interference;
};

struct sl_job_end {
        uint64_t end_ns, busy_ns;
        bool waits;       /* work for it was left when it ended */
        bool has_ratio;   /* its profile knows such jobs: */
        double log_ratio; /* what it took by that, without drift */
};

/* A worker without a job. */
void sl_condition_begin(struct sl_worker_condition *worker);

/* A job has ended. Return: changes, as bits of 1 << SL_CONDITION_CHANGE_. */
uint32_t sl_condition_job_ended(struct sl_worker_condition *worker, const struct sl_job_end *end);

/* It is @now_ns, and it has no job. Return: changes. */
uint32_t sl_condition_rests(struct sl_worker_condition *worker, uint64_t now_ns);

/* Of a variant by how many of its workers are in which state. */
enum sl_condition sl_condition_of(const uint32_t workers[SL_CONDITION_COUNT]);

const char *sl_condition_name(enum sl_condition condition);
const char *sl_condition_change_name(enum sl_condition_change change);
