/* SPDX-License-Identifier: Apache-2.0 */
/* A Pad of zeros along the spatial axes goes into the pads of the Conv behind it. */
#include "pass.h"

#include "base/error.h"
#include "graph.h"
#include "shape/slice.h"

#define RANK_MAX 5

/* Zeros, and none of them taken away or along batch and channels. */
static bool read_pad(const struct sl_graph *graph, uint32_t index, int64_t *begin, int64_t *end)
{
        const struct sl_node *pad = &graph->nodes[index];
        struct sl_node_desc desc;

        if (pad->op != SL_OP_PAD || sl_attrs_int(&pad->attrs, SL_ATTR_MODE, 0) || !sl_attrs_find(&pad->attrs, SL_ATTR_PADS))
                return false;
        if (sl_attrs_float(&pad->attrs, SL_ATTR_VALUE, 0) != 0 || sl_graph_describe(graph, index, &desc) < 0 ||
                !sl_op_parameters_resolved(&desc) || sl_pads_read(&desc, begin, end, NULL))
                return false;
        for (uint32_t i = 0; i < desc.inputs[0].shape.rank; i++)
                if (begin[i] < 0 || end[i] < 0 || (i < 2 && (begin[i] || end[i])))
                        return false;
        return true;
}

static void fuse(struct sl_graph *graph, uint32_t conv, uint32_t pad, const int64_t *begin, const int64_t *end)
{
        struct sl_node *node = &graph->nodes[conv];
        uint32_t spatial = graph->values[node->inputs[0]].tensor.shape.rank - 2;
        int64_t pads[2 * RANK_MAX];
        int r;

        for (uint32_t i = 0; i < spatial; i++) {
                pads[i] = sl_attrs_ints(&node->attrs, SL_ATTR_PADS, i, 0) + begin[i + 2];
                pads[spatial + i] = sl_attrs_ints(&node->attrs, SL_ATTR_PADS, spatial + i, 0) + end[i + 2];
        }
        r = sl_attrs_set_ints(&node->attrs, SL_ATTR_PADS, pads, 2 * spatial);
        if (r < 0)
                return; /* no room for an attribute: the Pad stays */
        sl_graph_set_input(graph, conv, 0, graph->nodes[pad].inputs[0]);
}

int sl_pass_fuse_pad(struct sl_graph *graph, struct sl_error *error)
{
        (void)error;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                int64_t begin[SL_RANK_MAX], end[SL_RANK_MAX];
                uint32_t pad;

                if (graph->nodes[i].dead || graph->nodes[i].op != SL_OP_CONV ||
                        sl_attrs_find(&graph->nodes[i].attrs, SL_ATTR_SAME))
                        continue;
                pad = sl_graph_producer(graph, graph->nodes[i].inputs[0]);
                if (pad == SL_VALUE_NONE || graph->values[graph->nodes[pad].inputs[0]].tensor.shape.rank > RANK_MAX ||
                        !read_pad(graph, pad, begin, end))
                        continue;
                fuse(graph, i, pad, begin, end);
        }
        return 0;
}
