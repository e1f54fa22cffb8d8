/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the operators that make a tensor from parameters instead of data.
 */
#include "rules.h"

#include <inttypes.h>

/* `start` or `end` of Shape: counted from the end when negative, then clamped. */
static int64_t shape_bound(const struct sl_node_desc *node, uint32_t id, int64_t fallback)
{
        int64_t rank = node->inputs[0].shape.rank, bound = sl_attrs_ints(&node->attrs, id, 0, fallback);

        bound += bound < 0 ? rank : 0;
        return bound < 0 ? 0 : bound > rank ? rank : bound;
}

int sl_shape_shape_of(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t start = shape_bound(node, SL_ATTR_STARTS, 0), end = shape_bound(node, SL_ATTR_ENDS, node->inputs[0].shape.rank);

        (void)error;
        node->outputs[0].dtype = SL_DTYPE_I64;
        node->outputs[0].shape = (struct sl_shape){.rank = 1, .dims = {end > start ? end - start : 0}};
        return 0;
}

int sl_shape_constant_of_shape(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t to = sl_attrs_int(&node->attrs, SL_ATTR_TO, SL_DTYPE_F32);
        struct sl_shape shape = {.rank = 0};
        const struct sl_attr *list;
        int r = sl_list_or_input(node, SL_ATTR_SHAPE, 0, &list, error);

        if (r)
                return r;
        if (to < 0 || to >= SL_DTYPE_LIMIT || !sl_dtype_bytes((uint32_t)to))
                return sl_error_set(error, EINVAL, "attribute to is %" PRId64 ", which is no element type", to);
        if (!list)
                r = sl_parameter_length(node, 0, &shape.rank, error);
        else if (list->count > SL_RANK_MAX)
                r = sl_error_set(
                        error, EINVAL, "attribute shape has %u elements, the highest rank is %d", list->count, SL_RANK_MAX);
        else
                shape.rank = list->count;
        for (uint32_t i = 0; i < shape.rank && !r; i++) {
                shape.dims[i] = list ? list->ints[i] : SL_DIM_UNKNOWN;
                if (list && list->ints[i] < 0)
                        r = sl_error_set(error, EINVAL, "attribute shape has the element %" PRId64, list->ints[i]);
        }
        if (r)
                return r;
        node->outputs[0].dtype = (uint32_t)to;
        node->outputs[0].shape = shape;
        return 0;
}

/* The length depends on the values; whoever knows them asks sl_op_range_elements(). */
int sl_shape_range(struct sl_node_desc *node, struct sl_error *error)
{
        for (uint32_t i = 0; i < 3; i++) {
                const struct sl_shape *shape = &node->inputs[i].shape;

                if (shape->rank > 1 || (shape->rank == 1 && sl_dim_known(shape->dims[0]) && shape->dims[0] != 1))
                        return sl_error_set(error, EINVAL, "input %u has rank %u, wants a scalar", i, shape->rank);
                if (node->inputs[i].dtype != node->inputs[0].dtype)
                        return sl_same_dtype(node, i, error);
        }
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = (struct sl_shape){.rank = 1, .dims = {SL_DIM_UNKNOWN}};
        return 0;
}
