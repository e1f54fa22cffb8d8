/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention over heads, spelled out as fuse-attention knows it, for the operators of com.microsoft that differ in how they come by
 * queries, keys, values and masks. Private to this folder.
 */
#pragma once

#include "import/expand.h"

struct sl_attend {
        uint32_t queries, keys, values; /* [batch, heads, rows, length]; keys and values may have other rows */
        uint32_t mask; /* float, added to the scores: broadcasts to [batch, heads, rows, keys]; SL_VALUE_NONE: none */
        int64_t heads;
        double scale;  /* 0: one over the square root of the length of a query */
        double filter; /* what a key that is masked out adds to its score */
        bool causal;   /* a query sees the keys up to its own place, which is counted from the last */
};

/* The attributes num_heads, scale, mask_filter_value and unidirectional. */
void sl_attend_read(struct sl_expansion *x, struct sl_attend *attend);

/* [batch, rows, heads * length] to [batch, heads, rows, length]. */
uint32_t sl_attend_split(struct sl_expansion *x, const struct sl_attend *attend, uint32_t rows);

/* Keys or values of earlier rows, [batch, heads, earlier, length] or SL_VALUE_NONE, in front of those of this request. */
uint32_t sl_attend_append(struct sl_expansion *x, uint32_t past, uint32_t value);

/*
 * The mask of integers, SL_VALUE_NONE for none, goes into attend->mask: [batch] how many keys count, [2 * batch] where they end and
 * where they begin, [batch, keys], [batch, rows, keys]. Queries and keys are there already.
 */
void sl_attend_mask(struct sl_expansion *x, struct sl_attend *attend, uint32_t mask);

/* Adds @bias, SL_VALUE_NONE for none, to the mask. */
void sl_attend_bias(struct sl_expansion *x, struct sl_attend *attend, uint32_t bias);

/* [batch, rows, heads * length of a value] */
uint32_t sl_attend(struct sl_expansion *x, struct sl_attend *attend);
