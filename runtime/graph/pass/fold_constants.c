/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes whose inputs are all constant become constants; parameters that are constant by then become attributes. Dequantized weights
 * wait until the passes that look for them are through.
 */
#include "pass.h"

#include "fold.h"
#include "graph.h"
#include "parameter.h"

static int fold(struct sl_graph *graph, bool weights, struct sl_error *error)
{
        struct sl_fold_budget budget = sl_fold_budget_of(graph);

        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                bool waits = (graph->nodes[i].op == SL_OP_DEQUANTIZE_LINEAR) != weights;
                int result = graph->nodes[i].dead ? 0 : sl_parameters_absorb(graph, i, error);

                if (result == 0 && !graph->nodes[i].dead)
                        result = sl_graph_infer_node(graph, i, error);
                if (result == 0 && !waits)
                        result = sl_fold_node(graph, i, &budget, error);
                if (result < 0)
                        return result;
        }
        return 0;
}

int sl_pass_fold_constants(struct sl_graph *graph, struct sl_error *error)
{
        return fold(graph, false, error);
}

int sl_pass_fold_weights(struct sl_graph *graph, const struct sl_pass_options *options, struct sl_error *error)
{
        (void)options;
        return fold(graph, true, error);
}
