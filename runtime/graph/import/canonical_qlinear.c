/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QLinearConv and QLinearMatMul by constant int8 weights around zero stay as they are: quantize-products makes products of bytes of
 * them. With other operands they become DequantizeLinear, the product of floats, QuantizeLinear, for there is no fast product of
 * such bytes; uint8 weights around 128 are int8 ones around zero.
 */
#include "import/canonical.h"
#include "import/contrib.h"
#include "import/expand.h"

enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS };

/* Every byte of the constant is @byte. */
static bool all_are(const struct sl_expansion *x, uint32_t value, uint8_t byte)
{
        const uint8_t *data = value == SL_VALUE_NONE ? NULL : sl_graph_constant(x->im->graph, value);

        for (uint64_t i = 0; data && i < x->im->graph->values[value].data_bytes; i++)
                if (data[i] != byte)
                        return false;
        return data != NULL;
}

static bool is_single(const struct sl_expansion *x, uint32_t input)
{
        uint32_t value = sl_expand_input(x, input);

        return value != SL_VALUE_NONE && sl_shape_elements(sl_expand_shape(x, value)) == 1;
}

static bool has_constant_weights(const struct sl_expansion *x)
{
        return sl_graph_is_constant(x->im->graph, sl_expand_input(x, W));
}

static bool is_fast_as_it_is(const struct sl_expansion *x)
{
        return has_constant_weights(x) && sl_expand_dtype(x, sl_expand_input(x, W)) == SL_DTYPE_I8 &&
               all_are(x, sl_expand_input(x, W_ZERO), 0);
}

/* uint8 as int8: the same numbers, counted from 128. */
static uint32_t signed_bytes(struct sl_expansion *x, uint32_t value)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_I8, .shape = *sl_expand_shape(x, value)};
        uint64_t bytes = x->im->graph->values[value].data_bytes;
        uint8_t *to = x->result == 0 ? sl_graph_alloc(x->im->graph, bytes) : NULL;
        uint32_t made = SL_VALUE_NONE;

        if (x->result == 0 && !to)
                x->result = -ENOMEM;
        for (uint64_t i = 0; i < bytes && to; i++)
                to[i] = ((const uint8_t *)x->im->graph->values[value].data)[i] ^ 0x80;
        if (x->result == 0)
                x->result = sl_graph_add_constant(x->im->graph, x->node->name, &tensor, to, &made);
        return x->result == 0 ? made : SL_VALUE_NONE;
}

static uint32_t weights_of(struct sl_expansion *x, int64_t axis)
{
        uint32_t weights = sl_expand_input(x, W), scale = sl_expand_input(x, W_SCALE), zero = sl_expand_input(x, W_ZERO);

        if (has_constant_weights(x) && sl_expand_dtype(x, weights) == SL_DTYPE_U8 && all_are(x, zero, 128))
                return sl_contrib_dequantized(x, signed_bytes(x, weights), scale, SL_VALUE_NONE, axis);
        return sl_contrib_dequantized(x, weights, scale, zero, axis);
}

/* @product has its attributes; its inputs are made here. */
static int of_floats(struct sl_expansion *x, struct sl_draft *product, int64_t axis)
{
        struct sl_draft quantize = {.op = SL_OP_QUANTIZE_LINEAR, .n_inputs = 3};
        uint32_t bias = product->op == SL_OP_CONV ? sl_expand_input(x, BIAS) : SL_VALUE_NONE, scale;

        product->inputs[0] =
                sl_contrib_dequantized(x, sl_expand_input(x, X), sl_expand_input(x, X_SCALE), sl_expand_input(x, X_ZERO), 1);
        product->inputs[1] = weights_of(x, axis);
        product->n_inputs = bias == SL_VALUE_NONE ? 2 : 3;
        if (bias != SL_VALUE_NONE) {
                scale = sl_expand_binary(x, SL_OP_MUL, sl_expand_input(x, X_SCALE), sl_expand_input(x, W_SCALE));
                product->inputs[2] = sl_contrib_dequantized(x, bias, scale, SL_VALUE_NONE, 0);
        }
        quantize.inputs[0] = sl_expand(x, product);
        quantize.inputs[1] = sl_expand_input(x, Y_SCALE);
        quantize.inputs[2] = sl_expand_input(x, Y_ZERO);
        sl_expand_output(x, 0, sl_expand(x, &quantize));
        return sl_expansion_end(x);
}

/* One scale for each of the other operands than the weights, which may have several. */
static bool has_single_scales(const struct sl_expansion *x)
{
        return is_single(x, X_SCALE) && is_single(x, X_ZERO) && is_single(x, Y_SCALE) && is_single(x, Y_ZERO);
}

int sl_canonical_qlinear_conv(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        int result = sl_canonical_window(im, node, draft);

        if (result < 0 || !has_constant_weights(&x) || is_fast_as_it_is(&x) || !has_single_scales(&x))
                return result;
        draft->op = SL_OP_CONV;
        return of_floats(&x, draft, 0);
}

int sl_canonical_qlinear_matmul(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        bool columns = sl_expand_shape(&x, sl_expand_input(&x, W))->rank == 2;

        if (is_fast_as_it_is(&x) || !has_single_scales(&x))
                return 0;
        if (!columns && !(is_single(&x, W_SCALE) && is_single(&x, W_ZERO)))
                return 0;
        draft->op = SL_OP_MATMUL;
        return of_floats(&x, draft, 1);
}
