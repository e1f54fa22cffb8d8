/* SPDX-License-Identifier: Apache-2.0 */
/* Add of a constant vector after Conv, Gemm or MatMul becomes part of their bias. */
#include "pass.h"

#include "base/error.h"
#include "graph.h"
#include "pass/bias.h"

/* The input of the Add that a node with a bias makes for it alone, and the other one. */
static uint32_t find_maker(const struct sl_graph *graph, const struct sl_node *add, uint32_t side)
{
        uint32_t made = add->inputs[side];
        uint32_t maker = sl_graph_producer(graph, made);

        if (maker == SL_VALUE_NONE || sl_graph_only_user(graph, made) == SL_VALUE_NONE)
                return SL_VALUE_NONE;
        return sl_shape_equal(&graph->values[made].tensor.shape, &graph->values[add->outputs[0]].tensor.shape) ? maker
                                                                                                               : SL_VALUE_NONE;
}

static int fuse(struct sl_graph *graph, uint32_t add, uint32_t maker, uint32_t channels, uint32_t constant)
{
        float *bias = sl_graph_alloc(graph, 2ull * channels * sizeof(*bias));
        uint32_t made = graph->nodes[maker].outputs[0];
        int result;

        if (!bias)
                return -ENOMEM;
        if (!sl_bias_vector(graph, maker, constant, channels, bias + channels))
                return 0;
        sl_bias_read(graph, maker, bias, channels);
        for (uint32_t i = 0; i < channels; i++)
                bias[i] += bias[i + channels];
        result = sl_bias_write(graph, maker, bias, channels);
        if (result < 0)
                return result;
        sl_graph_set_output(graph, maker, 0, graph->nodes[add].outputs[0]);
        graph->nodes[add].dead = 1;
        graph->values[made].dead = 1;
        return 0;
}

static int fuse_add(struct sl_graph *graph, uint32_t index)
{
        for (uint32_t side = 0; side < 2; side++) {
                const struct sl_node *add = &graph->nodes[index];
                uint32_t constant = add->inputs[1 - side];
                uint32_t maker = sl_graph_is_constant(graph, constant) ? find_maker(graph, add, side) : SL_VALUE_NONE;
                uint32_t channels = maker == SL_VALUE_NONE ? 0 : sl_bias_channels(graph, maker);

                if (channels)
                        return fuse(graph, index, maker, channels, constant);
        }
        return 0;
}

int sl_pass_fuse_bias(struct sl_graph *graph, struct sl_error *error)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                int result = graph->nodes[i].dead || graph->nodes[i].op != SL_OP_ADD ? 0 : fuse_add(graph, i);

                if (result < 0)
                        return sl_error_set(error, -result, "node \"%s\": no memory for a bias", graph->nodes[i].name);
        }
        return 0;
}
