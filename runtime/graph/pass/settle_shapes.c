/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Reshape by what Shape says of its own input, with numbers between, becomes one by a list: 0 stands for a dimension that stays.
 * Exporters write it so that it holds for all sizes. In a graph of any size the numbers would else be known to a run alone, and to
 * no pass. Shapes are inferred anew behind the first of them.
 */
#include "pass.h"

#include "base/error.h"
#include "graph.h"
#include "pass/open_dims.h"

/* Return: 1 it has a list now; 0; -ENOMEM. */
static int settle(struct sl_graph *graph, const struct sl_open_dims *dims, uint32_t index)
{
        struct sl_node *node = &graph->nodes[index];
        int64_t list[SL_RANK_MAX];
        uint32_t n;
        int r;

        if (node->op != SL_OP_RESHAPE || node->n_inputs != 2 || node->inputs[1] == SL_VALUE_NONE ||
                sl_attrs_int(&node->attrs, SL_ATTR_ALLOW_ZERO, 0))
                return 0;
        n = sl_open_dims_list(dims, node->inputs[0], node->inputs[1], list);
        if (!n)
                return 0;
        r = sl_attrs_set_ints(&node->attrs, SL_ATTR_SHAPE, list, n);
        if (r == 0)
                r = sl_graph_set_inputs(graph, index, (uint32_t[]){node->inputs[0]}, 1);
        return r < 0 ? r : 1;
}

int sl_pass_settle_shapes(struct sl_graph *graph, struct sl_error *error)
{
        struct sl_open_dims *dims;
        bool changed = false;
        int r = sl_open_dims_new(graph, &dims);

        if (r < 0)
                return sl_error_set(error, -r, "no memory for a graph of %u nodes", graph->n_nodes);
        for (uint32_t i = 0; i < graph->n_nodes && r >= 0; i++) {
                if (graph->nodes[i].dead)
                        continue;
                r = settle(graph, dims, i);
                if (r < 0)
                        r = sl_error_set(error, -r, "node \"%s\": no memory for its shape", graph->nodes[i].name);
                changed |= r == 1;
                if (r >= 0 && changed)
                        r = sl_graph_infer_node(graph, i, error);
        }
        sl_open_dims_free(dims);
        return r < 0 || !changed ? (r < 0 ? r : 0) : sl_pass_remove_dead(graph, error);
}
