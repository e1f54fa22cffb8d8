/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention as in opsets 23 to 25: one reading of shapes and attributes for the shape rule and the kernels. Tensors of rank 3 are
 * [batch, sequence, heads * size], of rank 4 [batch, heads, sequence, size]. Pure; any thread.
 */
#pragma once

#include "node.h"

struct sl_error;

enum { SL_HEADS_Q, SL_HEADS_K, SL_HEADS_V, SL_HEADS_MASK, SL_HEADS_PAST_K, SL_HEADS_PAST_V, SL_HEADS_FILLED };

/* What output 3 shows, in the order of the standard's corrected text: softcap comes before the mask. */
enum { SL_HEADS_SCORES, SL_HEADS_CAPPED, SL_HEADS_MASKED, SL_HEADS_WEIGHTS };

struct sl_heads {
        int64_t batch, q_heads, kv_heads, q_length, new_length, past, length; /* length: of keys, past and new */
        int64_t size, v_size;                                                 /* of a head */
        double scale, softcap;
        bool flat, causal;   /* flat: rank 3 */
        int64_t left, right; /* keys that a query sees beside its own place; -1: all of them */
        int64_t shown;
};

int sl_heads_read(const struct sl_node_desc *node, struct sl_heads *ret_heads, struct sl_error *error);
