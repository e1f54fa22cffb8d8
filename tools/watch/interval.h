/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened between two snapshots of one runtime: rates, percentiles of just that time, batch sizes, busy shares. Pure.
 *
 * Counters that are lower than before belong to somebody who has the slot now: they count from zero. Percentiles come from the
 * differences of the histograms' buckets, so that their error is that of the page (at most 1.6 %); the largest value is known when
 * it is a new one, and else bounded by its bucket. Where there is no earlier snapshot, or it is of another runtime, the interval
 * begins with the runtime.
 */
#pragma once

#include "snapshot.h"

/* A counter's rate per second; of what is no counter it means nothing. */
#define INTERVAL_RATE(name, text) double name;

struct dispatcher_rates {
        SL_DISPATCHER_COUNTERS(INTERVAL_RATE)
};
struct model_rates {
        SL_MODEL_COUNTERS(INTERVAL_RATE)
};
struct client_rates {
        SL_CLIENT_COUNTERS(INTERVAL_RATE)
};
struct worker_rates {
        SL_WORKER_COUNTERS(INTERVAL_RATE)
};
struct let_rates {
        SL_LET_COUNTERS(INTERVAL_RATE)
};

/* Of one histogram in the interval; all 0 when nothing was recorded. */
struct stage_times {
        uint64_t count;
        uint64_t p50_ns, p99_ns, p999_ns, max_ns;
        double mean_ns;
};

/* What waits now, of a name: requests that wait for their turn, and segments for a worker of the model of that name. */
struct waiting_now {
        uint64_t requests, segments, samples, given_samples;
        uint64_t oldest_age_ns; /* 0: nothing waits */
};

struct dispatcher_interval {
        const struct dispatcher_snapshot *now;
        struct dispatcher_rates per_second;
};

struct model_interval {
        const struct model_snapshot *now; /* NULL: of all together */
        struct model_rates per_second;
        double batch_samples; /* mean; 0: no batch */
        double busy;          /* workers that computed for it, on average */
        uint64_t in_flight;   /* now */
        struct stage_times stages[SL_STAGES];
        struct waiting_now waiting;
};

struct client_interval {
        const struct client_snapshot *now;
        struct client_rates per_second;
        double waking_ns; /* mean; 0: it was not woken */
};

struct worker_interval {
        const struct worker_snapshot *now;
        struct worker_rates per_second;
        double batch_samples;
        double busy;              /* share of its time */
        struct stage_times total; /* of its own histograms; all 0 where it has none */
};

struct let_interval {
        const struct let_snapshot *now;
        struct let_rates per_second;
        double busy; /* share of what runs there at once */
};

struct interval {
        double seconds;
        bool from_start; /* it begins with the runtime */
        const struct snapshot *now;
        struct dispatcher_interval *dispatchers; /* each of as many as @now has */
        struct model_interval *models;
        struct client_interval *clients;
        struct worker_interval *workers;
        struct let_interval *lets;
        struct model_interval all; /* models */
};

/* @before: NULL: there is none. @now is kept, and outlives the interval. Return: 0, -ENOMEM. */
int interval_init(struct interval *interval, const struct snapshot *before, const struct snapshot *now);
void interval_deinit(struct interval *interval);

/* What was recorded in @now and not yet in @before (NULL: nothing was). */
void histogram_since(struct sl_histogram *ret_between, const struct sl_histogram *before, const struct sl_histogram *now);
void stage_times_of(const struct sl_histogram *histogram, struct stage_times *ret_times);
