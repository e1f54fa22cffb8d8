/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of opsets 24 to 28 that are made of older ones, and older ones that have got another form there. */
#include "import/canonical.h"
#include "import/expand.h"

#include <string.h>

/* x * Sigmoid(alpha * x) */
static uint32_t swish(struct sl_expansion *x, uint32_t a)
{
        uint32_t gate = sl_expand_times(x, a, sl_expand_float(x, "alpha", 1));

        return sl_expand_binary(x, SL_OP_MUL, a, sl_expand_unary(x, SL_OP_SIGMOID, gate));
}

int sl_canonical_swish(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        struct sl_expansion x = sl_expansion_of(im, node);

        (void)draft;
        sl_expand_output(&x, 0, swish(&x, sl_expand_input(&x, 0)));
        return sl_expansion_end(&x);
}

int sl_canonical_swiglu(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        const struct sl_shape *gate = sl_expand_shape(&x, sl_expand_input(&x, 0));
        const struct sl_shape *values = sl_expand_shape(&x, sl_expand_input(&x, 1));

        (void)draft;
        if (gate->rank != values->rank)
                sl_expand_wrong(&x, "its inputs have different ranks");
        for (uint32_t i = 0; i < gate->rank && i < values->rank; i++)
                if (gate->dims[i] >= 0 && values->dims[i] >= 0 && gate->dims[i] != values->dims[i])
                        sl_expand_misfit(&x, "its inputs have different shapes");
        sl_expand_output(&x, 0, sl_expand_binary(&x, SL_OP_MUL, swish(&x, sl_expand_input(&x, 0)), sl_expand_input(&x, 1)));
        return sl_expansion_end(&x);
}

/* What was before the sequence stands in front of it: the state, or zeros. */
static uint32_t with_past(struct sl_expansion *x, int64_t reach)
{
        const int64_t pads[] = {0, 0, reach, 0, 0, 0};
        struct sl_draft pad = {.op = SL_OP_PAD, .n_inputs = 1, .inputs = {sl_expand_input(x, 0)}};

        if (sl_expand_input(x, 3) != SL_VALUE_NONE)
                return sl_expand_concat(x, sl_expand_input(x, 3), sl_expand_input(x, 0), 2);
        if (!reach)
                return sl_expand_input(x, 0);
        if (x->result == 0)
                x->result = sl_attrs_set_ints(&pad.attrs, SL_ATTR_PADS, pads, 6);
        return sl_expand(x, &pad);
}

static uint32_t depthwise(struct sl_expansion *x, uint32_t sequence, int64_t channels)
{
        struct sl_draft conv = {.op = SL_OP_CONV, .n_inputs = 3};

        conv.inputs[0] = sequence;
        conv.inputs[1] = sl_expand_input(x, 1);
        conv.inputs[2] = sl_expand_input(x, 2);
        conv.n_inputs -= conv.inputs[2] == SL_VALUE_NONE;
        if (x->result == 0)
                x->result = sl_attrs_set_int(&conv.attrs, SL_ATTR_GROUP, channels);
        return sl_expand(x, &conv);
}

/* The state is as long as a filter reaches back; the one that comes out is the end of what went in. */
static void give_state(struct sl_expansion *x, uint32_t sequence, int64_t reach)
{
        int64_t end = INT64_MAX, start = reach ? -reach : end;

        if (sl_expand_has_output(x, 1))
                sl_expand_output(x, 1, sl_expand_slice(x, sequence, 2, start, end));
}

int sl_canonical_causal_conv(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        struct sl_shape filters = *sl_expand_shape(&x, sl_expand_input(&x, 1));
        const struct sl_shape *past = sl_expand_shape(&x, sl_expand_input(&x, 3));
        bool is_none = true, is_silu = false, is_swish = false;
        uint32_t sequence, y;

        (void)draft;
        if (sl_onnx_is(node, "activation", "none", &is_none) == 0 && !is_none) {
                sl_onnx_is(node, "activation", "silu", &is_silu);
                sl_onnx_is(node, "activation", "swish", &is_swish);
                if (!is_silu && !is_swish)
                        sl_expand_refuse(&x, "an activation other than silu, swish and none");
        }
        if (filters.rank != 3 || filters.dims[0] < 1 || filters.dims[1] != 1 || filters.dims[2] < 1)
                sl_expand_wrong(&x, "its filters are not [channels, 1, size]");
        if (past->rank && (past->rank != 3 || (past->dims[2] >= 0 && past->dims[2] != filters.dims[2] - 1)))
                sl_expand_misfit(&x, "its state is not [batch, channels, size of a filter - 1]");
        if (x.result < 0)
                return sl_expansion_end(&x);
        sequence = with_past(&x, filters.dims[2] - 1);
        y = depthwise(&x, sequence, filters.dims[0]);
        sl_expand_output(&x, 0, is_none ? y : sl_expand_binary(&x, SL_OP_MUL, y, sl_expand_unary(&x, SL_OP_SIGMOID, y)));
        give_state(&x, sequence, filters.dims[2] - 1);
        return sl_expansion_end(&x);
}

/* Of float16 and bfloat16 it counts in float32. */
int sl_canonical_range(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t dtype = sl_expand_dtype(&x, sl_expand_input(&x, 0));

        if (dtype != SL_DTYPE_F16 && dtype != SL_DTYPE_BF16)
                return 0;
        if (sl_expand_int(&x, "stash_type", SL_DTYPE_F32) != SL_DTYPE_F32)
                sl_expand_refuse(&x, "a stash_type other than float32");
        for (uint32_t i = 0; i < draft->n_inputs; i++)
                draft->inputs[i] = sl_expand_cast(&x, draft->inputs[i], SL_DTYPE_F32);
        sl_expand_output(&x, 0, sl_expand_cast(&x, sl_expand(&x, draft), dtype));
        return sl_expansion_end(&x);
}

/* Floats had C's remainder alone before opset 28. */
int sl_canonical_mod(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        bool floats = draft->n_inputs && draft->inputs[0] != SL_VALUE_NONE &&
                      sl_dtype_is_float(im->graph->values[draft->inputs[0]].tensor.dtype);

        if (floats && im->graph->opset < 28 && !sl_attrs_int(&draft->attrs, SL_ATTR_FMOD, 0))
                return sl_import_wrong(im, node, "of floats its attribute fmod must be 1");
        return 0;
}
