/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BGO: the bounded greedy optimization. Each iteration benches all neighbours of the matrix, or max_neighs of them drawn at random,
 * and goes to the best one if that is strictly better; otherwise, or after max_iter iterations, it ends.
 *
 * The neighbourhood leaves the matrix itself out. Neighbours that do not fit in memory are in it and are benched, to a score of
 * nothing, as printed. max_iter becomes D - M where that is more (section III: all devices have a chance of being used), D rows.
 *
 * Sources: as matrix.h, section II.E.2, algorithm 2, and section III.
 */
#pragma once

#include <stdint.h>

struct sl_error;
struct sl_matrix;
struct sl_search;

#define SL_MAX_NEIGHS 100u
#define SL_MAX_ITER   10u

struct sl_bounded_greedy_options {
        uint32_t max_neighs, max_iter;
        uint64_t seed;
};

/* From @matrix, which is valid, to one at least as good. Return: 0, also when it was told to stop; -ENOMEM; -errno of the bench. */
int sl_bounded_greedy(struct sl_search *search, const struct sl_bounded_greedy_options *options, struct sl_matrix *matrix,
        double *ret_score, struct sl_error *error);

/* max_iter, or D - M. */
uint32_t sl_bounded_greedy_iterations(const struct sl_bounded_greedy_options *options, uint32_t n_devices, uint32_t n_models);
