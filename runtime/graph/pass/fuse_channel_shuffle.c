/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reshape to [N, G, C / G, ...], Transpose of the two in the middle, Reshape back: the channels are shuffled, which becomes one
 * node that runs in any layout. A Concat before it and a Split behind it, both along the channels and used by nobody else, go into
 * it. Late, so that the passes that look for those have seen them.
 */
#include "pass.h"

#include "base/error.h"
#include "graph.h"
#include "pass/match.h"
#include "shape/rules.h"

#include <string.h>

struct shuffle {
        uint32_t input, last; /* the value that is shuffled; the node that is replaced */
        int64_t group;
        uint32_t n_inputs, n_outputs;
        uint32_t inputs[SL_NODE_INPUTS_MAX];
        int64_t split[SL_NODE_OUTPUTS_MAX];
};

static const struct sl_shape *shape_of(const struct sl_graph *graph, uint32_t value)
{
        return &graph->values[value].tensor.shape;
}

/* @split is @whole with its channels in two dimensions; everything else stays, the batch too. */
static bool splits_channels(const struct sl_shape *whole, const struct sl_shape *split)
{
        if (whole->rank < 3 || split->rank != whole->rank + 1 || !sl_dim_known(split->dims[1]) || !sl_dim_known(split->dims[2]))
                return false;
        for (uint32_t i = 0; i < whole->rank; i++)
                if (i != 1 && (whole->dims[i] == SL_DIM_UNKNOWN || whole->dims[i] != split->dims[i + (i > 0)]))
                        return false;
        return split->dims[1] > 0 && whole->dims[1] == split->dims[1] * split->dims[2];
}

static bool swaps_groups(const struct sl_node *transpose, uint32_t rank)
{
        const struct sl_attr *perm = sl_attrs_find(&transpose->attrs, SL_ATTR_PERM);

        if (!perm || perm->count != rank)
                return false;
        for (uint32_t i = 0; i < rank; i++)
                if (perm->ints[i] != (i == 1 ? 2 : i == 2 ? 1 : (int64_t)i))
                        return false;
        return true;
}

static bool match(const struct sl_graph *graph, uint32_t last, struct shuffle *s)
{
        uint32_t transpose = sl_match_made(graph, graph->nodes[last].inputs[0], SL_OP_TRANSPOSE), first;
        const struct sl_shape *whole, *split;

        if (transpose == SL_VALUE_NONE)
                return false;
        first = sl_match_made(graph, graph->nodes[transpose].inputs[0], SL_OP_RESHAPE);
        if (first == SL_VALUE_NONE)
                return false;
        s->input = graph->nodes[first].inputs[0];
        whole = shape_of(graph, s->input);
        split = shape_of(graph, graph->nodes[first].outputs[0]);
        if (!splits_channels(whole, split) || !swaps_groups(&graph->nodes[transpose], split->rank) ||
                !sl_shape_equal(whole, shape_of(graph, graph->nodes[last].outputs[0])))
                return false;
        *s = (struct shuffle){.input = s->input, .last = last, .group = split->dims[1], .n_inputs = 1, .n_outputs = 1};
        s->inputs[0] = s->input;
        s->split[0] = whole->dims[1];
        return sl_graph_only_user(graph, graph->nodes[first].outputs[0]) == transpose &&
               sl_graph_only_user(graph, graph->nodes[transpose].outputs[0]) == last;
}

static bool is_along_channels(const struct sl_graph *graph, const struct sl_node *node)
{
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0);

        return axis == 1 || axis + shape_of(graph, node->inputs[0])->rank == 1;
}

/* One input for each group: then the groups need not be put side by side first. */
static void take_concat(const struct sl_graph *graph, struct shuffle *s)
{
        uint32_t concat = sl_match_made(graph, s->input, SL_OP_CONCAT), users[2];
        const struct sl_node *node;

        if (concat == SL_VALUE_NONE || sl_graph_users(graph, s->input, users, 2) != 1 || sl_graph_is_output(graph, s->input))
                return;
        node = &graph->nodes[concat];
        if (node->n_inputs != s->group || !is_along_channels(graph, node))
                return;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (shape_of(graph, node->inputs[i])->dims[1] * s->group != shape_of(graph, s->input)->dims[1])
                        return;
        s->n_inputs = node->n_inputs;
        memcpy(s->inputs, node->inputs, node->n_inputs * sizeof(s->inputs[0]));
}

static void take_split(const struct sl_graph *graph, struct shuffle *s)
{
        uint32_t split = sl_graph_only_user(graph, graph->nodes[s->last].outputs[0]);
        const struct sl_node *node = split == SL_VALUE_NONE ? NULL : &graph->nodes[split];

        if (!node || node->op != SL_OP_SPLIT || node->n_inputs != 1 || !is_along_channels(graph, node))
                return;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (node->outputs[i] == SL_VALUE_NONE || !sl_dim_known(shape_of(graph, node->outputs[i])->dims[1]))
                        return;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                s->split[i] = shape_of(graph, node->outputs[i])->dims[1];
        s->n_outputs = node->n_outputs;
        s->last = split;
}

static int rewrite(struct sl_graph *graph, const struct shuffle *s)
{
        struct sl_attrs *attrs = &graph->nodes[s->last].attrs;
        int r = sl_match_become(graph, s->last, SL_OP_CHANNEL_SHUFFLE, s->inputs, s->n_inputs);

        r = r ? r : sl_attrs_set_int(attrs, SL_ATTR_AXIS, 1);
        r = r ? r : sl_attrs_set_int(attrs, SL_ATTR_GROUP, s->group);
        return r ? r : sl_attrs_set_ints(attrs, SL_ATTR_SPLIT, s->split, s->n_outputs);
}

int sl_pass_fuse_channel_shuffle(struct sl_graph *graph, const struct sl_pass_options *options, struct sl_error *error)
{
        (void)options;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                struct shuffle s;

                if (graph->nodes[i].dead || graph->nodes[i].op != SL_OP_RESHAPE || !match(graph, i, &s))
                        continue;
                take_concat(graph, &s);
                take_split(graph, &s);
                if (rewrite(graph, &s) < 0)
                        return sl_error_set(error, ENOMEM, "node \"%s\": no memory for a shuffle", graph->nodes[s.last].name);
        }
        return sl_pass_remove_dead(graph, error);
}
