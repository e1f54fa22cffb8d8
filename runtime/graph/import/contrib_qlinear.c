/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators on bytes that carry their scales and zero points: DequantizeLinear, the operator on floats, QuantizeLinear, as a file
 * with such pairs has it. quantize-products and quantize-elements make integer arithmetic of them again.
 */
#include "import/contrib.h"
#include "import/expand.h"

uint32_t sl_contrib_dequantized(struct sl_expansion *x, uint32_t value, uint32_t scale, uint32_t zero, int64_t axis)
{
        struct sl_draft draft = {
                .op = SL_OP_DEQUANTIZE_LINEAR, .n_inputs = zero == SL_VALUE_NONE ? 2 : 3, .inputs = {value, scale, zero}};

        if (value == SL_VALUE_NONE || scale == SL_VALUE_NONE)
                sl_expand_wrong(x, "an input or its scale is missing");
        if (x->result == 0)
                x->result = sl_attrs_set_int(&draft.attrs, SL_ATTR_AXIS, axis);
        return sl_expand(x, &draft);
}

/* Bytes of the type of @like, which the zero point has where it is there. */
static uint32_t quantized(struct sl_expansion *x, uint32_t value, uint32_t scale, uint32_t zero, uint32_t like)
{
        struct sl_draft draft = {.op = SL_OP_QUANTIZE_LINEAR, .n_inputs = 3, .inputs = {value, scale}};

        if (scale == SL_VALUE_NONE)
                sl_expand_wrong(x, "the scale of its output is missing");
        draft.inputs[2] = zero == SL_VALUE_NONE ? sl_expand_number(x, 0, sl_expand_dtype(x, like)) : zero;
        return sl_expand(x, &draft);
}

/* Three inputs in a row: a tensor of bytes, its scale, its zero point. */
static uint32_t operand(struct sl_expansion *x, uint32_t first)
{
        return sl_contrib_dequantized(
                x, sl_expand_input(x, first), sl_expand_input(x, first + 1), sl_expand_input(x, first + 2), 1);
}

/* @value as the output, whose scale is input @first and whose zero point follows. */
static int end_with_bytes(struct sl_expansion *x, uint32_t value, uint32_t first)
{
        value = quantized(x, value, sl_expand_input(x, first), sl_expand_input(x, first + 1), sl_expand_input(x, 0));
        sl_expand_output(x, 0, value);
        return sl_expansion_end(x);
}

static int of_two(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t op)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t a = operand(&x, 0);

        return end_with_bytes(&x, sl_expand_binary(&x, op, a, operand(&x, 3)), 6);
}

SL_CONTRIB(qlinear_add)
{
        (void)draft;
        return of_two(im, node, SL_OP_ADD);
}

SL_CONTRIB(qlinear_mul)
{
        (void)draft;
        return of_two(im, node, SL_OP_MUL);
}

/* The draft has the operator and its attributes. */
SL_CONTRIB(qlinear_unary)
{
        struct sl_expansion x = sl_expansion_of(im, node);

        draft->n_inputs = 1;
        draft->inputs[0] = operand(&x, 0);
        return end_with_bytes(&x, sl_expand(&x, draft), 3);
}

SL_CONTRIB(qlinear_pool)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        bool last = sl_expand_int(&x, "channels_last", 0);
        uint32_t value = operand(&x, 0);

        draft->n_inputs = 1;
        draft->inputs[0] = last ? sl_contrib_channels_first(&x, value) : value;
        if (x.result == 0 && draft->op == SL_OP_AVERAGE_POOL)
                x.result = sl_canonical_window(im, node, draft);
        value = sl_expand(&x, draft);
        return end_with_bytes(&x, last ? sl_contrib_channels_last(&x, value) : value, 3);
}

SL_CONTRIB(qlinear_where)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        struct sl_draft where = {.op = SL_OP_WHERE, .n_inputs = 3, .inputs = {sl_expand_input(&x, 0)}};
        uint32_t value;

        (void)draft;
        where.inputs[1] = operand(&x, 1);
        where.inputs[2] = operand(&x, 4);
        value = sl_expand(&x, &where);
        value = quantized(&x, value, sl_expand_input(&x, 7), sl_expand_input(&x, 8), sl_expand_input(&x, 1));
        sl_expand_output(&x, 0, value);
        return sl_expansion_end(&x);
}

SL_CONTRIB(qlinear_concat)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t value;

        if (node->n_inputs % 3 != 2)
                sl_expand_wrong(&x, "its inputs are not those of the output and three for each tensor");
        draft->n_inputs = 0;
        for (uint32_t first = 2; first < node->n_inputs; first += 3)
                draft->inputs[draft->n_inputs++] = operand(&x, first);
        value = sl_expand(&x, draft);
        value = quantized(&x, value, sl_expand_input(&x, 0), sl_expand_input(&x, 1), sl_expand_input(&x, 2));
        sl_expand_output(&x, 0, value);
        return sl_expansion_end(&x);
}

/* Before opset 13, which the node names, Softmax is over everything from its axis on: a matrix, and the old shape again. */
static uint32_t softmax_of_matrix(struct sl_expansion *x, uint32_t value, int64_t axis)
{
        const struct sl_shape shape = *sl_expand_shape(x, value);
        struct sl_draft flatten = {.op = SL_OP_FLATTEN, .n_inputs = 1, .inputs = {value}};
        int64_t dims[SL_RANK_MAX];
        uint32_t n_open = 0;

        for (uint32_t i = 0; i < shape.rank; i++) {
                dims[i] = shape.dims[i] < 0 ? -1 : shape.dims[i];
                n_open += shape.dims[i] < 0;
        }
        if (n_open > 1)
                sl_expand_refuse(x, "more than one dimension of its input is not known");
        if (x->result == 0)
                x->result = sl_attrs_set_int(&flatten.attrs, SL_ATTR_AXIS, axis);
        value = sl_expand_softmax(x, sl_expand(x, &flatten), 1);
        return sl_expand_reshape(x, value, dims, shape.rank);
}

SL_CONTRIB(qlinear_softmax)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        int64_t opset = sl_expand_int(&x, "opset", 13), axis = sl_expand_int(&x, "axis", opset < 13 ? 1 : -1);
        uint32_t value = operand(&x, 0);
        int64_t rank = sl_expand_shape(&x, value)->rank;

        (void)draft;
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank)
                sl_expand_wrong(&x, "its axis is outside the rank of input 0");
        value = opset < 13 && axis + 1 < rank ? softmax_of_matrix(&x, value, axis) : sl_expand_softmax(&x, value, axis);
        return end_with_bytes(&x, value, 3);
}

/* C is counted in the product of the scales of A and B. */
static uint32_t gemm_bias(struct sl_expansion *x)
{
        uint32_t c = sl_expand_input(x, 6);

        if (c == SL_VALUE_NONE)
                return c;
        return sl_contrib_dequantized(
                x, c, sl_expand_binary(x, SL_OP_MUL, sl_expand_input(x, 1), sl_expand_input(x, 4)), SL_VALUE_NONE, -1);
}

SL_CONTRIB(qgemm)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        double alpha = sl_expand_float(&x, "alpha", 1);
        bool turned = sl_expand_int(&x, "transB", 0);
        uint32_t value, bias = gemm_bias(&x);

        draft->inputs[0] = operand(&x, 0);
        draft->inputs[1] =
                sl_contrib_dequantized(&x, sl_expand_input(&x, 3), sl_expand_input(&x, 4), sl_expand_input(&x, 5), turned ? 0 : 1);
        draft->inputs[2] = bias;
        draft->n_inputs = bias == SL_VALUE_NONE ? 2 : 3;
        value = sl_expand_times(&x, sl_expand(&x, draft), alpha);
        if (sl_expand_input(&x, 7) != SL_VALUE_NONE)
                return end_with_bytes(&x, value, 7);
        sl_expand_output(&x, 0, value);
        return sl_expansion_end(&x);
}
