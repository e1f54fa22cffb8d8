/* SPDX-License-Identifier: Apache-2.0 */
#include "walk.h"

#include <string.h>

void sl_ref_walk_init(struct sl_ref_walk *walk, const struct sl_shape *shape, uint32_t n_operands, struct sl_pace *pace)
{
        walk->pace = pace;
        walk->rank = shape->rank;
        walk->n_operands = n_operands;
        memcpy(walk->dims, shape->dims, sizeof(walk->dims));
        memset(walk->strides, 0, n_operands * sizeof(walk->strides[0]));
        sl_ref_walk_rewind(walk);
}

void sl_ref_walk_broadcast(struct sl_ref_walk *walk, uint32_t k, const struct sl_shape *shape)
{
        uint32_t missing = walk->rank - shape->rank;
        int64_t stride = 1;

        for (uint32_t d = shape->rank; d-- > 0;) {
                walk->strides[k][d + missing] = shape->dims[d] == 1 ? 0 : stride;
                stride *= shape->dims[d];
        }
}

void sl_ref_walk_strides(struct sl_ref_walk *walk, uint32_t k, const int64_t strides[SL_RANK_MAX])
{
        memcpy(walk->strides[k], strides, walk->rank * sizeof(strides[0]));
}

void sl_ref_walk_rewind(struct sl_ref_walk *walk)
{
        struct sl_shape shape = {.rank = walk->rank};

        memcpy(shape.dims, walk->dims, sizeof(shape.dims));
        walk->left = sl_shape_elements(&shape);
        if (!sl_pace_on(walk->pace, walk->left < SL_REF_WALK_LOOK ? walk->left + 1 : SL_REF_WALK_LOOK))
                walk->left = 0;
        memset(walk->index, 0, sizeof(walk->index));
        memset(walk->offsets, 0, walk->n_operands * sizeof(walk->offsets[0]));
}

void sl_ref_walk_copy(struct sl_ref_walk *walk, void *out, const void *in, size_t bytes)
{
        for (; walk->left; sl_ref_walk_next(walk))
                memcpy((char *)out + walk->offsets[0] * (int64_t)bytes, (const char *)in + walk->offsets[1] * (int64_t)bytes,
                        bytes);
}
