/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MLPerf's four scenarios by their names: how they ask, which percentile counts, and whether a run kept their rules. Pure.
 *
 * What is measured here is never a result of MLPerf: that takes its own LoadGen, its data and an accuracy run. A run that is
 * shorter than the rules want, or has fewer queries, is named as such.
 *
 * Sources: V. Reddi et al., "MLPerf Inference Benchmark", 2020; MLCommons, "MLPerf Inference Rules" (scenarios, early stopping).
 */
#pragma once

#include "load_point.h"

struct json_t;

/* clang-format off */
#define SL_SCENARIOS(X)                                                                                                            \
        /* id            name             samples  percentile  queries  */                                                         \
        X(SINGLE_STREAM, "single-stream", 1,       0.90,       64)      /* one query at a time */                                  \
        X(MULTI_STREAM,  "multi-stream",  8,       0.99,       662)     /* one query at a time, of eight samples */                \
        X(SERVER,        "server",        1,       0.99,       1)       /* Poisson, the percentile below a bound */                \
        X(OFFLINE,       "offline",       0,       0,          24576)   /* all samples at once; queries counts them */
/* clang-format on */

enum sl_scenario_kind {
#define X(id, name, samples, percentile, queries) SL_SCENARIO_##id,
        SL_SCENARIOS(X)
#undef X
                SL_SCENARIOS_N
};

#define SL_SCENARIO_SECONDS    600.0 /* of a run that keeps the rules */
#define SL_SCENARIO_CONFIDENCE 0.99

/* What a scenario says of a point. */
struct sl_load_scenario {
        enum sl_scenario_kind kind;
        double metric;         /* latency in ns, or samples per second */
        double early_stopping; /* the percentile's estimate that the confidence wants; NaN: too few queries; server: as below */
        uint64_t queries, queries_wanted;
        double seconds;
        bool long_enough, enough_queries, bound_kept; /* bound_kept: server only; with the confidence that early stopping wants */
};

const char *sl_scenario_name(enum sl_scenario_kind kind);
int sl_scenario_named(const char *name, enum sl_scenario_kind *ret_kind); /* Return: 0, -EINVAL */
uint32_t sl_scenario_samples(enum sl_scenario_kind kind);                 /* of a query; 0: as large as the model takes */
double sl_scenario_percentile(enum sl_scenario_kind kind);

/* "90th percentile of latency" */
const char *sl_scenario_metric(enum sl_scenario_kind kind);

void sl_scenario_judge(enum sl_scenario_kind kind, const struct sl_load_point *point, struct sl_load_scenario *ret_scenario);

/*
 * Early stopping: the least number of queries of which @over may be slower, so that with the confidence above the share of slow
 * ones is at most 1 - @percentile.
 */
uint64_t sl_scenario_queries(uint64_t over, double percentile);

/* True when all rules are kept that can be kept without LoadGen itself. */
bool sl_scenario_follows_rules(const struct sl_load_scenario *scenario);

/* The caller's reference. */
struct json_t *sl_scenario_json(const struct sl_load_scenario *scenario);
