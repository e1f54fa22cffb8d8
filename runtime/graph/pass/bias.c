/* SPDX-License-Identifier: Apache-2.0 */
/* Input 2 is the bias of all three; the channel is axis 1 of a Conv and the last axis of the others. */
#include "pass/bias.h"

#include "graph.h"

#include <errno.h>

#define BIAS_INPUT 2

static bool is_f32(const struct sl_graph *graph, uint32_t value)
{
        return graph->values[value].tensor.dtype == SL_DTYPE_F32;
}

static uint32_t bias_of(const struct sl_node *node)
{
        return node->n_inputs > BIAS_INPUT ? node->inputs[BIAS_INPUT] : SL_VALUE_NONE;
}

static uint32_t channel_axis(const struct sl_graph *graph, const struct sl_node *node)
{
        return node->op == SL_OP_CONV ? 1 : graph->values[node->outputs[0]].tensor.shape.rank - 1;
}

/* A constant whose elements are one for each channel, or one for all. */
static const float *vector_of(const struct sl_graph *graph, uint32_t value, uint32_t channels, uint32_t *ret_step)
{
        bool constant = sl_graph_is_constant(graph, value);
        uint64_t elements = constant ? sl_shape_elements(&graph->values[value].tensor.shape) : 0;

        if (!constant || !is_f32(graph, value) || (elements != channels && elements != 1))
                return NULL;
        *ret_step = elements == 1 ? 0 : 1;
        return sl_graph_constant(graph, value);
}

uint32_t sl_bias_channels(const struct sl_graph *graph, uint32_t index)
{
        const struct sl_node *node = &graph->nodes[index];
        const struct sl_shape *shape = &graph->values[node->outputs[0]].tensor.shape;
        uint32_t axis;

        if ((node->op != SL_OP_CONV && node->op != SL_OP_GEMM && node->op != SL_OP_MATMUL) ||
                node->epilogue.activation != SL_ACT_NONE || node->epilogue.has_residual)
                return 0;
        if (!is_f32(graph, node->outputs[0]) || shape->rank < 2)
                return 0;
        if (node->op == SL_OP_MATMUL && graph->values[node->inputs[1]].tensor.shape.rank < 2)
                return 0;
        axis = channel_axis(graph, node);
        if (shape->dims[axis] < 1 || shape->dims[axis] > INT32_MAX)
                return 0;
        uint32_t channels = (uint32_t)shape->dims[axis], bias = bias_of(node), step;

        if (bias == SL_VALUE_NONE)
                return channels;
        /* A Gemm's C may also be a matrix or a column, which is no vector over the channels. */
        const struct sl_shape *bias_shape = &graph->values[bias].tensor.shape;
        bool across = bias_shape->rank == 0 || bias_shape->dims[bias_shape->rank - 1] == channels;

        return vector_of(graph, bias, channels, &step) && (across || step == 0) ? channels : 0;
}

void sl_bias_read(const struct sl_graph *graph, uint32_t index, float *ret_bias, uint32_t channels)
{
        const struct sl_node *node = &graph->nodes[index];
        uint32_t bias = bias_of(node), step = 0;
        const float *data = bias == SL_VALUE_NONE ? NULL : vector_of(graph, bias, channels, &step);
        float beta = node->op == SL_OP_GEMM ? (float)sl_attrs_float(&node->attrs, SL_ATTR_BETA, 1) : 1;

        for (uint32_t i = 0; i < channels; i++)
                ret_bias[i] = data ? beta * data[i * step] : 0;
}

int sl_bias_write(struct sl_graph *graph, uint32_t index, const float *bias, uint32_t channels)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_F32, .shape = {.rank = 1, .dims = {channels}}};
        struct sl_node *node = &graph->nodes[index];
        uint32_t inputs[BIAS_INPUT + 1] = {node->inputs[0], node->inputs[1]};
        int result = sl_graph_add_constant(graph, node->name, &tensor, bias, &inputs[BIAS_INPUT]);

        if (result < 0)
                return result;
        sl_attrs_remove(&node->attrs, SL_ATTR_BETA);
        return sl_graph_set_inputs(graph, index, inputs, BIAS_INPUT + 1);
}

/* All dimensions but that of the channel are 1, and the constant has no more of them than the output. */
static bool lies_along(const struct sl_shape *shape, uint32_t rank, uint32_t axis)
{
        if (shape->rank > rank)
                return false;
        for (uint32_t i = 0; i < shape->rank; i++)
                if (i + (rank - shape->rank) != axis && shape->dims[i] != 1)
                        return false;
        return true;
}

bool sl_bias_vector(const struct sl_graph *graph, uint32_t index, uint32_t value, uint32_t channels, float *ret_vector)
{
        const struct sl_node *node = &graph->nodes[index];
        uint32_t rank = graph->values[node->outputs[0]].tensor.shape.rank, step;
        const float *data = vector_of(graph, value, channels, &step);

        if (!data || !lies_along(&graph->values[value].tensor.shape, rank, channel_axis(graph, node)))
                return false;
        for (uint32_t i = 0; i < channels; i++)
                ret_vector[i] = data[i * step];
        return true;
}
