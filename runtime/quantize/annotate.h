/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QuantizeLinear and DequantizeLinear into a graph of float32: around products with constant weights, and through the sums, limits,
 * pools and Concats between them. Activations are uint8 with one scale, weights int8 with one for each output channel and no zero
 * point, biases int32 in units of the sums: what ONNX's runtimes expect. One owner thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_graph;

/* What a value may be: the bytes span it. */
struct sl_limits {
        float low, high;
};

/* A product that can work on bytes. */
bool sl_annotate_is_product(const struct sl_graph *graph, uint32_t node);

/*
 * @limits: of each value. @stays_float: of each node. The nodes are written anew, so their indices change. Return: 0, -ENOMEM,
 * -E2BIG, what inference says.
 */
int sl_annotate(struct sl_graph *graph, const struct sl_limits *limits, const bool *stays_float, struct sl_error *error);
