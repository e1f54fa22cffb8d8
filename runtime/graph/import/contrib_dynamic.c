/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of bytes whose scales a request decides: MatMulInteger, the Cast to float32 and the factors, which float-integers
 * knows. DynamicQuantizeLSTM rounds what it multiplies to bytes for speed; here its weights become floats once, and nothing else
 * is rounded.
 */
#include "import/contrib.h"
#include "import/expand.h"

/* A matrix product of bytes, in the order of MatMulInteger, and what makes floats of its sums. */
struct product {
        uint32_t a, b, a_zero, b_zero;
        uint32_t a_scale, b_scale, bias;
};

static bool is_single(const struct sl_expansion *x, uint32_t value)
{
        return value == SL_VALUE_NONE || sl_shape_elements(sl_expand_shape(x, value)) == 1;
}

static uint32_t product_of(struct sl_expansion *x, const struct product *p)
{
        struct sl_draft sums = {.op = SL_OP_MATMUL_INTEGER, .n_inputs = 4, .inputs = {p->a, p->b, p->a_zero, p->b_zero}};
        uint32_t scale = sl_expand_binary(x, SL_OP_MUL, p->a_scale, p->b_scale), value;

        if (!is_single(x, p->a_scale) || !is_single(x, p->a_zero))
                sl_expand_refuse(x, "several scales or zero points of its first matrix are not supported");
        while (sums.inputs[sums.n_inputs - 1] == SL_VALUE_NONE && sums.n_inputs > 2)
                sums.n_inputs--;
        value = sl_expand_cast(x, sl_expand(x, &sums), SL_DTYPE_F32);
        return sl_expand_plus(x, sl_expand_binary(x, SL_OP_MUL, value, scale), p->bias);
}

SL_CONTRIB(matmul_integer_to_float)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        const struct product p = {
                .a = sl_expand_input(&x, 0),
                .b = sl_expand_input(&x, 1),
                .a_scale = sl_expand_input(&x, 2),
                .b_scale = sl_expand_input(&x, 3),
                .a_zero = sl_expand_input(&x, 4),
                .b_zero = sl_expand_input(&x, 5),
                .bias = sl_expand_input(&x, 6),
        };

        (void)draft;
        sl_expand_output(&x, 0, product_of(&x, &p));
        return sl_expansion_end(&x);
}

SL_CONTRIB(dynamic_quantize_matmul)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        struct sl_draft quantize = {
                .op = SL_OP_DYNAMIC_QUANTIZE_LINEAR, .n_inputs = 1, .n_outputs = 3, .inputs = {sl_expand_input(&x, 0)}};
        struct product p = {
                .b = sl_expand_input(&x, 1),
                .b_scale = sl_expand_input(&x, 2),
                .b_zero = sl_expand_input(&x, 3),
                .bias = sl_expand_input(&x, 4),
        };
        uint32_t made[3];

        (void)draft;
        sl_expand_several(&x, &quantize, made);
        p.a = made[0];
        p.a_scale = made[1];
        p.a_zero = made[2];
        sl_expand_output(&x, 0, product_of(&x, &p));
        return sl_expansion_end(&x);
}

SL_CONTRIB(qattention)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        const struct product p = {
                .a = sl_expand_input(&x, 0),
                .b = sl_expand_input(&x, 1),
                .bias = sl_expand_input(&x, 2),
                .a_scale = sl_expand_input(&x, 3),
                .b_scale = sl_expand_input(&x, 4),
                .a_zero = sl_expand_input(&x, 6),
                .b_zero = sl_expand_input(&x, 7),
        };
        struct sl_attend a = {0};

        (void)draft;
        sl_attend_read(&x, &a);
        sl_contrib_attend_to_product(&x, &a, product_of(&x, &p));
        sl_contrib_attend_with_past(&x, &a, sl_expand_input(&x, 8), sl_expand_input(&x, 5), SL_VALUE_NONE);
        return sl_expansion_end(&x);
}

/* One number or one row of them for each direction, beside weights [directions, inputs, rows]. */
static uint32_t spread(struct sl_expansion *x, uint32_t value)
{
        uint32_t rank = sl_expand_shape(x, value)->rank;

        if (rank < 1 || rank > 2)
                return value;
        return sl_expand_unsqueeze(x, value, (int64_t[]){1, 2}, rank == 2 ? 1 : 2);
}

/* Weights as ONNX's LSTM has them: [directions, rows, inputs]. */
static uint32_t weights_of(struct sl_expansion *x, uint32_t bytes, uint32_t scale, uint32_t zero)
{
        uint32_t value = sl_expand_cast(x, bytes, SL_DTYPE_F32);

        if (scale == SL_VALUE_NONE)
                sl_expand_wrong(x, "the scale of its weights is missing");
        if (zero != SL_VALUE_NONE)
                value = sl_expand_binary(x, SL_OP_SUB, value, spread(x, sl_expand_cast(x, zero, SL_DTYPE_F32)));
        value = sl_expand_binary(x, SL_OP_MUL, value, spread(x, scale));
        return sl_expand_transpose(x, value, (int64_t[]){0, 2, 1}, 3);
}

SL_CONTRIB(dynamic_quantize_lstm)
{
        struct sl_expansion x = sl_expansion_of(im, node);

        draft->inputs[1] = weights_of(&x, sl_expand_input(&x, 1), sl_expand_input(&x, 8), sl_expand_input(&x, 9));
        draft->inputs[2] = weights_of(&x, sl_expand_input(&x, 2), sl_expand_input(&x, 10), sl_expand_input(&x, 11));
        draft->n_inputs = draft->n_inputs < 8 ? draft->n_inputs : 8;
        while (draft->n_inputs > 3 && draft->inputs[draft->n_inputs - 1] == SL_VALUE_NONE)
                draft->n_inputs--;
        return x.result < 0 ? x.result : sl_canonical_recurrent(im, node, draft);
}
