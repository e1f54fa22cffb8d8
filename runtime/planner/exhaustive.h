/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best of all matrices, where they are few: every value that each entry may have, zero columns left out. Of equals the first
 * one, with the first row's first column changing fastest.
 */
#pragma once

struct sl_error;
struct sl_matrix;
struct sl_search;
struct sl_problem;

/* Matrices, those with zero columns among them: at most (B + 1)^(D * M), fewer where cells are pinned or their cost is not known.
 */
double sl_exhaustive_matrices(const struct sl_problem *problem);

/*
 * @matrix is overwritten. Return: 0, also when it was told to stop; -E2BIG more than @matrices_max; -ENOSPC no matrix fits; -errno
 * of the bench.
 */
int sl_exhaustive(
        struct sl_search *search, double matrices_max, struct sl_matrix *matrix, double *ret_score, struct sl_error *error);
