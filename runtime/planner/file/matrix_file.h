/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocation matrix in YAML, as it is printed:
 *
 *     models: [resnet50, resnet101, vgg19]
 *     rows:
 *       - {device: gpu1, batches: [8, 128, 0]}
 *       - {device: gpu2, batches: [0, 0, 8]}
 *
 * A device without a row has no workers. Names are looked up when it is put to costs, so a file can be read without them.
 */
#pragma once

#include "matrix.h"

#include <stdio.h>

struct sl_costs;

struct sl_matrix_file {
        struct sl_matrix *matrix; /* its rows and columns as in the file */
        char **devices, **models;
};

/* Return: 0; -EINVAL with file, line and key: a row that is not as long as there are models, a batch that is no number, a name
 * given twice, nothing at all; -ENOENT, ...; -ENOMEM. */
int sl_matrix_file_read(const char *path, struct sl_matrix_file **ret_file, struct sl_error *error);
struct sl_matrix_file *sl_matrix_file_free(struct sl_matrix_file *file);

/* The matrix with the costs' rows and columns; it is not checked further. Return: 0; -ENOENT a name that the costs do not have, or
 * a model of theirs that the file does not have; -ENOMEM. */
int sl_matrix_file_bind(
        const struct sl_matrix_file *file, const struct sl_costs *costs, struct sl_matrix **ret_matrix, struct sl_error *error);

/* Writes the rows that are not zero. Return: 0; -errno of the stream. */
int sl_matrix_file_write(FILE *stream, const struct sl_costs *costs, const struct sl_matrix *matrix);

/* As a table: "-" where there is no worker. */
void sl_matrix_print(FILE *stream, const struct sl_matrix *matrix, const char *const *devices, const char *const *models);
