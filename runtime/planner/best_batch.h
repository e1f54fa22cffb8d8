/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BBS: the best batch strategy, a baseline. One GPU for each model, in the order of the rows, and the batch size in which the model
 * alone is fastest there and fits; the smaller one of equals.
 *
 * Sources: as matrix.h, sections I.A and IV.C.
 */
#pragma once

#include <stdint.h>

struct sl_error;
struct sl_matrix;
struct sl_problem;

/*
 * @matrix is overwritten; *@ret_benches: how many models x batch sizes were compared. Return: 0; -ENODEV fewer GPUs than models, or
 * a model that no batch size lets run on its GPU.
 */
int sl_best_batch(const struct sl_problem *problem, struct sl_matrix *matrix, uint32_t *ret_benches, struct sl_error *error);
