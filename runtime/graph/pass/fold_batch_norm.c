/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BatchNormalization at inference is a scale and a shift for each channel, which the weights and the bias of the Conv or Gemm
 * before it can have in them. The arithmetic is in double precision, so that the weights are rounded once.
 */
#include "pass.h"

#include "base/bytes.h"
#include "base/error.h"
#include "fold.h"
#include "graph.h"
#include "pass/bias.h"

#include <math.h>

enum { IN_DATA, IN_SCALE, IN_SHIFT, IN_MEAN, IN_VARIANCE, N_IN };

struct affine {
        double *scale, *shift; /* for each channel */
        uint32_t channels;
};

static int read_affine(struct sl_graph *graph, const struct sl_node *norm, uint32_t channels, struct affine *ret_affine)
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
        *ret_affine = (struct affine){.scale = both, .shift = both + channels, .channels = channels};
        return 0;
}

/* Conv has the channel outermost, Gemm in the rows or the columns of B. */
static bool is_outermost(const struct sl_node *node)
{
        return node->op == SL_OP_CONV || sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0);
}

static void scale_rows(const float *from, uint64_t row_floats, const struct affine *affine, float *to)
{
        for (uint64_t row = 0; row < affine->channels; row++)
                for (uint64_t i = row * row_floats; i < (row + 1) * row_floats; i++)
                        to[i] = (float)((double)from[i] * affine->scale[row]);
}

static void scale_columns(const float *from, uint64_t n_rows, const struct affine *affine, float *to)
{
        for (uint64_t row = 0; row < n_rows; row++, from += affine->channels, to += affine->channels)
                for (uint32_t i = 0; i < affine->channels; i++)
                        to[i] = (float)((double)from[i] * affine->scale[i]);
}

static int scale_weights(struct sl_graph *graph, uint32_t index, const struct affine *affine)
{
        struct sl_node *node = &graph->nodes[index];
        const struct sl_value *old = &graph->values[node->inputs[1]];
        struct sl_tensor tensor = old->tensor;
        uint64_t elements = sl_shape_elements(&tensor.shape);
        const float *from = old->data;
        float *to = sl_graph_alloc(graph, elements * sizeof(*to));
        uint32_t weights;
        int result;

        if (!to)
                return -ENOMEM;
        if (is_outermost(node))
                scale_rows(from, elements / affine->channels, affine, to);
        else
                scale_columns(from, elements / affine->channels, affine, to);
        result = sl_graph_add_constant(graph, old->name, &tensor, to, &weights);
        if (result == 0)
                sl_graph_set_input(graph, index, 1, weights);
        return result;
}

static int move_bias(struct sl_graph *graph, uint32_t index, const struct affine *affine)
{
        float *bias = sl_graph_alloc(graph, affine->channels * sizeof(*bias));

        if (!bias)
                return -ENOMEM;
        sl_bias_read(graph, index, bias, affine->channels);
        for (uint32_t i = 0; i < affine->channels; i++)
                bias[i] = (float)((double)bias[i] * affine->scale[i] + affine->shift[i]);
        return sl_bias_write(graph, index, bias, affine->channels);
}

static bool is_constant_vector(const struct sl_graph *graph, uint32_t value, uint32_t channels)
{
        return sl_graph_constant(graph, value) && graph->values[value].tensor.dtype == SL_DTYPE_F32 &&
               sl_shape_elements(&graph->values[value].tensor.shape) == channels;
}

/* The Conv or Gemm that the normalization can go into, or SL_VALUE_NONE. */
static uint32_t find_host(const struct sl_graph *graph, const struct sl_node *norm, uint32_t *ret_channels)
{
        uint32_t data = norm->inputs[IN_DATA], host = sl_graph_producer(graph, data);

        if (host == SL_VALUE_NONE || sl_graph_only_user(graph, data) == SL_VALUE_NONE)
                return SL_VALUE_NONE;
        if (graph->nodes[host].op != SL_OP_CONV && graph->nodes[host].op != SL_OP_GEMM)
                return SL_VALUE_NONE;
        *ret_channels = sl_bias_channels(graph, host);
        if (!*ret_channels || !sl_graph_constant(graph, graph->nodes[host].inputs[1]))
                return SL_VALUE_NONE;
        for (uint32_t i = IN_SCALE; i < N_IN; i++)
                if (!is_constant_vector(graph, norm->inputs[i], *ret_channels))
                        return SL_VALUE_NONE;
        return host;
}

static int fold(struct sl_graph *graph, uint32_t norm, uint32_t host, uint32_t channels)
{
        uint32_t made = graph->nodes[host].outputs[0];
        struct affine affine;
        int result = read_affine(graph, &graph->nodes[norm], channels, &affine);

        if (result == 0)
                result = scale_weights(graph, host, &affine);
        if (result == 0)
                result = move_bias(graph, host, &affine);
        if (result < 0)
                return result;
        sl_graph_set_output(graph, host, 0, graph->nodes[norm].outputs[0]);
        graph->nodes[norm].dead = 1;
        graph->values[made].dead = 1;
        return 0;
}

/* Weights that many nodes share are copied for each: only as far as the budget goes. */
static bool afford(const struct sl_graph *graph, uint32_t host, struct sl_fold_budget *budget)
{
        uint64_t bytes = graph->values[graph->nodes[host].inputs[1]].data_bytes;

        if (!bytes || bytes > budget->bytes)
                return false;
        budget->bytes -= bytes;
        return true;
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
                if (host != SL_VALUE_NONE && afford(graph, host, &budget))
                        result = fold(graph, i, host, channels);
                if (result < 0)
                        return sl_error_set(error, -result, "node \"%s\": no memory for its weights", graph->nodes[i].name);
        }
        return 0;
}
