/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <inttypes.h>

int sl_shape_same(struct sl_node_desc *node, struct sl_error *error)
{
        (void)error;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = node->inputs[0].shape;
        return 0;
}

int sl_shape_prelu(struct sl_node_desc *node, struct sl_error *error)
{
        int r = sl_same_dtype(node, 1, error);

        r = r ? r : sl_shape_fits(&node->inputs[1].shape, &node->inputs[0].shape, "input 1", error);
        return r ? r : sl_shape_same(node, error);
}

int sl_shape_cast(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t to = sl_attrs_int(&node->attrs, SL_ATTR_TO, SL_DTYPE_NONE);

        if (to < 0 || to >= SL_DTYPE_LIMIT || !sl_dtype_bytes((uint32_t)to))
                return sl_error_set(error, EINVAL, "attribute to is %" PRId64 ", which is no element type", to);
        node->outputs[0].dtype = (uint32_t)to;
        node->outputs[0].shape = node->inputs[0].shape;
        return 0;
}

int sl_shape_reorder(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t layout = sl_attrs_int(&node->attrs, SL_ATTR_LAYOUT, -1);
        uint32_t rank = node->inputs[0].shape.rank;

        if (layout != SL_LAYOUT_PLAIN && layout != SL_LAYOUT_CHANNELS_LAST)
                return sl_error_set(error, EINVAL, "attribute layout is %" PRId64 ", which is no layout", layout);
        if (rank < 3 || rank > 5)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, outside [3,5]", rank);
        node->outputs[0] = node->inputs[0];
        node->outputs[0].layout = (uint32_t)layout;
        return 0;
}

static int join_inputs(const struct sl_node_desc *node, uint32_t first, struct sl_shape *ret_shape, struct sl_error *error)
{
        struct sl_shape shape = {.rank = 0};
        int r = 0;

        for (uint32_t i = first; i < node->n_inputs && !r; i++) {
                if (!sl_input_present(node, i))
                        return sl_error_set(error, EINVAL, "input %u is missing", i);
                r = sl_shape_join(&shape, &node->inputs[i].shape, &shape, error);
        }
        if (!r)
                *ret_shape = shape;
        return r;
}

int sl_shape_broadcast(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_shape shape;
        int r = join_inputs(node, 0, &shape, error);

        for (uint32_t i = 1; i < node->n_inputs && !r; i++)
                r = sl_same_dtype(node, i, error);
        if (r)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = shape;
        return 0;
}

/* The exponent may have another type; the result has the base's. */
int sl_shape_pow(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_shape shape;
        int r = join_inputs(node, 0, &shape, error);

        if (r)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = shape;
        return 0;
}

int sl_shape_compare(struct sl_node_desc *node, struct sl_error *error)
{
        int r = sl_shape_broadcast(node, error);

        node->outputs[0].dtype = SL_DTYPE_BOOL;
        return r;
}

int sl_shape_predicate(struct sl_node_desc *node, struct sl_error *error)
{
        (void)error;
        node->outputs[0].dtype = SL_DTYPE_BOOL;
        node->outputs[0].shape = node->inputs[0].shape;
        return 0;
}

/* The bits stay, whatever they stand for. */
int sl_shape_bit_cast(struct sl_node_desc *node, struct sl_error *error)
{
        uint32_t from = node->inputs[0].dtype, to;
        int r = sl_shape_cast(node, error);

        to = node->outputs[0].dtype;
        if (!r && sl_dtype_bytes(from) != sl_dtype_bytes(to))
                return sl_error_set(error, EINVAL, "input 0 is %s, whose bits are no %s", sl_dtype_name(from), sl_dtype_name(to));
        return r;
}

int sl_shape_logic(struct sl_node_desc *node, struct sl_error *error)
{
        if (node->inputs[0].dtype != SL_DTYPE_BOOL)
                return sl_error_set(error, EINVAL, "input 0 is %s, wants bool", sl_dtype_name(node->inputs[0].dtype));
        return sl_shape_broadcast(node, error);
}

int sl_shape_where(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_shape shape;
        int r;

        if (node->inputs[0].dtype != SL_DTYPE_BOOL)
                return sl_error_set(error, EINVAL, "input 0 is %s, wants bool", sl_dtype_name(node->inputs[0].dtype));
        if (node->inputs[1].dtype != node->inputs[2].dtype)
                return sl_error_set(error, EINVAL, "input 1 is %s, input 2 is %s", sl_dtype_name(node->inputs[1].dtype),
                        sl_dtype_name(node->inputs[2].dtype));
        r = join_inputs(node, 0, &shape, error);
        if (r)
                return r;
        node->outputs[0].dtype = node->inputs[1].dtype;
        node->outputs[0].shape = shape;
        return 0;
}
