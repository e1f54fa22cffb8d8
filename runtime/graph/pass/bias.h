/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bias of Conv, Gemm and MatMul as a plain vector of float32, for the passes that add to it. Private to this folder.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_graph;

/*
 * The node makes float32 with a known number of output channels, may take a bias that is constant, and carries no epilogue yet.
 * Returns the channels, 0 when it is not so.
 */
uint32_t sl_bias_channels(const struct sl_graph *graph, uint32_t node);

/* Writes the node's bias (beta of a Gemm included; zeros without one) into @ret_bias of that many channels. */
void sl_bias_read(const struct sl_graph *graph, uint32_t node, float *ret_bias, uint32_t channels);

/* Gives the node a new constant as its bias; @bias lives as long as the graph. -ENOMEM. */
int sl_bias_write(struct sl_graph *graph, uint32_t node, const float *bias, uint32_t channels);

/*
 * Element by channel of a constant that broadcasts along the channels of @node's output alone: false when the value is not
 * such a constant, or not float32.
 */
bool sl_bias_vector(const struct sl_graph *graph, uint32_t node, uint32_t value, uint32_t channels, float *ret_vector);
