/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of a load: what each is, and how it comes out of one repeat. What several repeats say about it is an interval. Pure.
 */
#pragma once

#include "estimate.h"
#include "load_session.h"
#include "report.h"

/* clang-format off */
#define SL_LOAD_FIGURES(X)                                                                                                         \
        /* id               key                             unit        better    what it is */                                    \
        X(OFFERED,          "offered_per_second",           PER_SECOND, NEITHER,  "requests that were due")                        \
        X(ANSWERED,         "requests_per_second",          PER_SECOND, MORE,     "requests answered within the measured time")    \
        X(SAMPLES,          "samples_per_second",           PER_SECOND, MORE,     "samples in them")                               \
        X(WITHIN,           "within_objective_per_second",  PER_SECOND, MORE,     "answered, and not later than the objective")    \
        X(VIOLATIONS,       "violations",                   SHARE,      LESS,     "later than the objective, refused, or failed")  \
        X(LATENCY_MEAN,     "latency_mean_ns",              NS,         LESS,     "from when a request was due to its answer")     \
        X(LATENCY_P50,      "latency_p50_ns",               NS,         LESS,     "")                                              \
        X(LATENCY_P90,      "latency_p90_ns",               NS,         LESS,     "")                                              \
        X(LATENCY_P95,      "latency_p95_ns",               NS,         LESS,     "")                                              \
        X(LATENCY_P99,      "latency_p99_ns",               NS,         LESS,     "")                                              \
        X(LATENCY_P999,     "latency_p999_ns",              NS,         LESS,     "")                                              \
        X(LATENCY_P9999,    "latency_p9999_ns",             NS,         LESS,     "")                                              \
        X(LATENCY_MAX,      "latency_max_ns",               NS,         LESS,     "")                                              \
        X(SENDING_MEAN,     "sending_mean_ns",              NS,         LESS,     "due until handed to the runtime")               \
        X(QUEUED_MEAN,      "queued_mean_ns",               NS,         LESS,     "taken until given to a worker")                 \
        X(BATCHED_MEAN,     "batched_mean_ns",              NS,         LESS,     "until its batch began to compute")              \
        X(COMPUTING_MEAN,   "computing_mean_ns",            NS,         LESS,     "until the last prediction")                     \
        X(COMBINING_MEAN,   "combining_mean_ns",            NS,         LESS,     "until the combined result")                     \
        X(WAKING_MEAN,      "waking_mean_ns",               NS,         LESS,     "the rest: both rings, and waking up")           \
        X(LATENESS_P99,     "lateness_p99_ns",              NS,         NEITHER,  "of the generator itself")                       \
        X(CLIENT_CPU,       "client_cpu_ns_per_request",    NS,         LESS,     "processor time of the generator")               \
        X(RUNTIME_CPU,      "runtime_cpu_ns_per_request",   NS,         LESS,     "processor time of the runtime")                 \
        X(OWN,              "own_over_compute",             SHARE,      LESS,     "workers beside the networks, over compute")     \
        X(OWN_CPU,          "own_cpu_over_compute",         SHARE,      LESS,     "processor time beside the networks")            \
        X(BATCH,            "samples_per_batch",            TIMES,      NEITHER,  "as workers got them")                           \
        X(WAKES,            "wakes_per_request",            TIMES,      LESS,     "system calls that woke a client")               \
        X(CLIENT_RSS,       "client_resident_bytes",        BYTES,      LESS,     "of the generator, arenas included")             \
        X(RUNTIME_RSS,      "runtime_resident_bytes",       BYTES,      LESS,     "of the runtime")
/* clang-format on */

enum sl_load_figure {
#define X(id, key, unit, better, text) SL_LOAD_FIGURE_##id,
        SL_LOAD_FIGURES(X)
#undef X
                SL_LOAD_FIGURES_N
};

enum sl_better { SL_BETTER_NEITHER, SL_BETTER_LESS, SL_BETTER_MORE };

struct sl_load_figure_kind {
        const char *key, *text;
        enum sl_unit unit;
        enum sl_better better;
};

const struct sl_load_figure_kind *sl_load_figure_kind(enum sl_load_figure figure);

/* All figures of a repeat; NaN what it is too short for, or cannot be known. */
void sl_load_figures_of(const struct sl_load_repeat *repeat, double ret_figures[SL_LOAD_FIGURES_N]);
