/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocation matrix: rows are devices, columns models, an entry is the batch size of the worker there, 0 where there is none.
 * Several entries in a row share a device (co-localisation), several in a column share a model's work (data-parallelism). A row may
 * be zero, a column may not: every member of an ensemble predicts.
 *
 * Memory: a model's weights lie once in a device's memory whichever of its lets use them, and each worker has its workspace.
 *
 * Sources: P. Pochelu, S. G. Petiton, B. Conche, "An efficient and flexible inference system for serving heterogeneous ensembles of
 * deep neural networks", 2021, section II.B.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_error;
struct sl_problem;

struct sl_matrix {
        uint32_t n_devices, n_models;
        uint32_t entries[]; /* by rows */
};

/* All zero. Return: NULL without memory. */
struct sl_matrix *sl_matrix_new(uint32_t n_devices, uint32_t n_models);
struct sl_matrix *sl_matrix_free(struct sl_matrix *matrix);

/* Of the same size. */
void sl_matrix_copy(struct sl_matrix *to, const struct sl_matrix *from);
bool sl_matrix_equal(const struct sl_matrix *a, const struct sl_matrix *b);

static inline uint32_t *sl_matrix_entry(struct sl_matrix *matrix, uint32_t device, uint32_t model)
{
        return &matrix->entries[(size_t)device * matrix->n_models + model];
}

static inline uint32_t sl_matrix_batch(const struct sl_matrix *matrix, uint32_t device, uint32_t model)
{
        return matrix->entries[(size_t)device * matrix->n_models + model];
}

/* Workers in a column, workers in all, and rows that are not zero. */
uint32_t sl_matrix_workers_of(const struct sl_matrix *matrix, uint32_t model);
uint32_t sl_matrix_workers(const struct sl_matrix *matrix);
uint32_t sl_matrix_devices(const struct sl_matrix *matrix);

/* Bytes that the rows which draw on the memory of row @device take there; entries without a known cost count with their weights. */
uint64_t sl_matrix_memory(const struct sl_problem *problem, const struct sl_matrix *matrix, uint32_t device);

/* True when the memory of every device holds its workers, and no model has more workers than it may. */
bool sl_matrix_fits(const struct sl_problem *problem, const struct sl_matrix *matrix);

/*
 * Size, entries that are allowed, no zero column nor one of too many, memory. Return: 0; -EINVAL with the cell, its value and the
 * limit; -ENOSPC a device's memory, with the largest of its cells, what all of them need and the limit.
 */
int sl_matrix_check(const struct sl_problem *problem, const struct sl_matrix *matrix, struct sl_error *error);
