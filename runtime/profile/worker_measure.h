/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures workers in rounds of some 50 ms until the 95 % interval of a median is as narrow as is asked for, or the time is over.
 * Batches that follow each other see the same machine, so that the interval is that of the medians of rounds, not of batches.
 *
 * Beside others: each round runs every worker alone and then all together. A worker's slow-down in that round is its time of a
 * batch together over that alone; the profile has the median over the rounds. A machine that changes from round to round changes
 * both.
 *
 * Threads: the caller's, and those of the rounds.
 */
#pragma once

#include "worker_profile.h"
#include "worker_round.h"

struct sl_measure_limits {
        double width;             /* of the interval, as a share of the median */
        double seconds;           /* after which no round begins */
        const atomic_bool *stops; /* true: give up with -EINTR; NULL */
};

/* Fills latencies, rate, runs, rounds and whether it converged. Return: 0; what sl_worker_round() says. */
int sl_measure_alone(struct sl_timed_worker *worker, const struct sl_measure_limits *limits, struct sl_worker_profile *profile,
        struct sl_error *error);

/* The same, and the slow-down, of each of @n workers, 2 to SL_ROUND_WORKERS_MAX; @profiles[i] is of workers[i]. */
int sl_measure_together(struct sl_timed_worker *const *workers, uint32_t n, const struct sl_measure_limits *limits,
        struct sl_worker_profile *profiles, struct sl_error *error);
