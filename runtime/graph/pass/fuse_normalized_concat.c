/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A BatchNormalization that alone uses what a Concat along the channels makes: its kernel reads the parts where they are, so
 * nothing is joined first. Late, when those that fold into products have gone there and the others have their activation.
 */
#include "pass.h"

#include "base/error.h"
#include "graph.h"
#include "pass/match.h"

#include <string.h>

#define STATISTICS 4

static bool takes(const struct sl_graph *graph, uint32_t norm, uint32_t concat)
{
        const struct sl_node *node = &graph->nodes[concat];
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0);

        if (sl_graph_only_user(graph, node->outputs[0]) != norm || node->n_inputs + STATISTICS > SL_NODE_INPUTS_MAX)
                return false;
        return axis == 1 || axis + graph->values[node->outputs[0]].tensor.shape.rank == 1;
}

static int fuse(struct sl_graph *graph, uint32_t norm, uint32_t concat)
{
        uint32_t inputs[SL_NODE_INPUTS_MAX], n = graph->nodes[concat].n_inputs;

        memcpy(inputs, graph->nodes[concat].inputs, n * sizeof(inputs[0]));
        memcpy(inputs + n, graph->nodes[norm].inputs + 1, STATISTICS * sizeof(inputs[0]));
        graph->nodes[norm].op = SL_OP_NORMALIZED_CONCAT;
        return sl_graph_set_inputs(graph, norm, inputs, n + STATISTICS);
}

int sl_pass_fuse_normalized_concat(struct sl_graph *graph, const struct sl_pass_options *options, struct sl_error *error)
{
        (void)options;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                struct sl_node *node = &graph->nodes[i];
                uint32_t concat;
                int r;

                if (node->dead || node->op != SL_OP_BATCH_NORM || node->n_inputs != 1 + STATISTICS || node->epilogue.has_residual)
                        continue;
                concat = sl_match_made(graph, node->inputs[0], SL_OP_CONCAT);
                if (concat == SL_VALUE_NONE || !takes(graph, i, concat))
                        continue;
                r = sl_attrs_set_int(&node->attrs, SL_ATTR_AXIS, 1);
                r = r ? r : fuse(graph, i, concat);
                if (r < 0)
                        return sl_error_set(error, -r, "node \"%s\": no memory for a concatenation", node->name);
        }
        return sl_pass_remove_dead(graph, error);
}
