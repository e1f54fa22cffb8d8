/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A branch of an If that contradicts itself for the sizes of the inputs: exporters put networks for several rates of sampling into
 * one file, of which one fits. The file is served as long as nobody asks for it: in its place stands a branch that makes what the
 * other one makes, but reads beyond the end of a tensor on the way, whatever the data, so that the run ends with -ERANGE.
 */
#include "import/importer.h"

#include <string.h>

/* Adds a node of one output, with its shape. */
static int add(struct sl_error *error, struct sl_graph *graph, const char *name, uint32_t op, const uint32_t *inputs,
        uint32_t n_inputs, uint32_t id, const int64_t *ints, uint32_t n_ints, uint32_t *ret_value)
{
        const struct sl_tensor nothing = {0};
        uint32_t node, value;
        int result = sl_graph_add_value(graph, name, SL_VALUE_COMPUTED, &nothing, &value);

        if (result == 0)
                result = sl_graph_add_node(graph, op, name, inputs, n_inputs, &value, 1, &node);
        if (result == 0 && ints)
                result = sl_attrs_set_ints(&graph->nodes[node].attrs, id, ints, n_ints);
        if (result == 0 && op == SL_OP_GATHER)
                result = sl_attrs_set_int(&graph->nodes[node].attrs, SL_ATTR_AXIS, 0);
        if (result == 0)
                result = sl_graph_infer_node(graph, node, error);
        if (result == 0)
                *ret_value = value;
        return result;
}

static int add_constant(struct sl_graph *graph, uint32_t dtype, int64_t value, uint32_t *ret_value)
{
        const struct sl_tensor tensor = {.dtype = dtype, .shape = {.rank = 1, .dims = {1}}};
        int64_t *data = sl_graph_alloc(graph, sizeof(*data));

        if (!data)
                return -ENOMEM;
        *data = value;
        return sl_graph_add_constant(graph, "impossible", &tensor, data, ret_value);
}

/* Where the greatest element is, and one more: beyond the end of a tensor of one element. */
static int add_index(struct sl_error *error, struct sl_graph *graph, const char *name, uint32_t input, uint32_t *ret_index)
{
        static const int64_t flat = -1;
        uint32_t sum[2];
        int result = add(error, graph, name, SL_OP_RESHAPE, &input, 1, SL_ATTR_SHAPE, &flat, 1, &sum[0]);

        if (result == 0)
                result = add(error, graph, name, SL_OP_ARG_MAX, &sum[0], 1, 0, NULL, 0, &sum[0]);
        if (result == 0)
                result = add_constant(graph, SL_DTYPE_I64, 1, &sum[1]);
        return result < 0 ? result : add(error, graph, name, SL_OP_ADD, sum, 2, 0, NULL, 0, ret_index);
}

static int add_output(struct sl_error *error, struct sl_graph *graph, const char *name, uint32_t index,
        const struct sl_tensor *like, uint32_t *ret_value)
{
        int64_t elements = (int64_t)sl_shape_elements(&like->shape);
        uint32_t pair[2] = {0, index}, value;
        int result = add_constant(graph, like->dtype, 0, &pair[0]);

        if (result == 0)
                result = add(error, graph, name, SL_OP_GATHER, pair, 2, 0, NULL, 0, &value);
        if (result == 0)
                result = add(error, graph, name, SL_OP_EXPAND, &value, 1, SL_ATTR_SHAPE, &elements, 1, &value);
        return result < 0 ? result
                          : add(error, graph, name, SL_OP_RESHAPE, &value, 1, SL_ATTR_SHAPE, like->shape.dims, like->shape.rank,
                                    ret_value);
}

static bool is_number(const struct sl_tensor *tensor)
{
        return tensor->dtype != SL_DTYPE_BOOL && sl_shape_is_static(&tensor->shape) && sl_shape_elements(&tensor->shape) > 0;
}

bool sl_import_can_fail_like(const struct sl_graph *other, const struct sl_captures *captures, uint32_t *ret_capture)
{
        for (uint32_t i = 0; i < other->n_outputs; i++)
                if (!sl_shape_is_static(&other->values[other->outputs[i]].tensor.shape))
                        return false;
        for (*ret_capture = 0; *ret_capture < captures->n; ++*ret_capture)
                if (is_number(&other->values[captures->items[*ret_capture].value].tensor))
                        return true;
        return false;
}

int sl_import_fail_like(const struct sl_graph *other, const char *name, struct sl_capture *capture, struct sl_graph **ret_graph,
        struct sl_error *error)
{
        const struct sl_value *read = &other->values[capture->value];
        uint32_t outputs[SL_NODE_OUTPUTS_MAX], index, input;
        struct sl_graph *graph;
        int result = other->n_outputs > SL_NODE_OUTPUTS_MAX ? -E2BIG : sl_graph_new(&graph);

        if (result < 0)
                return result;
        graph->opset = other->opset;
        result = sl_graph_add_value(graph, read->name, SL_VALUE_INPUT, &read->tensor, &input);
        if (result == 0)
                result = add_index(error, graph, name, input, &index);
        for (uint32_t i = 0; i < other->n_outputs && result == 0; i++)
                result = add_output(error, graph, name, index, &other->values[other->outputs[i]].tensor, &outputs[i]);
        if (result == 0)
                result = sl_graph_set_ports(graph, NULL, 0, outputs, other->n_outputs);
        if (result < 0) {
                sl_graph_free(graph);
                return result;
        }
        capture->value = input;
        *ret_graph = graph;
        return 0;
}
