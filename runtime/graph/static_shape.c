/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known before anything runs. Pure; any thread.
 */
#include "control.h"
#include "graph.h"
#include "parameter.h"

bool sl_node_is_static(const struct sl_graph *graph, const struct sl_node *node)
{
        if (sl_op_has_bodies(node->op) || sl_parameters_pending(node))
                return false;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i] != SL_VALUE_NONE && !sl_shape_is_static(&graph->values[node->inputs[i]].tensor.shape))
                        return false;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (node->outputs[i] != SL_VALUE_NONE && !sl_shape_is_static(&graph->values[node->outputs[i]].tensor.shape))
                        return false;
        return true;
}

bool sl_graph_is_static(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i].dead && !sl_node_is_static(graph, &graph->nodes[i]))
                        return false;
        return true;
}
