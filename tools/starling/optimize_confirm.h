/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best allocations that a search has found, measured by a runtime that serves the ensemble under each of them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct optimize_ensemble;
struct optimize_task;
struct sl_bench;
struct sl_error;
struct sl_matrix;
struct sl_search;

struct confirmed {
        double throughput, latency_ns; /* of the best one; 0: none was measured */
        double rsd;                    /* of the rounds of its measurement */
        double apart;                  /* the largest difference to what was computed, of those that were measured */
        double configured;             /* the throughput without any allocation */
        bool is_better;                /* than without any, by the objective */
        bool interrupted;              /* before all were measured */
        uint32_t tried, n;             /* those that were to be measured, and those that were: the others did not fit */
};

/*
 * @ranking (ranking.h): at most @k of it, each in rounds of @seconds; behind them the @baselines, which
 * are only printed. @best becomes the best by what was measured, and stays what
 * it is where none was. Interrupted it ends with those that were, and says so. Return: 0; -errno with text.
 */
int optimize_confirm(const struct optimize_task *task, const struct optimize_ensemble *ensemble, const struct sl_search *search,
        const struct sl_bench *ranking, uint32_t k, double seconds, bool baselines, struct sl_matrix *best,
        struct confirmed *ret_confirmed, struct sl_error *error);
