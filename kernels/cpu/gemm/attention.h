/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling.RowAttention on float32: the flat state of its loop, and its tiles. Private to attention*.c. Pure; any
 * thread.
 *
 * For each head the keys and the values are packed once (gemm.h), then blocks of queries pass by them; scores of a block lie in
 * scratch and stay in the L1 cache. A row never depends on the others, so a sample has the same bits in any batch.
 */
#pragma once

#include "cpu/base/isa.h"
#include "shape/attention.h"

#include <stdbool.h>

struct sl_binding;

#define SL_ATTENTION_BLOCK 14 /* queries at a time */

struct sl_cpu_attention {
        struct sl_attention a;
        int64_t strides[3]; /* from row to row of queries, keys, values */
        int64_t mask_strides[4];
        bool has_mask;
        float scale;
        int64_t values_offset, scores_offset, stride; /* of scratch, in floats; from row to row of scores */
};

/* One head of one sample, by its first query, key, value and output; @mask: of the first row, or NULL. */
struct sl_cpu_head {
        const float *queries, *keys, *values, *mask;
        float *output;
        float *scratch;
};

/* For processors with AVX2. */
SL_TILES(void, sl_cpu_attend, (const struct sl_cpu_attention *state, const struct sl_cpu_head *head), (state, head))
