/* SPDX-License-Identifier: Apache-2.0 */
#include "broadcast.h"

#include "graph.h"
#include "op.h"

#include <stdbool.h>

static const struct sl_shape *shape_of(const struct sl_graph *graph, uint32_t value)
{
        return &graph->values[value].tensor.shape;
}

static bool broadcasts(const struct sl_node *node)
{
        return sl_op_traits(node->op) & SL_OP_ELEMENTWISE && node->n_inputs > 1 && node->n_outputs == 1 && node->op != SL_OP_CLIP;
}

/* What the Expand that makes @value repeats, if it is of the same rank; else SL_VALUE_NONE. */
static uint32_t before_expand(const struct sl_graph *graph, uint32_t value)
{
        uint32_t node = sl_graph_producer(graph, value), from;

        if (node == SL_VALUE_NONE || graph->nodes[node].op != SL_OP_EXPAND)
                return SL_VALUE_NONE;
        from = graph->nodes[node].inputs[0];
        if (shape_of(graph, from)->rank != shape_of(graph, value)->rank ||
                sl_shape_equal(shape_of(graph, from), shape_of(graph, value)))
                return SL_VALUE_NONE;
        return from;
}

/* Of the output's dimensions, counted from the first; 1 where the operand has none. */
static int64_t size_of(const struct sl_shape *shape, uint32_t rank, uint32_t dimension)
{
        uint32_t missing = rank - shape->rank;

        return dimension < missing ? 1 : shape->dims[dimension - missing];
}

/*
 * With @from in the place of what is expanded, wherever the node reads that. Whether the output is as large in each dimension does
 * not depend on how many samples there are.
 */
static bool reaches_the_shape(const struct sl_graph *graph, const struct sl_node *node, uint32_t expanded, uint32_t from)
{
        const struct sl_shape *out = shape_of(graph, node->outputs[0]);

        for (uint32_t d = 0; d < out->rank; d++) {
                bool reached = out->dims[d] == 1;

                for (uint32_t i = 0; i < node->n_inputs && !reached; i++)
                        reached = node->inputs[i] != SL_VALUE_NONE &&
                                  size_of(shape_of(graph, node->inputs[i] == expanded ? from : node->inputs[i]), out->rank, d) ==
                                          out->dims[d];
                if (!reached)
                        return false;
        }
        return true;
}

void sl_broadcast_skip_expands(struct sl_graph *graph, uint32_t index)
{
        const struct sl_node *node = &graph->nodes[index];

        if (!broadcasts(node) || !sl_node_is_static(graph, node))
                return;
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                uint32_t from = node->inputs[i] == SL_VALUE_NONE ? SL_VALUE_NONE : before_expand(graph, node->inputs[i]);

                if (from != SL_VALUE_NONE && reaches_the_shape(graph, node, node->inputs[i], from))
                        sl_graph_set_input(graph, index, i, from);
        }
}
