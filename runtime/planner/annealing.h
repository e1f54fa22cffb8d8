/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated annealing from a matrix: goes to a random neighbour that is better, or worse with a probability that falls, and keeps
 * the best. It takes up to three steps at once, each another entry, as algorithm 2's, or a worker that moves to another device of
 * its column: two models can change places where memory is full, which single steps cannot.
 *
 * Sources: S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by simulated annealing", 1983.
 */
#pragma once

#include <stdint.h>

struct sl_error;
struct sl_matrix;
struct sl_search;

struct sl_annealing_options {
        uint32_t benches; /* at most */
        uint64_t seed;
};

/* From @matrix, which is valid and fits, to one at least as good. Return: 0, also when it was told to stop; -ENOMEM; the bench's.
 */
int sl_annealing(struct sl_search *search, const struct sl_annealing_options *options, struct sl_matrix *matrix, double *ret_score,
        struct sl_error *error);
