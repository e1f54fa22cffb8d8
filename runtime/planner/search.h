/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all optimizers share: what they look for, with which bench, and whom they tell. The caller's; one optimizer at a time.
 */
#pragma once

#include "allocation_bench.h"
#include "objective.h"

#include <stdbool.h>

struct sl_matrix;
struct sl_problem;

struct sl_search {
        const struct sl_problem *problem;
        struct sl_bench *bench;
        struct sl_calibration calibration;
        enum sl_objective objective;

        /* Called on the optimizer's thread with the best so far, after each bench; false: stop, and keep it. NULL: never stop. */
        bool (*progress)(void *context, const struct sl_search *search, const struct sl_matrix *best, double score);
        void *context;
};

/* The score of @matrix; one run of the bench. Return: 0; -errno of the bench. */
int sl_search_score(struct sl_search *search, const struct sl_matrix *matrix, double *ret_score, struct sl_error *error);

/* False when the search is to stop. */
bool sl_search_goes_on(const struct sl_search *search, const struct sl_matrix *best, double score);

/* The other values that an entry may have: into @ret_batches (SL_COST_BATCHES_MAX + 1). A zero column is none. Return: how many. */
uint32_t sl_search_values(
        const struct sl_search *search, const struct sl_matrix *matrix, uint32_t device, uint32_t model, uint32_t *ret_batches);
