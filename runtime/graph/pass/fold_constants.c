/* Nodes whose inputs are all constant become constants; parameters that are constant by then become attributes. */
#include "pass.h"

#include "fold.h"
#include "graph.h"
#include "parameter.h"

int sl_pass_fold_constants(struct sl_graph *graph, struct sl_error *error)
{
        struct sl_fold_budget budget = sl_fold_budget_of(graph);

        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                int result = graph->nodes[i].dead ? 0 : sl_parameters_absorb(graph, i, error);

                if (result == 0 && !graph->nodes[i].dead)
                        result = sl_graph_infer_node(graph, i, error);
                if (result == 0)
                        result = sl_fold_node(graph, i, &budget, error);
                if (result < 0)
                        return result;
        }
        return 0;
}
