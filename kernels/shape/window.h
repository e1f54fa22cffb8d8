/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sliding window of a convolution or pooling: one reading of the attributes for shape rules and kernels.
 * Entry i belongs to spatial dimension i. Pure; any thread.
 */
#pragma once

#include "node.h"

struct sl_error;

#define SL_SPATIAL_MAX 3

struct sl_window {
        uint32_t rank; /* spatial dimensions, 1 to SL_SPATIAL_MAX */
        int64_t kernel[SL_SPATIAL_MAX], stride[SL_SPATIAL_MAX], dilation[SL_SPATIAL_MAX];
        int64_t pad_begin[SL_SPATIAL_MAX], pad_end[SL_SPATIAL_MAX];
        bool ceil;
};

/* The input that has the weights of a convolution, 0 for other operators. */
uint32_t sl_window_weights(uint32_t op);

/*
 * The attribute SAME: as many windows as ceil(size / stride), with the odd element of the padding behind or before. It stands for
 * pads where sizes are not known when a model is imported.
 */
enum sl_window_same { SL_WINDOW_NOT_SAME, SL_WINDOW_SAME_UPPER, SL_WINDOW_SAME_LOWER };

/* The padding along a spatial dimension then, before and behind together. */
int64_t sl_window_same_padding(int64_t size, int64_t kernel, int64_t stride, int64_t dilation);

/*
 * Conv: the kernel is that of the weights, which KERNEL_SHAPE must not contradict; a dimension may stay
 * SL_DIM_UNKNOWN. Pools: KERNEL_SHAPE. -EINVAL: rank of input 0 not 3 to 5, a list of another length, a value out of range.
 */
int sl_window_read(const struct sl_node_desc *node, struct sl_window *ret_window, struct sl_error *error);

/* What a MaxUnpool's input was before it was pooled, by its attributes alone. */
int sl_unpooled_shape(const struct sl_node_desc *node, struct sl_shape *ret_shape, struct sl_error *error);

/* Positions of the window along spatial dimension @i of @size elements; SL_DIM_UNKNOWN; -EINVAL when it does not fit once. */
int sl_window_positions(const struct sl_window *window, uint32_t i, int64_t size, int64_t *ret_positions, struct sl_error *error);
