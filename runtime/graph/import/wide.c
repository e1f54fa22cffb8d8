/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes with more inputs or outputs than a node of the graph has room for. A sum, a concatenation, a maximum or a minimum of many
 * is one of some, and so on; a Split into many is a Slice for each part.
 */
#include "import/importer.h"

#include <string.h>

bool sl_import_is_wide(uint32_t op, const Onnx__NodeProto *proto)
{
        switch (op) {
        case SL_OP_CONCAT:
        case SL_OP_SUM:
        case SL_OP_MAX:
        case SL_OP_MIN:
                return proto->n_input > SL_NODE_INPUTS_MAX;
        case SL_OP_SPLIT:
                return proto->n_output > SL_NODE_OUTPUTS_MAX;
        default:
                return false;
        }
}

/* No attribute may be there that the functions below do not read. */
static int check_attrs(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t op)
{
        for (size_t i = 0; i < node->proto->n_attribute; i++) {
                const char *name = node->proto->attribute[i]->name ? node->proto->attribute[i]->name : "";
                bool axis = (op == SL_OP_CONCAT || op == SL_OP_SPLIT) && !strcmp(name, "axis");
                bool parts = op == SL_OP_SPLIT && (!strcmp(name, "split") || !strcmp(name, "num_outputs"));

                if (!axis && !parts)
                        return sl_import_refuse(im, node, "an attribute that it does not have");
        }
        return 0;
}

static int find_input(struct sl_importer *im, const struct sl_onnx_node *node, size_t index, uint32_t *ret_value)
{
        const struct sl_symbol *symbol = sl_symbols_find(&im->symbols, node->proto->input[index]);

        if (!symbol || symbol->value == SL_VALUE_NONE)
                return sl_import_refuse(im, node, "an input is missing, or an output that Starling does not compute");
        *ret_value = symbol->value;
        return sl_vocabulary_of(im, symbol->value) ? sl_import_refuse(im, node, "it works on strings") : 0;
}

static int read_axis(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t op, struct sl_attrs *attrs)
{
        int64_t axis = op == SL_OP_CONCAT && im->graph->opset < 4;
        int result = sl_onnx_int(im, node, "axis", &axis);

        if (result < 0 || (op != SL_OP_CONCAT && op != SL_OP_SPLIT))
                return result;
        return sl_attrs_set_int(attrs, SL_ATTR_AXIS, axis);
}

static int join(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t op)
{
        struct sl_draft draft = {.op = op, .n_outputs = 1};
        size_t n = node->proto->n_input, next = 0;
        int result = read_axis(im, node, op, &draft.attrs);

        while (result == 0 && next < n) {
                uint32_t joined;

                while (result == 0 && next < n && draft.n_inputs < SL_NODE_INPUTS_MAX)
                        result = find_input(im, node, next++, &draft.inputs[draft.n_inputs++]);
                if (result < 0 || next == n)
                        break;
                result = sl_import_emit_step(im, node, &draft, &joined);
                draft.inputs[0] = joined;
                draft.n_inputs = 1;
        }
        return result < 0 ? result : sl_import_emit_last(im, node, &draft);
}

/* Where the parts end: a list of the file, or of a constant, or equal ones. */
struct parts {
        const int64_t *sizes; /* NULL: equal ones of @each */
        int64_t each;
        size_t n;
        int64_t axis;
};

static int read_parts(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t data, struct parts *parts)
{
        const struct sl_shape *shape = &im->graph->values[data].tensor.shape;
        const Onnx__AttributeProto *split = sl_onnx_attr(node, "split");
        size_t n_sizes = split ? split->n_ints : 0;
        int64_t dim;

        parts->axis += parts->axis < 0 ? shape->rank : 0;
        if (parts->axis < 0 || parts->axis >= shape->rank)
                return sl_import_wrong(im, node, "its axis is outside the rank of input 0");
        dim = shape->dims[parts->axis];
        parts->sizes = split ? split->ints : NULL;
        if (node->proto->n_input > 1) {
                uint32_t sizes = SL_VALUE_NONE;
                int result = find_input(im, node, 1, &sizes);

                if (result < 0)
                        return result;
                parts->sizes = sl_graph_constant(im->graph, sizes);
                n_sizes = sl_shape_elements(&im->graph->values[sizes].tensor.shape);
                if (!parts->sizes || im->graph->values[sizes].tensor.dtype != SL_DTYPE_I64)
                        return sl_import_refuse(im, node, "more than 16 parts whose sizes are no constant");
        }
        if (parts->sizes && n_sizes != parts->n)
                return sl_import_wrong(im, node, "there are not as many sizes as outputs");
        if (!parts->sizes && dim < 0)
                return sl_import_refuse(im, node, "more than 16 equal parts of a dimension that is open");
        parts->each = parts->sizes ? 0 : dim / (int64_t)parts->n + (dim % (int64_t)parts->n != 0);
        return 0;
}

static int cut(struct sl_importer *im, const struct sl_onnx_node *node, size_t output, uint32_t data, int64_t axis, int64_t start,
        int64_t end)
{
        struct sl_symbol *symbol = sl_symbols_find(&im->symbols, node->proto->output[output]);
        struct sl_draft slice = {.op = SL_OP_SLICE, .n_inputs = 1, .n_outputs = 1, .inputs = {data}};
        struct sl_onnx_node named = *node;
        int result = sl_attrs_set_ints(&slice.attrs, SL_ATTR_STARTS, &start, 1);

        if (result == 0)
                result = sl_attrs_set_ints(&slice.attrs, SL_ATTR_ENDS, &end, 1);
        if (result == 0)
                result = sl_attrs_set_ints(&slice.attrs, SL_ATTR_AXES, &axis, 1);
        if (result < 0 || !symbol)
                return result;
        named.name = symbol->name;
        return sl_import_emit_step(im, &named, &slice, &symbol->value);
}

static int split(struct sl_importer *im, const struct sl_onnx_node *node)
{
        struct parts parts = {.n = node->proto->n_output};
        uint32_t data = SL_VALUE_NONE;
        int64_t start = 0, dim;
        int result = node->proto->n_input ? find_input(im, node, 0, &data) : sl_import_wrong(im, node, "it wants an input");

        if (result == 0)
                result = sl_onnx_int(im, node, "axis", &parts.axis);
        if (result == 0)
                result = read_parts(im, node, data, &parts);
        if (result < 0)
                return result;
        dim = im->graph->values[data].tensor.shape.dims[parts.axis];
        for (size_t i = 0; i < parts.n && result == 0; i++) {
                int64_t size = parts.sizes ? parts.sizes[i] : parts.each;

                if (size < 0 || size > INT64_MAX - start)
                        return sl_import_wrong(im, node, "a part has a negative size, or all together too large a one");
                result = cut(im, node, i, data, parts.axis, start, start + size);
                start += size;
        }
        if (result == 0 && dim >= 0 && (parts.sizes ? start != dim : start < dim || start - dim > parts.each))
                return sl_import_misfit(im, node, "its parts do not add up to the dimension");
        return result;
}

int sl_import_wide(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t op)
{
        int result = check_attrs(im, node, op);

        if (result < 0)
                return result;
        return op == SL_OP_SPLIT ? split(im, node) : join(im, node, op);
}
