/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that compute, and the ways in which their opsets differ. */
#include "import/canonical.h"

#include <string.h>

/* A limit that each request brings: Max and Min, which take tensors, are the same. */
static int clip_to_values(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t limits[2] = {draft->inputs[1], draft->n_inputs > 2 ? draft->inputs[2] : SL_VALUE_NONE};
        struct sl_draft step = {.op = SL_OP_MAX, .n_inputs = 2, .n_outputs = 1, .inputs = {draft->inputs[0], limits[0]}};
        uint32_t raised = draft->inputs[0];
        int result = 0;

        if (limits[0] != SL_VALUE_NONE && limits[1] != SL_VALUE_NONE)
                result = sl_import_emit_step(im, node, &step, &raised);
        if (limits[1] != SL_VALUE_NONE)
                step = (struct sl_draft){.op = SL_OP_MIN, .n_inputs = 2, .n_outputs = 1, .inputs = {raised, limits[1]}};
        if (result == 0)
                result = sl_import_emit_last(im, node, &step);
        return result < 0 ? result : 1;
}

static bool all_constant(const struct sl_importer *im, const struct sl_draft *draft, uint32_t first)
{
        for (uint32_t i = first; i < draft->n_inputs; i++)
                if (draft->inputs[i] != SL_VALUE_NONE && !sl_graph_is_constant(im->graph, draft->inputs[i]))
                        return false;
        return true;
}

/* Up to opset 12, Softmax is over everything from `axis` on: a matrix of it, and the old shape again. */
static int softmax_of_matrix(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, uint32_t axis)
{
        const struct sl_shape shape = im->graph->values[draft->inputs[0]].tensor.shape;
        struct sl_draft flatten = {.op = SL_OP_FLATTEN, .n_inputs = 1, .n_outputs = 1, .inputs = {draft->inputs[0]}};
        struct sl_draft reshape = {.op = SL_OP_RESHAPE, .n_inputs = 1, .n_outputs = 1};
        int64_t dims[SL_RANK_MAX];
        uint32_t n_open = 0;
        int result;

        for (uint32_t i = 0; i < shape.rank; i++) {
                dims[i] = shape.dims[i] < 0 ? -1 : shape.dims[i];
                n_open += shape.dims[i] < 0;
        }
        if (n_open > 1)
                return sl_import_refuse(im, node, "more than one dimension of its input is not known");
        result = sl_attrs_set_int(&flatten.attrs, SL_ATTR_AXIS, axis);
        if (result == 0)
                result = sl_import_emit_step(im, node, &flatten, &draft->inputs[0]);
        if (result == 0)
                result = sl_attrs_set_int(&draft->attrs, SL_ATTR_AXIS, 1);
        if (result == 0)
                result = sl_import_emit_step(im, node, draft, &reshape.inputs[0]);
        if (result == 0)
                result = sl_attrs_set_ints(&reshape.attrs, SL_ATTR_SHAPE, dims, shape.rank);
        if (result == 0)
                result = sl_import_emit_last(im, node, &reshape);
        return result < 0 ? result : 1;
}

/* Everything behind the axis is 1: then both meanings are the same. */
static bool is_last_that_counts(const struct sl_shape *shape, uint32_t axis)
{
        for (uint32_t i = axis + 1; i < shape->rank; i++)
                if (shape->dims[i] != 1)
                        return false;
        return true;
}

int sl_canonical_softmax(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        int64_t axis = sl_attrs_int(&draft->attrs, SL_ATTR_AXIS, im->graph->opset < 13 ? 1 : -1);
        const struct sl_shape *shape;

        if (!draft->n_inputs || draft->inputs[0] == SL_VALUE_NONE)
                return sl_import_wrong(im, node, "it wants an input");
        shape = &im->graph->values[draft->inputs[0]].tensor.shape;
        axis += axis < 0 ? shape->rank : 0;
        if (axis < 0 || axis >= shape->rank)
                return sl_import_wrong(im, node, "its axis is outside the rank of input 0");
        if (im->graph->opset < 13 && !is_last_that_counts(shape, (uint32_t)axis))
                return softmax_of_matrix(im, node, draft, (uint32_t)axis);
        return sl_attrs_set_int(&draft->attrs, SL_ATTR_AXIS, axis);
}

int sl_canonical_clip(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        int result;

        if (im->graph->opset >= 11 && node->proto->n_attribute)
                return sl_import_wrong(im, node, "attributes of an older opset");
        if (im->graph->opset >= 11)
                return all_constant(im, draft, 1) || draft->n_inputs > 3 || draft->inputs[0] == SL_VALUE_NONE
                               ? 0
                               : clip_to_values(im, node, draft);
        result = sl_onnx_copy_attr(im, node, "min", SL_ATTR_MIN, &draft->attrs);
        return result < 0 ? result : sl_onnx_copy_attr(im, node, "max", SL_ATTR_MAX, &draft->attrs);
}

int sl_canonical_lrn(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        int64_t size = 0;
        double bias = 1;
        int result = sl_onnx_int(im, node, "size", &size);

        if (result == 0)
                result = sl_onnx_float(im, node, "bias", &bias);
        /* The kernel has the number of channels in AXIS and the bias in VALUE. */
        if (result == 0)
                result = sl_attrs_set_int(&draft->attrs, SL_ATTR_AXIS, size);
        return result < 0 ? result : sl_attrs_set_float(&draft->attrs, SL_ATTR_VALUE, bias);
}

/* A Gelu that passes make has no attribute where a file says the default: both are to be the same. */
int sl_canonical_gelu(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        (void)im;
        (void)node;
        if (!sl_attrs_int(&draft->attrs, SL_ATTR_APPROXIMATE, 0))
                sl_attrs_remove(&draft->attrs, SL_ATTR_APPROXIMATE);
        return 0;
}

/* Only floats of 8 bits are not cut at their limits, and only float8e8m0 has a way of rounding: else it is not said. */
static void settle_small(struct sl_draft *draft, int64_t to)
{
        bool cuts = to == SL_DTYPE_F8E8M0 || (to >= SL_DTYPE_F8E4M3FN && to <= SL_DTYPE_F8E5M2FNUZ);

        if (!cuts || sl_attrs_int(&draft->attrs, SL_ATTR_SATURATE, 1))
                sl_attrs_remove(&draft->attrs, SL_ATTR_SATURATE);
        if (to != SL_DTYPE_F8E8M0 || !sl_attrs_int(&draft->attrs, SL_ATTR_MODE, 0))
                sl_attrs_remove(&draft->attrs, SL_ATTR_MODE);
}

int sl_canonical_quantize(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        bool zero = draft->n_inputs > 2 && draft->inputs[2] != SL_VALUE_NONE;
        uint32_t dtype = zero ? im->graph->values[draft->inputs[2]].tensor.dtype : SL_DTYPE_U8;

        (void)node;
        settle_small(draft, sl_attrs_int(&draft->attrs, SL_ATTR_OUTPUT_DTYPE, dtype));
        return 0;
}

int sl_canonical_cast(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        int64_t to = 0;
        int result = 0;

        if (im->graph->opset < 6)
                return sl_canonical_type_by_name(im, node, draft);
        result = sl_onnx_copy_attr(im, node, "to", SL_ATTR_TO, &draft->attrs);
        if (result < 0)
                return result;
        to = sl_attrs_int(&draft->attrs, SL_ATTR_TO, 0);
        if (to <= 0 || to > UINT32_MAX || !sl_dtype_bytes((uint32_t)to))
                return sl_import_refuse(im, node, "the type to cast to is not supported");
        settle_small(draft, to);
        return 0;
}

/* An integer exponent of a floating base is cast to the base's type, for which there are fast kernels. */
int sl_canonical_pow(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        struct sl_draft cast = {.op = SL_OP_CAST, .n_inputs = 1, .n_outputs = 1};
        uint32_t base, exponent;
        int result;

        if (draft->n_inputs != 2 || draft->inputs[0] == SL_VALUE_NONE)
                return sl_import_wrong(im, node, "it wants two inputs");
        result = sl_canonical_broadcast(im, node, draft);
        if (result < 0)
                return result;
        base = im->graph->values[draft->inputs[0]].tensor.dtype;
        exponent = im->graph->values[draft->inputs[1]].tensor.dtype;
        if (!sl_dtype_is_float(base) || sl_dtype_is_float(exponent))
                return 0;
        cast.inputs[0] = draft->inputs[1];
        result = sl_attrs_set_int(&cast.attrs, SL_ATTR_TO, base);
        return result < 0 ? result : sl_import_emit_step(im, node, &cast, &draft->inputs[1]);
}

/* The type of input 1, whose elements do not matter. */
int sl_canonical_cast_like(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t to;

        if (draft->n_inputs != 2 || draft->inputs[1] == SL_VALUE_NONE)
                return sl_import_wrong(im, node, "it wants two inputs");
        draft->n_inputs = 1;
        to = im->graph->values[draft->inputs[1]].tensor.dtype;
        settle_small(draft, to);
        return sl_attrs_set_int(&draft->attrs, SL_ATTR_TO, to);
}

int sl_canonical_bit_shift(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        return sl_attrs_find(&draft->attrs, SL_ATTR_MODE) ? 0 : sl_import_wrong(im, node, "it wants a direction");
}

/* Nothing is dropped, so the mask is true everywhere; before opset 10 it has the type of the data. */
static int dropout_mask(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t data)
{
        struct sl_draft shape = {.op = SL_OP_SHAPE, .n_inputs = 1, .n_outputs = 1, .inputs = {data}};
        struct sl_draft mask = {.op = SL_OP_CONSTANT_OF_SHAPE, .n_inputs = 1, .n_outputs = 1};
        struct sl_symbol *symbol = node->proto->n_output > 1 ? sl_symbols_find(&im->symbols, node->proto->output[1]) : NULL;
        uint32_t dtype = im->graph->opset < 10 ? im->graph->values[data].tensor.dtype : SL_DTYPE_BOOL;
        struct sl_onnx_node named = *node;
        int result;

        if (!symbol)
                return 0;
        named.name = symbol->name;
        result = sl_import_emit_step(im, node, &shape, &mask.inputs[0]);
        if (result == 0)
                result = sl_attrs_set_int(&mask.attrs, SL_ATTR_TO, dtype);
        if (result == 0)
                result = sl_attrs_set_float(&mask.attrs, SL_ATTR_VALUE, 1);
        return result < 0 ? result : sl_import_emit_step(im, &named, &mask, &symbol->value);
}

/* Inference drops nothing. The ratio, an input since opset 12, does not matter then, nor does a training mode that is false. */
int sl_canonical_dropout(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        if (draft->n_inputs > 2) {
                const uint8_t *training = sl_graph_constant(im->graph, draft->inputs[2]);

                if (!training || im->graph->values[draft->inputs[2]].data_bytes != 1 || *training)
                        return sl_import_refuse(im, node, "training mode is not supported");
        }
        draft->n_inputs = draft->n_inputs && draft->inputs[0] != SL_VALUE_NONE;
        return draft->n_inputs ? dropout_mask(im, node, draft->inputs[0]) : 0;
}

/* MODE is the kernel's word for select_last_index. */
int sl_canonical_arg(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        return sl_onnx_copy_attr(im, node, "select_last_index", SL_ATTR_MODE, &draft->attrs);
}
