/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mul of what a Conv, Gemm or MatMul makes by a constant, one number for each channel or one for all, goes into the weights and the
 * bias: scales of a residual branch, of queries, of standardised weights. What is added behind can then be a residual.
 */
#include "pass.h"

#include "base/error.h"
#include "fold.h"
#include "graph.h"
#include "pass/affine.h"
#include "pass/bias.h"

/* The node whose output @mul scales by its other operand, of the same shape and for it alone; or SL_VALUE_NONE. */
static uint32_t find_host(const struct sl_graph *graph, const struct sl_node *mul, uint32_t side)
{
        uint32_t made = mul->inputs[side], host = sl_graph_producer(graph, made);

        if (host == SL_VALUE_NONE || !sl_graph_is_constant(graph, mul->inputs[1 - side]) ||
                sl_graph_only_user(graph, made) == SL_VALUE_NONE || !sl_bias_channels(graph, host) ||
                !sl_graph_is_constant(graph, graph->nodes[host].inputs[1]))
                return SL_VALUE_NONE;
        if (graph->nodes[host].op == SL_OP_MATMUL && graph->values[graph->nodes[host].inputs[1]].tensor.shape.rank != 2)
                return SL_VALUE_NONE;
        if (!sl_shape_equal(&graph->values[made].tensor.shape, &graph->values[mul->outputs[0]].tensor.shape))
                return SL_VALUE_NONE;
        return host;
}

static int fold(struct sl_graph *graph, uint32_t mul, uint32_t host, uint32_t constant, struct sl_fold_budget *budget)
{
        uint32_t channels = sl_bias_channels(graph, host);
        float *vector = sl_graph_alloc(graph, channels * sizeof(*vector));
        double *both = sl_graph_alloc(graph, 2ull * channels * sizeof(*both));

        if (!vector || !both)
                return -ENOMEM;
        if (!sl_bias_vector(graph, host, constant, channels, vector) || !sl_affine_afford(graph, host, budget))
                return 0;
        for (uint32_t i = 0; i < channels; i++) {
                both[i] = vector[i];
                both[i + channels] = 0;
        }
        return sl_affine_fold(graph, host, &(struct sl_affine){.scale = both, .shift = both + channels, .channels = channels}, mul);
}

int sl_pass_fold_scale(struct sl_graph *graph, struct sl_error *error)
{
        struct sl_fold_budget budget = sl_fold_budget_of(graph);

        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                for (uint32_t side = 0; side < 2; side++) {
                        const struct sl_node *mul = &graph->nodes[i];
                        uint32_t host = mul->dead || mul->op != SL_OP_MUL ? SL_VALUE_NONE : find_host(graph, mul, side);

                        if (host != SL_VALUE_NONE && fold(graph, i, host, mul->inputs[1 - side], &budget) < 0)
                                return sl_error_set(error, ENOMEM, "node \"%s\": no memory for its weights", graph->nodes[i].name);
                }
        }
        return 0;
}
