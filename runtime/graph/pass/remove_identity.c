/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identity, Cast to the same type, a Transpose that leaves all axes where they are, and one that undoes the one before it. Whoever
 * used the output uses the input. An output of the graph keeps its name: then the producer of the input makes the output itself.
 */
#include "pass.h"

#include "graph.h"

/* Axis @i of the output is this axis of the input; without a list the order is reversed. */
static int64_t source_axis(const struct sl_node *node, uint32_t i, uint32_t rank)
{
        return sl_attrs_ints(&node->attrs, SL_ATTR_PERM, i, (int64_t)rank - 1 - i);
}

static bool turns_nothing(const struct sl_node *node, uint32_t rank)
{
        for (uint32_t i = 0; i < rank; i++)
                if (source_axis(node, i, rank) != i)
                        return false;
        return true;
}

static bool changes_nothing(const struct sl_graph *graph, const struct sl_node *node)
{
        const struct sl_tensor *in = &graph->values[node->inputs[0]].tensor;

        switch (node->op) {
        case SL_OP_IDENTITY:
                return true;
        case SL_OP_CAST:
                return in->dtype == graph->values[node->outputs[0]].tensor.dtype;
        case SL_OP_TRANSPOSE:
                return turns_nothing(node, in->shape.rank);
        default:
                return false;
        }
}

static bool undoes(const struct sl_graph *graph, const struct sl_node *first, const struct sl_node *second)
{
        uint32_t rank = graph->values[first->inputs[0]].tensor.shape.rank;

        for (uint32_t i = 0; i < rank; i++) {
                int64_t middle = source_axis(second, i, rank);

                if (middle < 0 || middle >= rank || source_axis(first, (uint32_t)middle, rank) != i)
                        return false;
        }
        return true;
}

/* The value that the node's output is equal to, or SL_VALUE_NONE. */
static uint32_t same_value(const struct sl_graph *graph, const struct sl_node *node)
{
        uint32_t producer;

        if (!node->n_inputs || node->inputs[0] == SL_VALUE_NONE)
                return SL_VALUE_NONE;
        if (changes_nothing(graph, node))
                return node->inputs[0];
        if (node->op != SL_OP_TRANSPOSE)
                return SL_VALUE_NONE;
        producer = sl_graph_producer(graph, node->inputs[0]);
        if (producer == SL_VALUE_NONE || graph->nodes[producer].op != SL_OP_TRANSPOSE)
                return SL_VALUE_NONE;
        return undoes(graph, &graph->nodes[producer], node) ? graph->nodes[producer].inputs[0] : SL_VALUE_NONE;
}

static void rename_output(struct sl_graph *graph, uint32_t producer, uint32_t from, uint32_t to)
{
        for (uint32_t i = 0; i < graph->nodes[producer].n_outputs; i++)
                if (graph->nodes[producer].outputs[i] == from)
                        sl_graph_set_output(graph, producer, i, to);
        sl_graph_replace_inputs(graph, from, to);
        graph->values[from].dead = 1;
}

static void remove_node(struct sl_graph *graph, uint32_t index, uint32_t same)
{
        struct sl_node *node = &graph->nodes[index];
        uint32_t output = node->outputs[0], producer;

        if (!sl_graph_is_output(graph, output)) {
                sl_graph_replace_inputs(graph, output, same);
        } else {
                producer = sl_graph_producer(graph, same);
                /* An input, a constant or another output cannot become this output: the node stays. */
                if (producer == SL_VALUE_NONE || sl_graph_is_output(graph, same))
                        return;
                node->dead = 1;
                rename_output(graph, producer, same, output);
                return;
        }
        node->dead = 1;
        graph->values[output].dead = 1;
}

int sl_pass_remove_identity(struct sl_graph *graph, struct sl_error *error)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                uint32_t same = graph->nodes[i].dead ? SL_VALUE_NONE : same_value(graph, &graph->nodes[i]);

                if (same != SL_VALUE_NONE)
                        remove_node(graph, i, same);
        }
        /* A Transpose that was undone may have no user left, and would hide from later passes that its input has only one. */
        return sl_pass_remove_dead(graph, error);
}
