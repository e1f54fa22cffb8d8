/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <inttypes.h>

static bool is_byte(uint32_t dtype)
{
        return dtype == SL_DTYPE_U8 || dtype == SL_DTYPE_I8;
}

static int check_scale(const struct sl_node_desc *node, uint32_t id, struct sl_error *error)
{
        double scale = sl_attrs_float(&node->attrs, id, 1.0);

        if (scale > 0 && scale <= 0x1p100)
                return 0;
        return sl_error_set(error, EINVAL, "attribute %s is %g, wants a positive number", sl_attr_name(id), scale);
}

static int check_zero(const struct sl_node_desc *node, uint32_t id, struct sl_error *error)
{
        int64_t zero = sl_attrs_int(&node->attrs, id, 0);

        if (zero >= INT8_MIN && zero <= UINT8_MAX)
                return 0;
        return sl_error_set(
                error, EINVAL, "attribute %s is %" PRId64 ", outside [%d,%d]", sl_attr_name(id), zero, INT8_MIN, UINT8_MAX);
}

/* What all of them have: bytes at input 0, numbers for them and for the output, and the type of that. */
static int check_common(struct sl_node_desc *node, struct sl_error *error)
{
        static const uint32_t scales[] = {SL_ATTR_X_SCALE, SL_ATTR_ADDEND_SCALE, SL_ATTR_Y_SCALE};
        static const uint32_t zeros[] = {SL_ATTR_X_ZERO, SL_ATTR_ADDEND_ZERO, SL_ATTR_Y_ZERO};
        int64_t to = sl_attrs_int(&node->attrs, SL_ATTR_TO, SL_DTYPE_U8);
        int r = 0;

        if (!is_byte(node->inputs[0].dtype))
                return sl_error_set(error, EINVAL, "input 0 is %s, wants int8 or uint8", sl_dtype_name(node->inputs[0].dtype));
        if (to != SL_DTYPE_U8 && to != SL_DTYPE_I8 && to != SL_DTYPE_F32)
                return sl_error_set(error, EINVAL, "attribute to is %" PRId64 ", wants uint8, int8 or float32", to);
        for (uint32_t i = 0; i < 3 && !r; i++) {
                r = check_scale(node, scales[i], error);
                r = r ? r : check_zero(node, zeros[i], error);
        }
        node->outputs[0].dtype = (uint32_t)to;
        return r;
}

/* Inputs 1 to 3: weights, what a unit of their sums is worth, and the bias. */
static int check_weights(const struct sl_node_desc *node, int64_t channels, struct sl_error *error)
{
        const struct sl_shape *scale = &node->inputs[2].shape;

        if (node->inputs[1].dtype != SL_DTYPE_I8)
                return sl_error_set(error, EINVAL, "input 1 is %s, wants int8", sl_dtype_name(node->inputs[1].dtype));
        if (node->inputs[2].dtype != SL_DTYPE_F32)
                return sl_error_set(error, EINVAL, "input 2 is %s, wants float32", sl_dtype_name(node->inputs[2].dtype));
        if (sl_input_present(node, 3) && node->inputs[3].dtype != SL_DTYPE_I32)
                return sl_error_set(error, EINVAL, "input 3 is %s, wants int32", sl_dtype_name(node->inputs[3].dtype));
        if ((scale->rank != 1 || scale->dims[0] != 1) && sl_vector_of(node, 2, channels, error))
                return -EINVAL;
        return sl_input_present(node, 3) ? sl_vector_of(node, 3, channels, error) : 0;
}

int sl_shape_quantized_conv(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_node_desc plain = {.op = SL_OP_CONV, .n_inputs = 2, .n_outputs = 1, .attrs = node->attrs};
        int r = check_common(node, error);

        if (r)
                return r;
        plain.inputs[0] = node->inputs[0];
        plain.inputs[1] = node->inputs[1];
        plain.inputs[1].dtype = plain.inputs[0].dtype;
        r = sl_shape_conv(&plain, error);
        node->outputs[0].shape = plain.outputs[0].shape;
        return r ? r : check_weights(node, node->inputs[1].shape.dims[0], error);
}

int sl_shape_quantized_matmul(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *x = &node->inputs[0].shape, *w = &node->inputs[1].shape;
        uint32_t trans = sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0) != 0;
        int64_t merged;
        int r = check_common(node, error);

        if (r)
                return r;
        if (x->rank < 2 || w->rank != 2)
                return sl_error_set(error, EINVAL, "inputs 0 and 1 have ranks %u and %u, want 2 or more and 2", x->rank, w->rank);
        if (sl_dim_merge(x->dims[x->rank - 1], w->dims[trans], &merged))
                return sl_error_set(error, EINVAL, "input 0 has %" PRId64 " columns, input 1 has %" PRId64 " rows",
                        x->dims[x->rank - 1], w->dims[trans]);
        node->outputs[0].shape = *x;
        node->outputs[0].shape.dims[x->rank - 1] = w->dims[!trans];
        return check_weights(node, w->dims[!trans], error);
}

int sl_shape_quantized_add(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *x = &node->inputs[0].shape;
        int r = check_common(node, error);

        if (r)
                return r;
        if (node->epilogue.has_residual)
                return sl_error_set(error, EINVAL, "a residual is attached, which stands as input 1 here");
        node->outputs[0].shape = *x;
        if (!sl_input_present(node, 1))
                return 0;
        if (!is_byte(node->inputs[1].dtype))
                return sl_error_set(error, EINVAL, "input 1 is %s, wants int8 or uint8", sl_dtype_name(node->inputs[1].dtype));
        if (node->inputs[1].shape.rank != x->rank)
                return sl_error_set(error, EINVAL, "input 1 has rank %u, input 0 has rank %u", node->inputs[1].shape.rank, x->rank);
        for (uint32_t i = 0; i < x->rank; i++)
                if (sl_dim_merge(x->dims[i], node->inputs[1].shape.dims[i], &node->outputs[0].shape.dims[i]))
                        return sl_error_set(error, EINVAL, "dimension %u is %" PRId64 " in input 0, %" PRId64 " in input 1", i,
                                x->dims[i], node->inputs[1].shape.dims[i]);
        return 0;
}
