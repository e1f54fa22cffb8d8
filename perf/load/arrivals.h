/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When requests are due: points in time that depend on a seed alone, never on how fast anybody answers. Pure: no clock, no memory;
 * a plain value, one thread.
 *
 * Sources: P. Lewis, G. Shedler, "Simulation of nonhomogeneous Poisson processes by thinning", 1979, for rates that change.
 */
#pragma once

#include "random.h"

#include <stdbool.h>

/* clang-format off */
#define SL_ARRIVALS(X)                                                                                                             \
        /* id      name        what it is */                                                                                       \
        X(POISSON,  "poisson",  "independent requests at `rate`")                                                                  \
        X(CONSTANT, "constant", "one each 1/rate")                                                                                 \
        X(BURSTS,   "bursts",   "`burst` at once, at Poisson times that make `rate` together")                                     \
        X(DIURNAL,  "diurnal",  "Poisson, the rate a sine around `rate` of `period_s`: from (1 - swing) to (1 + swing) times it")  \
        X(SPIKES,   "spikes",   "Poisson, in each `period_s` once `spike_s` of `spike_times` the usual rate; together `rate`")
/* clang-format on */

enum sl_arrivals_kind {
#define X(id, name, text) SL_ARRIVALS_##id,
        SL_ARRIVALS(X)
#undef X
                SL_ARRIVALS_N
};

struct sl_arrivals_options {
        enum sl_arrivals_kind kind;
        double rate;                 /* mean, per second; more than 0 */
        uint32_t burst;              /* BURSTS: at least 1 */
        double period_s;             /* DIURNAL, SPIKES: more than 0 */
        double swing;                /* DIURNAL: 0 to 1 */
        double spike_times, spike_s; /* SPIKES: at least 1; less than period_s */
        uint64_t seed;
};

struct sl_arrivals {
        struct sl_arrivals_options options;
        struct sl_random random;
        double at_ns;  /* of the last one; doubles count nanoseconds exactly for 104 days */
        uint32_t left; /* of a burst */
};

const char *sl_arrivals_name(enum sl_arrivals_kind kind);

/* Return: 0; -EINVAL: no such name. */
int sl_arrivals_named(const char *name, enum sl_arrivals_kind *ret_kind);

void sl_arrivals_init(struct sl_arrivals *arrivals, const struct sl_arrivals_options *options);

/* When the next request is due, in nanoseconds after the start; never earlier than the one before. */
uint64_t sl_arrivals_next(struct sl_arrivals *arrivals);

/* Requests per second that are to be expected at @at_s; its mean over whole periods is `rate`. */
double sl_arrivals_rate_at(const struct sl_arrivals_options *options, double at_s);
