/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocation in YAML, as it is printed: which model has workers of which batch sizes on which device.
 *
 *     models: [resnet50, resnet101, vgg19]
 *     rows:
 *       - {device: gpu1, batches: [8, 128, 0]}
 *       - {device: "cpu:0-1", batches: [0, 0, 1+1+2+4]}       several workers in a cell
 *
 * It is the allocation matrix (matrix.h) where no cell has more than one worker. A device without a row has no workers; a row may
 * be a let of a device. Names are looked up when it is put to costs, or served, so a file can be read without them.
 */
#pragma once

#include "matrix.h"

#include <stdio.h>

struct sl_costs;
struct sl_error;

#define SL_ALLOCATION_CELL_WORKERS_MAX 64u
#define SL_ALLOCATION_WORKERS_MAX      65536u

struct sl_allocation_worker {
        uint32_t device, model; /* of the allocation */
        uint32_t batch;         /* at least 1 */
};

struct sl_allocation {
        uint32_t n_devices, n_models, n_workers;
        char **devices, **models;
        struct sl_allocation_worker *workers; /* by rows, then columns, then as in the cell */
};

/* Return: 0; -EINVAL with file, line and key: a row that is not as long as there are models, a batch that is no number, a name
 * given twice, more than a cell or a file holds, nothing at all; -ENOENT, ...; -ENOMEM. */
int sl_allocation_read(const char *path, struct sl_allocation **ret_allocation, struct sl_error *error);
struct sl_allocation *sl_allocation_free(struct sl_allocation *allocation);

/* A matrix under the names of its costs, with all of their rows. Return: 0; -ENOMEM. */
int sl_allocation_of(const struct sl_costs *costs, const struct sl_matrix *matrix, struct sl_allocation **ret_allocation);

/*
 * The matrix with the costs' rows and the allocation's columns; it is not checked further. "NAME.2", "NAME.3" are more devices like
 * NAME, as sl_costs_select() names them: an optimizer that was allowed several of it has placed workers there. Where a cell has
 * several workers its device has as many rows in @ret_costs, all of which draw on the memory of one, so that memory is that of all;
 * they are a copy in any case, the caller's. Return: 0; -ENOENT a name that the costs do not have; -E2BIG; -ENOMEM.
 */
int sl_allocation_bind(const struct sl_allocation *allocation, const struct sl_costs *costs, struct sl_costs **ret_costs,
        struct sl_matrix **ret_matrix, struct sl_error *error);

/* The largest number of workers in one cell. */
uint32_t sl_allocation_depth(const struct sl_allocation *allocation);

/* Writes the rows that have workers. Return: 0; -EIO. */
int sl_allocation_write(FILE *stream, const struct sl_allocation *allocation);

/* As a table: "-" where there is no worker. */
void sl_allocation_print(FILE *stream, const struct sl_allocation *allocation);
