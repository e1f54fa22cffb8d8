/* SPDX-License-Identifier: Apache-2.0 */
#include "relabel.h"

#include "graph.h"

#include <stdint.h>

static bool same_samples_and_channels(const struct sl_shape *a, const struct sl_shape *b)
{
        return a->dims[0] == b->dims[0] && a->dims[1] == b->dims[1];
}

/* A view keeps the order of a PLAIN tensor's elements. With the channels last it may only regroup the pixels. */
static bool view_relabels(const struct sl_node *node, const struct sl_tensor *in, const struct sl_tensor *out)
{
        if (in->layout != out->layout)
                return false;
        if (in->layout == SL_LAYOUT_PLAIN || node->op == SL_OP_IDENTITY)
                return true;
        return in->shape.rank >= 3 && out->shape.rank >= 3 && same_samples_and_channels(&in->shape, &out->shape);
}

static bool transpose_relabels(const struct sl_node *node, const struct sl_tensor *in, const struct sl_tensor *out)
{
        int64_t from[SL_RANK_MAX], to[SL_RANK_MAX];
        uint32_t rank = out->shape.rank;

        if (in->shape.rank != rank)
                return false;
        sl_tensor_strides(in, from);
        sl_tensor_strides(out, to);
        for (uint32_t d = 0; d < rank; d++) {
                int64_t source = sl_attrs_ints(&node->attrs, SL_ATTR_PERM, d, rank - 1 - d);

                if (source < 0 || source >= rank || (out->shape.dims[d] != 1 && to[d] != from[source]))
                        return false;
        }
        return true;
}

bool sl_relabels(const struct sl_node *node, const struct sl_tensor *in, const struct sl_tensor *out)
{
        if (node->op == SL_OP_TRANSPOSE)
                return transpose_relabels(node, in, out);
        return sl_op_traits(node->op) & SL_OP_VIEW && view_relabels(node, in, out);
}
