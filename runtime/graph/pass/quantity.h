/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a byte stands for: scale * (byte - zero), as QuantizeLinear and DequantizeLinear say it. For the passes that make integer
 * arithmetic of what lies between those two. Private to this folder; pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_graph;
struct sl_node;

struct sl_quantity {
        uint32_t dtype; /* uint8 or int8 */
        float scale;
        int32_t zero;
};

/* A QuantizeLinear or DequantizeLinear with one positive constant scale for the whole tensor of bytes. */
bool sl_quantity_of(const struct sl_graph *graph, const struct sl_node *node, struct sl_quantity *ret_quantity);

/* The same for scale and zero point given as two values; @zero may be SL_VALUE_NONE, @dtype is the type of the bytes. */
bool sl_quantity_read(
        const struct sl_graph *graph, uint32_t scale, uint32_t zero, uint32_t dtype, struct sl_quantity *ret_quantity);

/* @value is made by such a DequantizeLinear: the bytes that went into it. SL_VALUE_NONE: it is not. */
uint32_t sl_quantity_bytes(const struct sl_graph *graph, uint32_t value, struct sl_quantity *ret_quantity);

/* The QuantizeLinear of that kind that alone uses @value, or SL_VALUE_NONE. */
uint32_t sl_quantity_user(const struct sl_graph *graph, uint32_t value, struct sl_quantity *ret_quantity);

bool sl_quantity_equal(const struct sl_quantity *a, const struct sl_quantity *b);
