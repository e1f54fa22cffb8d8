/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LinearAttention of opset 27: one reading of shapes and attributes for the shape rule, the kernel and the formula of its work.
 * Tensors are [batch, length, heads * size], states [batch, kv_heads, size, v_size]. Pure; any thread.
 */
#pragma once

#include "node.h"

struct sl_error;

enum { SL_LINEAR_Q, SL_LINEAR_K, SL_LINEAR_V, SL_LINEAR_PAST, SL_LINEAR_DECAY, SL_LINEAR_BETA };

/* MODE: whether the state decays, and whether what it has already said of a key is taken off the value. */
enum { SL_LINEAR_PLAIN, SL_LINEAR_GATED, SL_LINEAR_DELTA, SL_LINEAR_GATED_DELTA };

struct sl_linear {
        int64_t batch, length, q_heads, kv_heads;
        int64_t size, v_size; /* of a head */
        double scale;
        bool gated, delta;
        bool one_decay; /* for all of a head; else one for each of its size */
        bool one_beta;  /* for all heads */
};

int sl_linear_read(const struct sl_node_desc *node, struct sl_linear *ret_linear, struct sl_error *error);
