/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce.h"

#include "rules.h"

#include <inttypes.h>

int sl_reduced_axes(const struct sl_node_desc *node, uint32_t *ret_mask, struct sl_error *error)
{
        const struct sl_attr *axes = sl_attrs_find(&node->attrs, SL_ATTR_AXES);
        uint32_t rank = node->inputs[0].shape.rank;

        if (axes && axes->count)
                return sl_axes_resolve(axes, rank, ret_mask, error);
        *ret_mask = sl_attrs_int(&node->attrs, SL_ATTR_NOOP_EMPTY_AXES, 0) ? 0 : (1u << rank) - 1;
        return 0;
}

static void drop_axes(const struct sl_shape *in, uint32_t mask, bool keep, struct sl_shape *out)
{
        out->rank = 0;
        for (uint32_t i = 0; i < in->rank; i++) {
                if (!(mask & 1u << i))
                        out->dims[out->rank++] = in->dims[i];
                else if (keep)
                        out->dims[out->rank++] = 1;
        }
}

/* The axes stand as an input: only the rank can be told. */
static int pending_shape(const struct sl_node_desc *node, bool keep, struct sl_shape *ret_shape, struct sl_error *error)
{
        uint32_t length = 0, rank = node->inputs[0].shape.rank;
        int r = keep ? 0 : sl_parameter_length(node, 1, &length, error);

        if (r)
                return r;
        if (length > rank)
                return sl_error_set(error, EINVAL, "input 1 has %u elements, input 0 has rank %u", length, rank);
        /* An empty list of axes means all of them. */
        if (!keep && !length && !sl_attrs_int(&node->attrs, SL_ATTR_NOOP_EMPTY_AXES, 0))
                length = rank;
        ret_shape->rank = rank - length;
        for (uint32_t i = 0; i < ret_shape->rank; i++)
                ret_shape->dims[i] = SL_DIM_UNKNOWN;
        return 0;
}

int sl_shape_reduce(struct sl_node_desc *node, struct sl_error *error)
{
        bool keep = sl_attrs_int(&node->attrs, SL_ATTR_KEEPDIMS, 1);
        struct sl_tensor *out = &node->outputs[0];
        uint32_t mask;
        int r;

        out->dtype = node->inputs[0].dtype;
        if (!sl_attrs_find(&node->attrs, SL_ATTR_AXES) && sl_input_present(node, 1))
                return pending_shape(node, keep, &out->shape, error);
        r = sl_reduced_axes(node, &mask, error);
        if (!r)
                drop_axes(&node->inputs[0].shape, mask, keep, &out->shape);
        return r;
}

int sl_shape_argreduce(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        uint32_t axis;
        int r = sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), in->rank, &axis, error);

        if (r)
                return r;
        if (!in->dims[axis])
                return sl_error_set(error, EINVAL, "input 0 has no elements along axis %u", axis);
        node->outputs[0].dtype = SL_DTYPE_I64;
        drop_axes(in, 1u << axis, sl_attrs_int(&node->attrs, SL_ATTR_KEEPDIMS, 1), &node->outputs[0].shape);
        return 0;
}
