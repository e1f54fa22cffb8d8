/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far an approximate algorithm is from the exact result, as max |a - b| / max |b|. Compiler's process only.
 */
#pragma once

#include "node.h"

struct sl_backend;

/*
 * Cheap, without running the model: a part of a convolution, some of its filters with their own weights at a corner of the image,
 * over seeded activations, against sums in double; of a convolution of bfloat16 in float32, too. @node has its ALGORITHM.
 * @constants as for sl_node_run_new(), at any address. Return: 0; -ENOTSUP not such a node; -ENOMEM; what the backend says.
 */
int sl_exactness_sample(
        const struct sl_backend *backend, const struct sl_node_desc *node, const void *const *constants, double *ret_error);

/*
 * Of a node of bfloat16, whose results would hide it by their rounding: the node and the same by the backend's own choice, which is
 * exact, in float32 on the same numbers. @node has its ALGORITHM; @constants and @inputs are bfloat16, as for sl_node_run_new() and
 * sl_node_run_bind(). Return: as above.
 */
int sl_exactness_widened(const struct sl_backend *backend, const struct sl_node_desc *node, const void *const *constants,
        const void *const *inputs, double *ret_error);

/* Of two float32 tensors of @n elements in the same order; infinity when one of them is not finite. */
double sl_exactness_compare(const float *approximate, const float *exact, uint64_t n);
