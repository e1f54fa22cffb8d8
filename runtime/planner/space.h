/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many matrices there are, and how many neighbours one has: equations (1) and (2).
 *
 * Two matrices are neighbours when one entry differs and both are without a zero column. Equation (2) counts an entry's own value
 * among its B + 1, so it counts the matrix itself D * M times; sl_space_changes() leaves it out.
 *
 * F, the neighbours that would have a zero column: one for each column with a single worker, so F is at most M. The paper's text
 * has F at most D, which its example (232 to 240 neighbours for 8 models on 5 devices) contradicts: 240 - 5 is 235. Used here: F <=
 * M.
 *
 * Sources: as matrix.h, section II.E.2.
 */
#pragma once

#include <stdint.h>

struct sl_matrix;

/* (1) ((B + 1)^D - 1)^M; infinity above what a double holds. */
double sl_space_matrices(uint32_t n_devices, uint32_t n_batches, uint32_t n_models);

/* F of a matrix: columns with a single worker. */
uint32_t sl_space_forbidden(const struct sl_matrix *matrix);

/* (2) (B + 1) * (D * M) - F */
uint64_t sl_space_neighbours(uint32_t n_devices, uint32_t n_batches, uint32_t n_models, uint32_t forbidden);

/* B * (D * M) - F: the neighbours without the matrix itself. */
uint64_t sl_space_changes(uint32_t n_devices, uint32_t n_batches, uint32_t n_models, uint32_t forbidden);
