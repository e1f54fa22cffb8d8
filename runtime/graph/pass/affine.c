/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/affine.h"

#include "fold.h"
#include "graph.h"
#include "pass/bias.h"

#include <errno.h>

/* Conv has the channel outermost, a product in the columns of B, or in its rows. */
static bool is_outermost(const struct sl_node *node)
{
        return node->op == SL_OP_CONV || sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0);
}

static void scale_rows(const float *from, uint64_t row_floats, const struct sl_affine *affine, float *to)
{
        for (uint64_t row = 0; row < affine->channels; row++)
                for (uint64_t i = row * row_floats; i < (row + 1) * row_floats; i++)
                        to[i] = (float)((double)from[i] * affine->scale[row]);
}

static void scale_columns(const float *from, uint64_t n_rows, const struct sl_affine *affine, float *to)
{
        for (uint64_t row = 0; row < n_rows; row++, from += affine->channels, to += affine->channels)
                for (uint32_t i = 0; i < affine->channels; i++)
                        to[i] = (float)((double)from[i] * affine->scale[i]);
}

static int scale_weights(struct sl_graph *graph, uint32_t index, const struct sl_affine *affine)
{
        struct sl_node *node = &graph->nodes[index];
        const struct sl_value *old = &graph->values[node->inputs[1]];
        struct sl_tensor tensor = old->tensor;
        uint64_t elements = sl_shape_elements(&tensor.shape);
        float *to = sl_graph_alloc(graph, elements * sizeof(*to));
        /* Behind what stays: aligned memory that is freed between two such blocks is too small for the next of its size. */
        const float *from = sl_graph_constant(graph, node->inputs[1]);
        uint32_t weights;
        int result;

        if (!to)
                return -ENOMEM;
        if (is_outermost(node))
                scale_rows(from, elements / affine->channels, affine, to);
        else
                scale_columns(from, elements / affine->channels, affine, to);
        sl_graph_drop_copies(graph);
        result = sl_graph_add_constant(graph, old->name, &tensor, to, &weights);
        if (result == 0)
                sl_graph_set_input(graph, index, 1, weights);
        return result;
}

static int move_bias(struct sl_graph *graph, uint32_t index, const struct sl_affine *affine)
{
        float *bias = sl_graph_alloc(graph, affine->channels * sizeof(*bias));

        if (!bias)
                return -ENOMEM;
        sl_bias_read(graph, index, bias, affine->channels);
        for (uint32_t i = 0; i < affine->channels; i++)
                bias[i] = (float)((double)bias[i] * affine->scale[i] + affine->shift[i]);
        return sl_bias_write(graph, index, bias, affine->channels);
}

int sl_affine_fold(struct sl_graph *graph, uint32_t host, const struct sl_affine *affine, uint32_t node)
{
        uint32_t made = graph->nodes[host].outputs[0];
        int result = scale_weights(graph, host, affine);

        if (result == 0)
                result = move_bias(graph, host, affine);
        if (result < 0)
                return result;
        sl_graph_set_output(graph, host, 0, graph->nodes[node].outputs[0]);
        graph->nodes[node].dead = 1;
        graph->values[made].dead = 1;
        return 0;
}

bool sl_affine_afford(const struct sl_graph *graph, uint32_t host, struct sl_fold_budget *budget)
{
        uint64_t bytes = graph->values[graph->nodes[host].inputs[1]].data_bytes;

        if (!bytes || bytes > budget->bytes)
                return false;
        budget->bytes -= bytes;
        return true;
}
