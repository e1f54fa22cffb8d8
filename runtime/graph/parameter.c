/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which inputs are parameters, and which attribute each becomes, is the operator table's to say (sl_op_parameter()). The node's
 * data stays input 0.
 */
#include "parameter.h"

#include "base/error.h"
#include "graph.h"
#include "ref/absorb.h"

static bool stands_as_input(const struct sl_node *node, uint32_t input)
{
        return node->inputs[input] != SL_VALUE_NONE && sl_op_parameter(node->op, input) >= 0;
}

bool sl_parameters_pending(const struct sl_node *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (stands_as_input(node, i))
                        return true;
        return false;
}

/* Pads that were constant from the start still have to meet their axes. */
static bool nothing_to_do(const struct sl_graph *graph, const struct sl_node *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (stands_as_input(node, i) && graph->values[node->inputs[i]].kind == SL_VALUE_CONSTANT)
                        return false;
        if (sl_op_traits(node->op) & SL_OP_CONTROL)
                return true;
        return node->op != SL_OP_PAD && (!node->n_inputs || node->inputs[node->n_inputs - 1] != SL_VALUE_NONE);
}

int sl_parameters_absorb(struct sl_graph *graph, uint32_t index, struct sl_error *error)
{
        static const uint8_t empty[8];
        struct sl_node *node = &graph->nodes[index];
        const void *data[SL_NODE_INPUTS_MAX] = {0};
        struct sl_node_desc desc;
        int result;

        if (nothing_to_do(graph, node))
                return 0;
        result = sl_graph_describe(graph, index, &desc);
        if (result < 0)
                return sl_error_set(error, -result, "node \"%s\": more than %d inputs", node->name, SL_NODE_INPUTS_MAX);
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                data[i] = sl_graph_constant(graph, node->inputs[i]);
                if (!data[i] && node->inputs[i] != SL_VALUE_NONE && graph->values[node->inputs[i]].kind == SL_VALUE_CONSTANT)
                        data[i] = empty;
        }
        result = sl_op_absorb(&desc, data, error);
        if (result < 0)
                return sl_error_prefix(error, result, "node \"%s\" (%s)", node->name, sl_op_name(node->op));
        node->attrs = desc.attrs;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (i >= desc.n_inputs || desc.inputs[i].dtype == SL_DTYPE_NONE)
                        node->inputs[i] = SL_VALUE_NONE;
        node->n_inputs = desc.n_inputs;
        return 0;
}
