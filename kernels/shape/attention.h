/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling.RowAttention: what its attributes say, one reading for the shape rule and the kernels. Pure; any thread.
 *
 * Queries, keys and values are rows [batch, rows, width] as a projection makes them: row r holds, from a first column on, the
 * vectors of all heads one after the other. All three may be the same tensor. For each head
 *
 *     output = Softmax(scale * queries * transposed(keys) + mask) * values
 *
 * and the output's rows hold the heads one after the other again. The mask, of the type of the rows or float32, broadcasts to
 * [batch, heads, rows, keys]. Where the weights of a row are not numbers (every key is masked by -infinity; all of a row are, or
 * none is), starling.guard makes them 0.
 */
#pragma once

#include "node.h"

struct sl_error;

enum { SL_ATTENTION_QUERIES, SL_ATTENTION_KEYS, SL_ATTENTION_VALUES, SL_ATTENTION_MASK };

struct sl_attention {
        int64_t batch, rows, keys; /* may be SL_DIM_BATCH or SL_DIM_UNKNOWN in a graph */
        int64_t heads, depth;      /* depth: of a query and a key */
        int64_t width;             /* of a value */
        int64_t first[3];          /* column of the queries, keys, values */
        double scale;
        bool guard; /* weights that are not numbers are 0 */
};

/* -EINVAL: ranks, dimensions or attributes that make no sense; heads that lie outside the rows. */
int sl_attention_read(const struct sl_node_desc *node, struct sl_attention *ret_attention, struct sl_error *error);
