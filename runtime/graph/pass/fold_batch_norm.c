/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BatchNormalization at inference is a scale and a shift for each channel, which the weights and the bias of the Conv or Gemm
 * before it can have in them.
 */
#include "pass.h"

#include "base/error.h"
#include "fold.h"
#include "graph.h"
#include "pass/affine.h"
#include "pass/bias.h"

#include <math.h>

enum { IN_DATA, IN_SCALE, IN_SHIFT, IN_MEAN, IN_VARIANCE, N_IN };

static int read_affine(struct sl_graph *graph, const struct sl_node *norm, uint32_t channels, struct sl_affine *ret_affine)
{
        double epsilon = sl_attrs_float(&norm->attrs, SL_ATTR_EPSILON, 1e-5);
        double *both = sl_graph_alloc(graph, 2ull * channels * sizeof(*both));
        const float *in[N_IN];

        if (!both)
                return -ENOMEM;
        for (uint32_t i = IN_SCALE; i < N_IN; i++)
                in[i] = sl_graph_constant(graph, norm->inputs[i]);
        for (uint32_t i = 0; i < channels; i++) {
                both[i] = (double)in[IN_SCALE][i] / sqrt((double)in[IN_VARIANCE][i] + epsilon);
                both[i + channels] = (double)in[IN_SHIFT][i] - (double)in[IN_MEAN][i] * both[i];
        }
        *ret_affine = (struct sl_affine){.scale = both, .shift = both + channels, .channels = channels};
        return 0;
}

static bool is_constant_vector(const struct sl_graph *graph, uint32_t value, uint32_t channels)
{
        return sl_graph_is_constant(graph, value) && graph->values[value].tensor.dtype == SL_DTYPE_F32 &&
               sl_shape_elements(&graph->values[value].tensor.shape) == channels;
}

/* The Conv or Gemm that the normalisation can go into, or SL_VALUE_NONE. */
static uint32_t find_host(const struct sl_graph *graph, const struct sl_node *norm, uint32_t *ret_channels)
{
        uint32_t data = norm->inputs[IN_DATA], host = sl_graph_producer(graph, data);

        if (host == SL_VALUE_NONE || sl_graph_only_user(graph, data) == SL_VALUE_NONE)
                return SL_VALUE_NONE;
        if (graph->nodes[host].op != SL_OP_CONV && graph->nodes[host].op != SL_OP_GEMM)
                return SL_VALUE_NONE;
        *ret_channels = sl_bias_channels(graph, host);
        if (!*ret_channels || !sl_graph_is_constant(graph, graph->nodes[host].inputs[1]))
                return SL_VALUE_NONE;
        for (uint32_t i = IN_SCALE; i < N_IN; i++)
                if (!is_constant_vector(graph, norm->inputs[i], *ret_channels))
                        return SL_VALUE_NONE;
        return host;
}

static int fold(struct sl_graph *graph, uint32_t norm, uint32_t host, uint32_t channels)
{
        struct sl_affine affine;
        int result = read_affine(graph, &graph->nodes[norm], channels, &affine);

        return result < 0 ? result : sl_affine_fold(graph, host, &affine, norm);
}

int sl_pass_fold_batch_norm(struct sl_graph *graph, struct sl_error *error)
{
        struct sl_fold_budget budget = sl_fold_budget_of(graph);

        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];
                uint32_t channels = 0, host;
                int result = 0;

                if (node->dead || node->op != SL_OP_BATCH_NORM || node->n_inputs < N_IN)
                        continue;
                host = find_host(graph, node, &channels);
                if (host != SL_VALUE_NONE && sl_affine_afford(graph, host, &budget))
                        result = fold(graph, i, host, channels);
                if (result < 0)
                        return sl_error_set(error, -result, "node \"%s\": no memory for its weights", graph->nodes[i].name);
        }
        return 0;
}
