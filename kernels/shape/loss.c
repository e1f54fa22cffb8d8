/* SPDX-License-Identifier: Apache-2.0 */
/* Losses: scores [samples, classes, ...] against labels [samples, ...]. */
#include "rules.h"

#include <inttypes.h>

int sl_shape_loss(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *x = &node->inputs[0].shape, *labels = &node->inputs[1].shape;
        int64_t reduction = sl_attrs_int(&node->attrs, SL_ATTR_REDUCTION, 0), merged;
        struct sl_shape each = {.rank = 0};
        char text[SL_SHAPE_TEXT_BYTES], want[SL_SHAPE_TEXT_BYTES];
        bool same;
        int r = 0;

        if (x->rank < 2)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants 2 at least", x->rank);
        for (uint32_t i = 0; i < x->rank; i++)
                if (i != 1)
                        each.dims[each.rank++] = x->dims[i];
        same = labels->rank == each.rank;
        for (uint32_t i = 0; i < each.rank && same; i++)
                same = !sl_dim_merge(labels->dims[i], each.dims[i], &merged);
        if (!same)
                return sl_error_set(
                        error, EINVAL, "input 1 is %s, wants %s", sl_shape_print(labels, text), sl_shape_print(&each, want));
        if (node->inputs[1].dtype != SL_DTYPE_I32 && node->inputs[1].dtype != SL_DTYPE_I64)
                return sl_error_set(error, EINVAL, "input 1 is %s, wants int32 or int64", sl_dtype_name(node->inputs[1].dtype));
        if (reduction < 0 || reduction > 2)
                return sl_error_set(error, EINVAL, "attribute reduction is %" PRId64 ", outside [0,2]", reduction);
        if (sl_input_present(node, 2))
                r = (r = sl_same_dtype(node, 2, error)) ? r : sl_vector_of(node, 2, x->dims[1], error);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                node->outputs[i].dtype = node->inputs[0].dtype;
        if (reduction == 2)
                node->outputs[0].shape = each;
        if (node->n_outputs > 1)
                node->outputs[1].shape = *x;
        return r;
}
