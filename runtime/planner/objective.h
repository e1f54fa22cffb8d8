/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an allocation is good for: a score, the higher the better, out of what a bench found.
 *
 *     throughput  samples a second
 *     latency     at the load: 1 / seconds
 *     memory      at least the load: 1 / (1 + bytes of all devices)
 *     devices     at least the load: 1 / rows that are used, and among those of as many the faster one
 *
 * What does not fit in memory scores 0 by throughput and -1 by the others; what fits and does not carry the load lies between -1
 * and 0, so that a search climbs towards the load first. Pure; any thread.
 */
#pragma once

#include <stdint.h>

struct sl_bench_result;
struct sl_matrix;
struct sl_problem;

enum sl_objective { SL_MAX_THROUGHPUT, SL_MIN_LATENCY, SL_MIN_MEMORY, SL_MIN_DEVICES };

#define SL_OBJECTIVES 4

/* "throughput", "latency", "memory", "devices" */
extern const char *const sl_objective_names[SL_OBJECTIVES];

/* @load: samples a second; above 0 for all but the throughput. */
double sl_objective_score(enum sl_objective objective, double load, const struct sl_problem *problem,
        const struct sl_matrix *matrix, const struct sl_bench_result *result);
