/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk over several tensors of one logical shape, each with strides of its own, in the order in which the first of them lies in
 * memory. Dimensions that all tensors step through alike are merged, so that the innermost one is as long as can be.
 * It knows nothing of layouts or broadcasts: those are strides. Pure; any thread.
 */
#pragma once

#include "part.h"
#include "tensor.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_WALK_TENSORS  4
#define SL_WALK_RANK_MAX (2 * SL_RANK_MAX)

struct sl_walk {
        uint32_t rank; /* at least 1; the last is the innermost */
        uint32_t n_tensors;
        int64_t sizes[SL_WALK_RANK_MAX];
        int64_t strides[SL_WALK_TENSORS][SL_WALK_RANK_MAX]; /* in elements; 0 repeats an element */
};

/* Where a walk stands: the offset (in elements) of the current row of each tensor. */
struct sl_walk_row {
        int64_t index[SL_WALK_RANK_MAX];
        int64_t offset[SL_WALK_TENSORS];
};

/* Start: set rank, n_tensors, sizes and strides as they come, in any order of dimensions; then this sorts and merges. */
void sl_walk_order(struct sl_walk *walk);

/* Strides of @operand stretched to @shape by ONNX's (numpy's) rule: missing and single dimensions repeat. False if it does not fit.
 */
bool sl_walk_broadcast(const struct sl_tensor *operand, const struct sl_shape *shape, int64_t ret_strides[SL_WALK_RANK_MAX]);

/* A walk over output (tensor 0) and inputs that broadcast to it, ordered. False if one does not fit. */
bool sl_walk_elements(struct sl_walk *walk, const struct sl_tensor *output, const struct sl_tensor *inputs, uint32_t n_inputs);

static inline bool sl_walk_is_empty(const struct sl_walk *walk)
{
        return walk->sizes[0] == 0;
}

static inline int64_t sl_walk_row_length(const struct sl_walk *walk)
{
        return walk->sizes[walk->rank - 1];
}

static inline int64_t sl_walk_row_stride(const struct sl_walk *walk, uint32_t tensor)
{
        return walk->strides[tensor][walk->rank - 1];
}

/* Into how many units a walk can be cut: along its outermost dimension, a flat one every SL_WALK_FLAT elements. */
#define SL_WALK_FLAT 64

static inline int64_t sl_walk_units(const struct sl_walk *walk, uint32_t axis)
{
        if (axis != SL_AXIS_ROWS)
                return 0;
        return walk->rank > 1 ? walk->sizes[0] : (walk->sizes[0] + SL_WALK_FLAT - 1) / SL_WALK_FLAT;
}

/*
 * The walk over a part: @walk itself where that is all of it, else a shorter one, which is made in @room. It begins at *ret_row.
 */
const struct sl_walk *sl_walk_take(
        const struct sl_walk *walk, const struct sl_part *part, struct sl_walk *room, struct sl_walk_row *ret_row);

/* Where a part of the walk touches @tensor, of so many bytes an element: runs that lie alike, else all from its first to its last. */
bool sl_walk_reach(
        const struct sl_walk *walk, const struct sl_part *part, uint32_t tensor, int64_t bytes, struct sl_reach *ret_reach);

/* To the next row, where a row has the @inner last dimensions. False after the last one. */
static inline bool sl_walk_next(const struct sl_walk *walk, struct sl_walk_row *row, uint32_t inner)
{
        for (uint32_t d = walk->rank > inner ? walk->rank - inner : 0; d-- > 0;) {
                bool carry = ++row->index[d] == walk->sizes[d];

                for (uint32_t t = 0; t < walk->n_tensors; t++)
                        row->offset[t] += carry ? -walk->strides[t][d] * (walk->sizes[d] - 1) : walk->strides[t][d];
                if (!carry)
                        return true;
                row->index[d] = 0;
        }
        return false;
}
