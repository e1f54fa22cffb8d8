/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of opsets 1 to 6: broadcasting by attributes, running statistics that are switched off, types by name. */
#include "import/canonical.h"

#include <string.h>

/* Input 1 lies at @axis of input 0: dimensions of 1 behind it make that numpy's broadcast. */
static int align(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, int64_t axis)
{
        struct sl_draft unsqueeze = {.op = SL_OP_UNSQUEEZE, .n_inputs = 1, .n_outputs = 1, .inputs = {draft->inputs[1]}};
        uint32_t rank = im->graph->values[draft->inputs[0]].tensor.shape.rank;
        uint32_t less = im->graph->values[draft->inputs[1]].tensor.shape.rank, n_axes = 0;
        int64_t axes[SL_RANK_MAX] = {0};
        int result;

        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis + less > rank)
                return sl_import_wrong(im, node, "its axis is outside the rank of input 0");
        for (int64_t i = axis + less; i < rank; i++)
                axes[n_axes++] = i - axis;
        result = sl_attrs_set_ints(&unsqueeze.attrs, SL_ATTR_AXES, axes, n_axes);
        return result < 0 || !n_axes ? result : sl_import_emit_step(im, node, &unsqueeze, &draft->inputs[1]);
}

static bool has_two_inputs(const struct sl_draft *draft)
{
        return draft->n_inputs == 2 && draft->inputs[0] != SL_VALUE_NONE && draft->inputs[1] != SL_VALUE_NONE;
}

int sl_canonical_broadcast(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        int64_t broadcast = 0, axis = 0;
        int result = sl_onnx_int(im, node, "broadcast", &broadcast);

        if (result == 0)
                result = sl_onnx_int(im, node, "axis", &axis);
        if (result < 0 || !node->proto->n_attribute)
                return result;
        if (im->graph->opset >= 7)
                return sl_import_wrong(im, node, "attributes of an older opset");
        if (!broadcast || !sl_onnx_attr(node, "axis") || !has_two_inputs(draft))
                return 0;
        return align(im, node, draft, axis);
}

/* One slope for each channel; later opsets broadcast as numpy does. */
int sl_canonical_prelu(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        const struct sl_shape *slope;

        if (im->graph->opset >= 7 || !has_two_inputs(draft))
                return 0;
        slope = &im->graph->values[draft->inputs[1]].tensor.shape;
        if (im->limits->any_size && slope->rank == 1 && slope->dims[0] < 0)
                return sl_import_refuse(im, node, "one slope or one for each channel, of a size that is not known");
        if (slope->rank != 1 || slope->dims[0] == 1 || im->graph->values[draft->inputs[0]].tensor.shape.rank < 2)
                return 0;
        return align(im, node, draft, 1);
}

int sl_canonical_gemm(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        (void)draft;
        if (im->graph->opset >= 7 && sl_onnx_attr(node, "broadcast"))
                return sl_import_wrong(im, node, "attributes of an older opset");
        return 0;
}

/* The names of ONNX's enumeration, which are those of its numbers. */
static const struct {
        const char *name;
        uint32_t dtype;
} types[] = {
        {"FLOAT", SL_DTYPE_F32},
        {"DOUBLE", SL_DTYPE_F64},
        {"FLOAT16", SL_DTYPE_F16},
        {"INT8", SL_DTYPE_I8},
        {"INT16", SL_DTYPE_I16},
        {"INT32", SL_DTYPE_I32},
        {"INT64", SL_DTYPE_I64},
        {"UINT8", SL_DTYPE_U8},
        {"UINT16", SL_DTYPE_U16},
        {"UINT32", SL_DTYPE_U32},
        {"UINT64", SL_DTYPE_U64},
        {"BOOL", SL_DTYPE_BOOL},
};

int sl_canonical_type_by_name(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
                bool same = false;

                if (sl_onnx_is(node, "to", types[i].name, &same) == 0 && same)
                        return sl_attrs_set_int(&draft->attrs, SL_ATTR_TO, types[i].dtype);
        }
        return sl_import_refuse(im, node, "the type to cast to is not supported");
}
