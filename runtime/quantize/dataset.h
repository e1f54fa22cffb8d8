/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input data in files, sample by sample: for a model with one input a file, else a folder with a file for each input, named after
 * it. NAME.npy is NumPy's format (version 1 and 2, C order, little-endian), NAME.f32 is bare float32; other endings are refused.
 * Axis 0 counts the samples; a sample has the type and the shape that the model wants, or one axis of all its elements. Mapped,
 * never copied. Immutable; any thread.
 */
#pragma once

#include "tensor.h"

#include <stddef.h>
#include <stdint.h>

struct sl_error;
struct sl_graph;
struct sl_dataset;

/*
 * @graph: with the ports that the data are for, a batch of 1 or an open one. Return: 0; -ENOENT no file for an input; -EINVAL a
 * type, a shape or a number of samples that does not fit, no .npy at all; -errno; the text names the file.
 */
int sl_dataset_open(const char *path, const struct sl_graph *graph, struct sl_dataset **ret_dataset, struct sl_error *error);
struct sl_dataset *sl_dataset_free(struct sl_dataset *dataset);

uint64_t sl_dataset_count(const struct sl_dataset *dataset);

/* The inputs of sample @index, in the order of the graph. */
void sl_dataset_at(const struct sl_dataset *dataset, uint64_t index, const void **ret_inputs);

/*
 * Class numbers, one for each sample: .npy of int64, int32 or uint8, or bare uint8. *ret_labels is malloc()ed. Return: 0; -EINVAL
 * another type, another number of them; -ENOMEM; as above.
 */
int sl_labels_read(const char *path, uint64_t samples, int64_t **ret_labels, struct sl_error *error);
