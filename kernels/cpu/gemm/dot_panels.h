/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weights of a product or a convolution of bytes as panels of columns (dot_tile.h), those of a group behind those of the one
 * before. What it depends on is the node without its batch. Pure; any thread.
 */
#pragma once

#include "cpu/gemm/dot_tile.h"
#include "node.h"

struct sl_dot_weights {
        int64_t groups, filters, channels; /* of a group */
        int64_t kernel[2];
        int64_t filter_stride, channel_stride, tap_strides[2]; /* of plain ones, in elements */
        int64_t panels;                                        /* of a group */
        int64_t piece;                                         /* bytes that follow each other */
        struct sl_dot_depth depth;                             /* but for the strides */
};

/* Of a QuantizedConv over images or a QuantizedMatMul whose shape rule has passed. */
void sl_dot_weights_read(const struct sl_node_desc *node, struct sl_dot_weights *ret_weights);

int64_t sl_dot_weights_bytes(const struct sl_dot_weights *weights);

void sl_dot_weights_pack(const struct sl_dot_weights *weights, const int8_t *plain, int8_t *ret_panels);
