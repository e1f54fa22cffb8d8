/* SPDX-License-Identifier: Apache-2.0 */
/* One walk backwards from the outputs: in topological order, whoever uses a value has been seen before its producer. */
#include "pass.h"

#include "base/error.h"
#include "graph.h"

#include <stdlib.h>

static bool makes_needed(const struct sl_node *node, const uint8_t *needed)
{
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (node->outputs[i] != SL_VALUE_NONE && needed[node->outputs[i]])
                        return true;
        return false;
}

static void mark(const uint32_t *values, uint32_t n, uint8_t *needed)
{
        for (uint32_t i = 0; i < n; i++)
                if (values[i] != SL_VALUE_NONE)
                        needed[values[i]] = 1;
}

int sl_pass_remove_dead(struct sl_graph *graph, struct sl_error *error)
{
        uint8_t *needed = calloc(graph->n_values + 1, 1);

        if (!needed)
                return sl_error_set(error, ENOMEM, "no memory for %u values", graph->n_values);
        mark(graph->outputs, graph->n_outputs, needed);
        mark(graph->inputs, graph->n_inputs, needed);
        for (uint32_t i = graph->n_nodes; i-- > 0;) {
                struct sl_node *node = &graph->nodes[i];

                if (node->dead)
                        continue;
                if (makes_needed(node, needed)) {
                        mark(node->inputs, node->n_inputs, needed);
                        /* The further outputs of a node that lives live with it. */
                        mark(node->outputs, node->n_outputs, needed);
                } else {
                        node->dead = 1;
                }
        }
        for (uint32_t i = 0; i < graph->n_values; i++)
                graph->values[i].dead = !needed[i];
        free(needed);
        return 0;
}
