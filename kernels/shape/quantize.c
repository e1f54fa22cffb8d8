/* SPDX-License-Identifier: Apache-2.0 */
#include "quantize.h"

#include "rules.h"
#include "window.h"

#include <inttypes.h>
#include <string.h>

static bool is_single(const struct sl_shape *shape)
{
        return shape->rank == 0 || (shape->rank == 1 && shape->dims[0] == 1);
}

/* At some sizes. */
static bool may_be_single(const struct sl_shape *shape)
{
        return is_single(shape) || (shape->rank == 1 && !sl_dim_known(shape->dims[0]));
}

static int64_t product_behind(const struct sl_shape *shape, uint32_t axis)
{
        int64_t elements = 1;

        for (uint32_t i = axis + 1; i < shape->rank; i++)
                if (shape->dims[i] < 0 || __builtin_mul_overflow(elements, shape->dims[i], &elements))
                        return 0;
        return elements;
}

static int read_blocks(const struct sl_shape *x, const struct sl_shape *scale, uint32_t axis, int64_t block,
        struct sl_scales *scales, struct sl_error *error)
{
        char text[SL_SHAPE_TEXT_BYTES], scale_text[SL_SHAPE_TEXT_BYTES];
        bool fits = scale->rank == x->rank;
        int64_t merged;

        for (uint32_t i = 0; i < x->rank && fits; i++) {
                int64_t want = i != axis || x->dims[i] < 0 ? x->dims[i] : x->dims[i] / block + (x->dims[i] % block != 0);

                fits = !sl_dim_merge(scale->dims[i], i == axis && x->dims[i] < 0 ? SL_DIM_UNKNOWN : want, &merged);
        }
        if (!fits)
                return sl_error_set(error, EINVAL,
                        "input 1 is %s, which is not one scale for each %" PRId64 " elements of axis %u of %s",
                        sl_shape_print(scale, scale_text), block, axis, sl_shape_print(x, text));
        scales->block = block;
        scales->blocks = scale->dims[axis];
        return 0;
}

int sl_scales_read(const struct sl_node_desc *node, struct sl_scales *ret_scales, struct sl_error *error)
{
        const struct sl_shape *x = &node->inputs[0].shape, *scale = &node->inputs[1].shape;
        int64_t block = sl_attrs_int(&node->attrs, SL_ATTR_BLOCK_SIZE, 0);
        struct sl_scales scales = {.inner = 1, .size = 1};
        uint32_t axis;
        int r;

        if (is_single(scale) && !block) {
                *ret_scales = scales;
                return 0;
        }
        if (block < 0)
                return sl_error_set(error, EINVAL, "attribute block_size is %" PRId64, block);
        r = sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 1), x->rank, &axis, error);
        if (r && !block && scale->rank == 1 && !sl_dim_known(scale->dims[0]))
                return sl_size_wanted(node, 1, 0, error);
        if (r)
                return r;
        scales.inner = product_behind(x, axis);
        scales.size = x->dims[axis];
        scales.block = 1;
        r = block ? read_blocks(x, scale, axis, block, &scales, error) : sl_vector_of(node, 1, x->dims[axis], error);
        if (!r)
                *ret_scales = scales;
        return r;
}

/* The zero point has the shape of the scale. */
static int check_zero_point(const struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *scale = &node->inputs[1].shape, *zero = &node->inputs[2].shape;
        char text[SL_SHAPE_TEXT_BYTES], scale_text[SL_SHAPE_TEXT_BYTES];
        bool same = scale->rank == zero->rank;
        int64_t merged;

        for (uint32_t i = 0; i < scale->rank && same; i++)
                same = !sl_dim_merge(scale->dims[i], zero->dims[i], &merged);
        if (same || (may_be_single(scale) && may_be_single(zero)))
                return 0;
        return sl_error_set(
                error, EINVAL, "input 2 is %s, input 1 is %s", sl_shape_print(zero, text), sl_shape_print(scale, scale_text));
}

static int check_scale_type(const struct sl_node_desc *node, uint32_t index, struct sl_error *error)
{
        if (sl_dtype_is_float(node->inputs[index].dtype))
                return 0;
        return sl_error_set(
                error, EINVAL, "input %u is %s, wants a floating type", index, sl_dtype_name(node->inputs[index].dtype));
}

int sl_shape_quantize(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t type = sl_attrs_int(&node->attrs, SL_ATTR_OUTPUT_DTYPE, 0);
        bool zero = sl_input_present(node, 2);
        struct sl_scales scales;
        int r = sl_scales_read(node, &scales, error);

        r = r || !zero ? r : check_zero_point(node, error);
        r = r ? r : check_scale_type(node, 1, error);
        if (!type)
                type = zero ? node->inputs[2].dtype : SL_DTYPE_U8;
        if (!r && (type < 0 || type > UINT16_MAX || !sl_dtype_bytes((uint32_t)type)))
                return sl_error_set(error, EINVAL, "attribute output_dtype is %" PRId64 ", which is no type", type);
        if (!r && zero && (uint32_t)type != node->inputs[2].dtype)
                return sl_error_set(error, EINVAL, "input 2 is %s, attribute output_dtype says %s",
                        sl_dtype_name(node->inputs[2].dtype), sl_dtype_name((uint32_t)type));
        if (r)
                return r;
        node->outputs[0].dtype = (uint32_t)type;
        node->outputs[0].shape = node->inputs[0].shape;
        return 0;
}

int sl_shape_dequantize(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t type = sl_attrs_int(&node->attrs, SL_ATTR_OUTPUT_DTYPE, 0);
        struct sl_scales scales;
        int r = sl_scales_read(node, &scales, error);

        if (!r && sl_input_present(node, 2))
                r = (r = sl_same_dtype(node, 2, error)) ? r : check_zero_point(node, error);
        r = r ? r : check_scale_type(node, 1, error);
        if (!r && type && (type < 0 || type > UINT16_MAX || !sl_dtype_is_float((uint32_t)type)))
                return sl_error_set(error, EINVAL, "attribute output_dtype is %" PRId64 ", which is no floating type", type);
        if (r)
                return r;
        node->outputs[0].dtype = type ? (uint32_t)type : node->inputs[1].dtype;
        node->outputs[0].shape = node->inputs[0].shape;
        return 0;
}

int sl_shape_dynamic_quantize(struct sl_node_desc *node, struct sl_error *error)
{
        (void)error;
        node->outputs[0].dtype = SL_DTYPE_U8;
        node->outputs[0].shape = node->inputs[0].shape;
        if (node->n_outputs > 1)
                node->outputs[1].dtype = SL_DTYPE_F32;
        if (node->n_outputs > 2)
                node->outputs[2].dtype = SL_DTYPE_U8;
        return 0;
}

static bool is_byte(uint32_t dtype)
{
        return dtype == SL_DTYPE_U8 || dtype == SL_DTYPE_I8;
}

static int check_bytes(const struct sl_node_desc *node, uint32_t index, struct sl_error *error)
{
        if (is_byte(node->inputs[index].dtype))
                return 0;
        return sl_error_set(error, EINVAL, "input %u is %s, wants int8 or uint8", index, sl_dtype_name(node->inputs[index].dtype));
}

/* Input @index is a scale or a zero point: one number, or one for each of @count rows, columns or filters. */
static int check_numbers(const struct sl_node_desc *node, uint32_t index, int64_t count, struct sl_error *error)
{
        if (!sl_input_present(node, index) || is_single(&node->inputs[index].shape))
                return 0;
        return sl_vector_of(node, index, count, error);
}

/* A MatMul or Conv with the tensors of @a and @b alone, run through the rule of that operator. */
static int infer_plain(struct sl_node_desc *node, uint32_t op, uint32_t a, uint32_t b, struct sl_error *error)
{
        struct sl_node_desc *plain = &(struct sl_node_desc){.op = op, .n_inputs = 2, .n_outputs = 1, .attrs = node->attrs};
        int r;

        plain->inputs[0] = node->inputs[a];
        plain->inputs[1] = node->inputs[b];
        plain->inputs[1].dtype = plain->inputs[0].dtype;
        r = op == SL_OP_CONV ? sl_shape_conv(plain, error) : sl_shape_matmul(plain, error);
        if (!r)
                node->outputs[0].shape = plain->outputs[0].shape;
        return r;
}

/* One number for each row of a matrix may also have the rank of the matrix; kernels know vectors and single numbers. */
int sl_shape_matmul_integer(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *a = &node->inputs[0].shape, *b = &node->inputs[1].shape;
        int r = check_bytes(node, 0, error);

        r = r ? r : check_bytes(node, 1, error);
        r = r ? r : infer_plain(node, SL_OP_MATMUL, 0, 1, error);
        r = r ? r : check_numbers(node, 2, a->rank > 1 ? a->dims[a->rank - 2] : 1, error);
        r = r ? r : check_numbers(node, 3, b->rank > 1 ? b->dims[b->rank - 1] : 1, error);
        if (!r && sl_input_present(node, 2))
                r = sl_same_dtype(node, 2, error);
        if (!r && sl_input_present(node, 3) && node->inputs[3].dtype != node->inputs[1].dtype)
                return sl_error_set(error, EINVAL, "inputs 1 and 3 have different types");
        node->outputs[0].dtype = SL_DTYPE_I32;
        return r;
}

int sl_shape_conv_integer(struct sl_node_desc *node, struct sl_error *error)
{
        int r = check_bytes(node, 0, error);

        r = r ? r : check_bytes(node, 1, error);
        r = r ? r : infer_plain(node, SL_OP_CONV, 0, 1, error);
        r = r ? r : check_numbers(node, 2, 1, error);
        r = r ? r : check_numbers(node, 3, node->inputs[1].shape.dims[0], error);
        if (!r && sl_input_present(node, 2))
                r = sl_same_dtype(node, 2, error);
        if (!r && sl_input_present(node, 3) && node->inputs[3].dtype != node->inputs[1].dtype)
                return sl_error_set(error, EINVAL, "inputs 1 and 3 have different types");
        node->outputs[0].dtype = SL_DTYPE_I32;
        return r;
}

/* x, its scale and zero point; w, its scale and zero point; the scale and zero point of y. */
static int check_eight(const struct sl_node_desc *node, int64_t rows, int64_t columns, struct sl_error *error)
{
        const int64_t counts[8] = {0, rows, rows, 0, columns, columns, 1, 1};
        int r = 0;

        for (uint32_t i = 0; i < 8 && !r; i++) {
                if (i == 1 || i == 4 || i == 6)
                        r = check_scale_type(node, i, error);
                else
                        r = check_bytes(node, i, error);
                if (!r && counts[i])
                        r = check_numbers(node, i, counts[i], error);
        }
        if (!r && (node->inputs[2].dtype != node->inputs[0].dtype || node->inputs[5].dtype != node->inputs[3].dtype))
                return sl_error_set(error, EINVAL, "a zero point has another type than its tensor");
        return r;
}

int sl_shape_qlinear_matmul(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *a = &node->inputs[0].shape, *b = &node->inputs[3].shape;
        int r = infer_plain(node, SL_OP_MATMUL, 0, 3, error);

        r = r ? r : check_eight(node, a->rank > 1 ? a->dims[a->rank - 2] : 1, b->rank > 1 ? b->dims[b->rank - 1] : 1, error);
        node->outputs[0].dtype = node->inputs[7].dtype;
        return r;
}

int sl_shape_qlinear_conv(struct sl_node_desc *node, struct sl_error *error)
{
        int r = infer_plain(node, SL_OP_CONV, 0, 3, error);

        r = r ? r : check_eight(node, 1, node->inputs[3].shape.dims[0], error);
        if (!r && sl_input_present(node, 8)) {
                r = sl_vector_of(node, 8, node->inputs[3].shape.dims[0], error);
                if (!r && node->inputs[8].dtype != SL_DTYPE_I32)
                        return sl_error_set(error, EINVAL, "input 8 is %s, wants int32", sl_dtype_name(node->inputs[8].dtype));
        }
        node->outputs[0].dtype = node->inputs[7].dtype;
        return r;
}
