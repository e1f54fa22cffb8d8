/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best allocations that a search has found, those of the paper's algorithms and what is configured, measured in turns by a
 * runtime that serves the ensemble under each of them (halving.h), until one is better than chance or the turns are over.
 */
#pragma once

#include "quantile.h"

#include <stdbool.h>
#include <stdint.h>

struct optimize_ensemble;
struct optimize_task;
struct sl_bench;
struct sl_error;
struct sl_matrix;
struct sl_search;

struct confirmed {
        struct sl_interval throughput;      /* of the best allocation, in @turns turns */
        struct sl_interval over_configured; /* its share of what is configured, turn by turn; 0: not measured */
        uint32_t turns;
        char equals[128];  /* allocations that were measured as long, and are not worse beyond chance */
        double apart;      /* the largest difference to what was computed, of those that were measured */
        bool is_better;    /* than what is configured, beyond chance, by the objective */
        bool interrupted;  /* before the end: nothing is said of any */
        uint32_t tried, n; /* allocations that were to be measured, and those that were: the others did not fit */
};

struct optimize_confirm_options {
        const struct sl_bench *ranking; /* ranking.h */
        uint32_t most;                  /* of it; 0: nothing is measured */
        double seconds;                 /* of a measurement, at least */
        uint64_t seed;                  /* of BGO */
};

/*
 * @best becomes the best allocation by what was measured, also where what is configured is better, and stays what it is where none
 * was. Interrupted it ends, and says so. Return: 0; -errno with text.
 */
int optimize_confirm(const struct optimize_task *task, const struct optimize_ensemble *ensemble, const struct sl_search *search,
        const struct optimize_confirm_options *options, struct sl_matrix *best, struct confirmed *ret_confirmed,
        struct sl_error *error);
