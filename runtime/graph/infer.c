/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes of a graph, node by node in order, by the shape rules of kernels/. Changes the tensors of the values and nothing else.
 * Dimensions that the rules cannot know, but import has learned, are taken from there.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "control.h"
#include "graph.h"

uint64_t sl_graph_least_bytes(const struct sl_tensor *tensor)
{
        uint64_t bytes = sl_dtype_bytes(tensor->dtype);

        for (uint32_t i = 0; i < tensor->shape.rank; i++)
                if (tensor->shape.dims[i] > 0 && sl_mul_overflows(bytes, (uint64_t)tensor->shape.dims[i], &bytes))
                        return UINT64_MAX;
        return bytes > INT64_MAX ? UINT64_MAX : bytes;
}

/* Shape rules look at the elements, of which there may be none along one dimension and too many along the others. */
static int check_outputs(const struct sl_node_desc *desc, struct sl_error *error)
{
        char text[SL_SHAPE_TEXT_BYTES];

        for (uint32_t i = 0; i < desc->n_outputs; i++)
                if (sl_graph_least_bytes(&desc->outputs[i]) == UINT64_MAX)
                        return sl_error_set(
                                error, EOVERFLOW, "output %u is too large: %s", i, sl_shape_print(&desc->outputs[i].shape, text));
        return 0;
}

static void settle_output(struct sl_value *value, const struct sl_tensor *tensor)
{
        struct sl_shape *shape = &value->tensor.shape;

        value->tensor = *tensor;
        for (uint32_t i = 0; i < shape->rank && shape->rank == value->learned.rank; i++)
                if (shape->dims[i] == SL_DIM_UNKNOWN)
                        shape->dims[i] = value->learned.dims[i];
}

int sl_graph_infer_node(struct sl_graph *graph, uint32_t index, struct sl_error *error)
{
        const struct sl_node *node = &graph->nodes[index];
        struct sl_node_desc desc;
        int result;

        if (sl_op_has_bodies(node->op))
                return sl_graph_infer_control(graph, index, error);
        result = sl_graph_describe(graph, index, &desc);

        if (result < 0)
                return sl_error_set(error, -result, "node \"%s\": more than %d inputs", node->name, SL_NODE_INPUTS_MAX);
        result = sl_op_infer(&desc, error);
        if (result == 0)
                result = check_outputs(&desc, error);
        if (result < 0)
                return sl_error_prefix(error, result, "node \"%s\" (%s)", node->name, sl_op_name(node->op));
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (node->outputs[i] != SL_VALUE_NONE)
                        settle_output(&graph->values[node->outputs[i]], &desc.outputs[i]);
        return 0;
}

int sl_graph_infer(struct sl_graph *graph, struct sl_error *error)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                int result = graph->nodes[i].dead ? 0 : sl_graph_infer_node(graph, i, error);

                if (result < 0)
                        return result;
        }
        return 0;
}
