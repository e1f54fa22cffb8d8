/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk over all indices of a shape in row-major order, which keeps one offset (in elements) per operand. Lives on the
 * stack; one thread.
 *
 *      for (sl_ref_walk_start(&walk, &shape, n); walk.left; sl_ref_walk_next(&walk))
 *              ... walk.offsets[k] ...
 */
#pragma once

#include "node.h"
#include "pace.h"

/* Indices between two looks at the pace. */
#define SL_REF_WALK_LOOK 256

struct sl_ref_walk {
        uint64_t left; /* indices still to visit, the current one included */
        uint32_t rank, n_operands;
        int64_t dims[SL_RANK_MAX], index[SL_RANK_MAX];
        int64_t offsets[SL_NODE_INPUTS_MAX];
        int64_t strides[SL_NODE_INPUTS_MAX][SL_RANK_MAX];
        struct sl_pace *pace;
};

/* Operands have stride 0 until they are set below. A walk that @pace ends has nothing left; NULL: nobody ends it. */
void sl_ref_walk_init(struct sl_ref_walk *walk, const struct sl_shape *shape, uint32_t n_operands, struct sl_pace *pace);

/* Operand @k is a tensor of that shape, PLAIN, broadcast to the walk's shape. */
void sl_ref_walk_broadcast(struct sl_ref_walk *walk, uint32_t k, const struct sl_shape *shape);

/* Operand @k has these strides. */
void sl_ref_walk_strides(struct sl_ref_walk *walk, uint32_t k, const int64_t strides[SL_RANK_MAX]);

/* Back to index 0. */
void sl_ref_walk_rewind(struct sl_ref_walk *walk);

static inline void sl_ref_walk_next(struct sl_ref_walk *walk)
{
        walk->left--;
        if (walk->left % SL_REF_WALK_LOOK == 0 && walk->left && !sl_pace_on(walk->pace, SL_REF_WALK_LOOK)) {
                walk->left = 0;
                return;
        }
        for (uint32_t d = walk->rank; d-- > 0;) {
                int64_t back = walk->index[d];

                if (++walk->index[d] < walk->dims[d]) {
                        for (uint32_t k = 0; k < walk->n_operands; k++)
                                walk->offsets[k] += walk->strides[k][d];
                        return;
                }
                for (uint32_t k = 0; k < walk->n_operands; k++)
                        walk->offsets[k] -= back * walk->strides[k][d];
                walk->index[d] = 0;
        }
}

/* Copies one element of @bytes (1, 2, 4 or 8) per index from operand 1 of the walk to operand 0. */
void sl_ref_walk_copy(struct sl_ref_walk *walk, void *out, const void *in, size_t bytes);
