/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bench in front of another one, that remembers the best matrices which it was run with: what a search has found besides its
 * answer. A matrix that does not fit in memory is none of them. One thread.
 */
#pragma once

#include "objective.h"

#include <stdint.h>

struct sl_bench;
struct sl_error;
struct sl_matrix;
struct sl_problem;

#define SL_RANKING_MAX 64u

struct sl_ranked {
        const struct sl_matrix *matrix; /* the ranking's */
        double score, throughput, latency_ns;
};

/* @behind and @problem outlive it. @n: 1 to SL_RANKING_MAX. Return: 0; -ENOMEM. */
int sl_ranking_new(struct sl_bench *behind, const struct sl_problem *problem, enum sl_objective objective, uint32_t n,
        struct sl_bench **ret_bench, struct sl_error *error);

/* The best first, all different. Valid until the next run. */
const struct sl_ranked *sl_ranking(const struct sl_bench *bench, uint32_t *ret_n);
