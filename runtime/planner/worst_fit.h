/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WFD: worst-fit decreasing with a priority to GPUs. The models in descending order of their memory, each to the GPU with the most
 * memory left; to the CPU with the most left only where that GPU does not hold it; all with the default batch size.
 *
 * As printed, and beside it: pinned workers are placed first and their models count as placed, rows that are forbidden or have no
 * known cost for the model are no candidates. A model's memory is that on the class of devices where it takes most; equal ones keep
 * the order of the columns, equal devices that of the rows.
 *
 * Sources: as matrix.h, section II.E.1, algorithm 1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_matrix;
struct sl_problem;

#define SL_DEFAULT_BATCH 8u

/*
 * @problem is checked; @matrix is overwritten. Return: 0; -ENOSPC no device has enough memory for a model, which the error names
 * with what it needs and the most that is left; -EINVAL @default_batch is not among the costs' batch sizes; -ENOMEM.
 */
int sl_worst_fit(const struct sl_problem *problem, uint32_t default_batch, struct sl_matrix *matrix, struct sl_error *error);

/*
 * WFD where each model has a batch size of its own: the largest of at most @batch that some device may run, else the smallest of
 * all. @choosy_first: models that few devices may run go before larger ones. Not in the paper. Return: as above, but -EINVAL.
 */
int sl_worst_fit_within(
        const struct sl_problem *problem, uint32_t batch, bool choosy_first, struct sl_matrix *matrix, struct sl_error *error);

/* SL_DEFAULT_BATCH where it is allowed, else the smallest size. */
uint32_t sl_worst_fit_batch(const struct sl_problem *problem);
