/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the operators whose output is as large as the data say: the dimension that is counted is unknown, and sl_op_bound()
 * says what it can be at most.
 */
#include "rules.h"

#include <inttypes.h>

int sl_shape_non_zero(struct sl_node_desc *node, struct sl_error *error)
{
        uint32_t rank = node->inputs[0].shape.rank;

        (void)error;
        node->outputs[0].dtype = SL_DTYPE_I64;
        node->outputs[0].shape = (struct sl_shape){.rank = 2, .dims = {rank ? rank : 1, SL_DIM_UNKNOWN}};
        return 0;
}

/* The input with one axis of unknown length, or a vector of its elements where no axis is given. */
static int count_along(struct sl_node_desc *node, struct sl_shape *ret_shape, struct sl_error *error)
{
        const struct sl_attr *given = sl_attrs_find(&node->attrs, SL_ATTR_AXIS);
        uint32_t axis = 0;
        int r;

        *ret_shape = (struct sl_shape){.rank = 1};
        if (given) {
                r = sl_axis_resolve(given->i, node->inputs[0].shape.rank, &axis, error);
                if (r < 0)
                        return r;
                *ret_shape = node->inputs[0].shape;
        }
        ret_shape->dims[axis] = SL_DIM_UNKNOWN;
        return 0;
}

int sl_shape_compress(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_tensor *condition = &node->inputs[1];

        if (condition->dtype != SL_DTYPE_BOOL || condition->shape.rank != 1)
                return sl_error_set(error, EINVAL, "input 1 is %s of rank %u, wants a vector of bool",
                        sl_dtype_name(condition->dtype), condition->shape.rank);
        node->outputs[0].dtype = node->inputs[0].dtype;
        return count_along(node, &node->outputs[0].shape, error);
}

int sl_shape_unique(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        const struct sl_attr *given = sl_attrs_find(&node->attrs, SL_ATTR_AXIS);
        struct sl_extent extent;
        struct sl_shape shape;
        int r = count_along(node, &shape, error);

        if (r == 0)
                r = sl_extent_of(in->dims, in->rank, &extent);
        if (r < 0)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = shape;
        for (uint32_t i = 1; i < node->n_outputs; i++) {
                node->outputs[i].dtype = SL_DTYPE_I64;
                node->outputs[i].shape = (struct sl_shape){.rank = 1, .dims = {SL_DIM_UNKNOWN}};
        }
        if (node->n_outputs > 2 && given)
                node->outputs[2].shape.dims[0] = in->dims[given->i < 0 ? given->i + in->rank : given->i];
        else if (node->n_outputs > 2)
                node->outputs[2].shape.dims[0] = sl_extent_dim(&extent);
        return 0;
}

/* What a node with bodies makes is what they make: the graph knows them, a node alone does not. */
int sl_shape_control(struct sl_node_desc *node, struct sl_error *error)
{
        (void)node;
        return sl_error_set(error, ENOTSUP, "its shapes are those of its bodies");
}

static int64_t counted_dim(const struct sl_node_desc *node)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        const struct sl_attr *axis = sl_attrs_find(&node->attrs, SL_ATTR_AXIS);

        if (!axis || node->op == SL_OP_NON_ZERO)
                return (int64_t)sl_shape_elements(in);
        return in->dims[axis->i < 0 ? axis->i + in->rank : axis->i];
}

int64_t sl_op_bound(const struct sl_node_desc *node, const void *const *inputs)
{
        switch (node->op) {
        case SL_OP_RANGE:
                return sl_op_range_elements(node->inputs[0].dtype, inputs[0], inputs[1], inputs[2]);
        case SL_OP_NON_MAX_SUPPRESSION:
                return sl_op_most_boxes(node);
        case SL_OP_COMPRESS:
        case SL_OP_NON_ZERO:
        case SL_OP_UNIQUE:
                return counted_dim(node);
        default:
                return -EINVAL;
        }
}
