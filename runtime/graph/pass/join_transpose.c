/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reshapes that only got in the way. [N,H,S,D] -Reshape-> [N*H,S,D] -Transpose-> [N*H,D,S] -Reshape-> [N,H,D,S] is one Transpose,
 * and a Reshape to the shape that is there is nothing: scaled dot product attention is exported so. While batch and heads are one
 * dimension the batch is lost to inference, and with it every pass that compares shapes; so shapes are inferred anew behind.
 */
#include "pass.h"

#include "base/error.h"
#include "graph.h"
#include "pass/match.h"

static const struct sl_shape *shape_of(const struct sl_graph *graph, uint32_t value)
{
        return &graph->values[value].tensor.shape;
}

/* The list of a Reshape that has its shape at hand, of @count dimensions; NULL. */
static const int64_t *wanted_shape(const struct sl_node *node, uint32_t count)
{
        const struct sl_attr *shape = sl_attrs_find(&node->attrs, SL_ATTR_SHAPE);

        return node->op == SL_OP_RESHAPE && node->n_inputs == 1 && shape && shape->count == count ? shape->ints : NULL;
}

static bool turns_the_last_two(const struct sl_node *node)
{
        return sl_attrs_ints(&node->attrs, SL_ATTR_PERM, 0, -1) == 0 && sl_attrs_ints(&node->attrs, SL_ATTR_PERM, 1, -1) == 2 &&
               sl_attrs_ints(&node->attrs, SL_ATTR_PERM, 2, -1) == 1;
}

/* What the Reshape that merges the first two dimensions read, or SL_VALUE_NONE. */
static uint32_t before_merge(const struct sl_graph *graph, uint32_t merged)
{
        uint32_t merge = sl_match_made(graph, merged, SL_OP_RESHAPE);
        const struct sl_shape *in, *out = shape_of(graph, merged);

        if (merge == SL_VALUE_NONE || !wanted_shape(&graph->nodes[merge], 3) || out->rank != 3)
                return SL_VALUE_NONE;
        in = shape_of(graph, graph->nodes[merge].inputs[0]);
        if (in->rank != 4 || in->dims[1] < 1 || in->dims[2] < 1 || in->dims[3] < 1 || in->dims[2] != out->dims[1] ||
                in->dims[3] != out->dims[2])
                return SL_VALUE_NONE;
        return graph->nodes[merge].inputs[0];
}

/* The last Reshape of the three, if it is: what the first one read. */
static uint32_t turned_rows(const struct sl_graph *graph, const struct sl_node *split)
{
        const int64_t *wanted = wanted_shape(split, 4);
        uint32_t turn = wanted ? sl_match_made(graph, split->inputs[0], SL_OP_TRANSPOSE) : SL_VALUE_NONE, rows;
        const struct sl_shape *in;

        if (turn == SL_VALUE_NONE || shape_of(graph, split->inputs[0])->rank != 3 || !turns_the_last_two(&graph->nodes[turn]))
                return SL_VALUE_NONE;
        rows = before_merge(graph, graph->nodes[turn].inputs[0]);
        if (rows == SL_VALUE_NONE)
                return SL_VALUE_NONE;
        in = shape_of(graph, rows);
        if ((wanted[0] != -1 && (wanted[0] < 1 || wanted[0] != in->dims[0])) || wanted[1] != in->dims[1] ||
                wanted[2] != in->dims[3] || wanted[3] != in->dims[2])
                return SL_VALUE_NONE;
        return rows;
}

/* All dimensions are those that are there; one may be left to be what remains. */
static bool is_idle(const struct sl_graph *graph, const struct sl_node *node)
{
        const struct sl_shape *in = shape_of(graph, node->inputs[0]);
        const int64_t *wanted = wanted_shape(node, in->rank);
        bool zero = sl_attrs_int(&node->attrs, SL_ATTR_ALLOW_ZERO, 0);
        uint32_t open = 0;

        for (uint32_t i = 0; wanted && i < in->rank; i++) {
                if (wanted[i] == -1 && open++ == 0)
                        continue;
                if (wanted[i] == 0 && !zero)
                        continue;
                if (wanted[i] < 1 || wanted[i] != in->dims[i])
                        return false;
        }
        return wanted && in->rank > 0;
}

/* Return: 1 the node has become something else, 0; -ENOMEM. */
static int simplify(struct sl_graph *graph, uint32_t index)
{
        static const int64_t perm[] = {0, 1, 3, 2};
        const struct sl_node *node = &graph->nodes[index];
        uint32_t rows = turned_rows(graph, node);
        int r;

        if (rows != SL_VALUE_NONE) {
                r = sl_match_become(graph, index, SL_OP_TRANSPOSE, &rows, 1);
                r = r < 0 ? r : sl_attrs_set_ints(&graph->nodes[index].attrs, SL_ATTR_PERM, perm, 4);
        } else {
                if (node->op != SL_OP_RESHAPE || !is_idle(graph, node))
                        return 0;
                r = sl_match_become(graph, index, SL_OP_IDENTITY, (const uint32_t[]){node->inputs[0]}, 1);
        }
        return r < 0 ? r : 1;
}

int sl_pass_join_transpose(struct sl_graph *graph, struct sl_error *error)
{
        bool changed = false;

        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                int r = graph->nodes[i].dead || !changed ? 0 : sl_graph_infer_node(graph, i, error);

                if (r < 0)
                        return r;
                r = graph->nodes[i].dead ? 0 : simplify(graph, i);
                if (r < 0)
                        return sl_error_set(error, -r, "no memory for a graph of %u nodes", graph->n_nodes);
                if (r == 0)
                        continue;
                changed = true;
                r = sl_graph_infer_node(graph, i, error);
                if (r < 0)
                        return r;
        }
        return changed ? sl_pass_remove_dead(graph, error) : 0;
}
