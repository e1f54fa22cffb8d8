/* SPDX-License-Identifier: Apache-2.0 */
#include "annotate.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BIAS_INPUT 2

/* Of one value of the graph as it was. */
struct mark {
        uint32_t maker;  /* node, or SL_VALUE_NONE */
        uint32_t floats; /* the value after a turn to bytes and back, or SL_VALUE_NONE */
        bool inner;      /* an activation behind a product or sum takes it: never bytes */
        float scale;     /* of the bytes, once they exist */
        int zero;
};

struct annotation {
        struct sl_graph *graph;
        const struct sl_limits *limits;
        struct mark *marks;
        bool *bytes;    /* of each old node: makes what bytes may stand for */
        bool *consumes; /* of each old node: reads its data input from bytes */
};

/* Where the output channels of the weights lie. */
static uint32_t channel_axis(const struct sl_node *node)
{
        return node->op == SL_OP_CONV || (node->op == SL_OP_GEMM && sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0)) ? 0 : 1;
}

/* Without a bias, or with one number for each output channel. */
static bool is_row(const struct sl_graph *graph, const struct sl_node *node)
{
        uint32_t bias = node->n_inputs > BIAS_INPUT ? node->inputs[BIAS_INPUT] : SL_VALUE_NONE;
        const struct sl_shape *shape, *weights = &graph->values[node->inputs[1]].tensor.shape;

        if (bias == SL_VALUE_NONE)
                return true;
        shape = &graph->values[bias].tensor.shape;
        return sl_graph_is_constant(graph, bias) && shape->rank == 1 && shape->dims[0] == weights->dims[channel_axis(node)];
}

static bool is_plain_gemm(const struct sl_node *node)
{
        return !sl_attrs_int(&node->attrs, SL_ATTR_TRANS_A, 0) && sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1) == 1 &&
               sl_attrs_float(&node->attrs, SL_ATTR_BETA, 1) == 1;
}

bool sl_annotate_is_product(const struct sl_graph *graph, uint32_t index)
{
        const struct sl_node *node = &graph->nodes[index];
        const struct sl_value *weights;

        if (node->dead || (node->op != SL_OP_CONV && node->op != SL_OP_GEMM && node->op != SL_OP_MATMUL))
                return false;
        weights = &graph->values[node->inputs[1]];
        if (weights->kind != SL_VALUE_CONSTANT || weights->tensor.dtype != SL_DTYPE_F32 ||
                sl_graph_is_constant(graph, node->inputs[0]))
                return false;
        if (node->op != SL_OP_CONV && weights->tensor.shape.rank != 2)
                return false;
        return is_row(graph, node) && (node->op != SL_OP_GEMM || is_plain_gemm(node));
}

static bool made_of_bytes(const struct annotation *a, uint32_t value)
{
        return value != SL_VALUE_NONE && a->marks[value].maker != SL_VALUE_NONE && a->bytes[a->marks[value].maker];
}

static bool all_made_of_bytes(const struct annotation *a, const struct sl_node *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (!made_of_bytes(a, node->inputs[i]))
                        return false;
        return true;
}

static bool same_shapes(const struct annotation *a, const struct sl_node *node)
{
        return sl_shape_equal(&a->graph->values[node->inputs[0]].tensor.shape, &a->graph->values[node->inputs[1]].tensor.shape);
}

static bool is_limit(const struct sl_node *node)
{
        return node->op == SL_OP_RELU || (node->op == SL_OP_CLIP && node->n_inputs == 1);
}

/* A limit right behind what it belongs to. */
static bool fuses(const struct annotation *a, uint32_t index)
{
        const struct sl_node *node = &a->graph->nodes[index];
        uint32_t maker = a->marks[node->inputs[0]].maker;

        if (!is_limit(node) || !made_of_bytes(a, node->inputs[0]) || sl_graph_only_user(a->graph, node->inputs[0]) != index)
                return false;
        return is_limit(&a->graph->nodes[maker]) || a->graph->nodes[maker].op == SL_OP_ADD ||
               sl_annotate_is_product(a->graph, maker);
}

static void mark_node(struct annotation *a, uint32_t index, bool stays_float)
{
        const struct sl_node *node = &a->graph->nodes[index];

        switch (node->op) {
        case SL_OP_CONV:
        case SL_OP_GEMM:
        case SL_OP_MATMUL:
                a->consumes[index] = a->bytes[index] = !stays_float && sl_annotate_is_product(a->graph, index);
                break;
        case SL_OP_ADD:
                a->consumes[index] = a->bytes[index] = all_made_of_bytes(a, node) && same_shapes(a, node);
                break;
        case SL_OP_CONCAT:
        case SL_OP_MAX_POOL:
                a->consumes[index] = a->bytes[index] = all_made_of_bytes(a, node) && node->n_outputs == 1;
                break;
        case SL_OP_RELU:
        case SL_OP_CLIP:
                a->bytes[index] = made_of_bytes(a, node->inputs[0]) && is_limit(node);
                a->marks[node->inputs[0]].inner = fuses(a, index);
                a->consumes[index] = a->bytes[index] && !a->marks[node->inputs[0]].inner;
                break;
        case SL_OP_GLOBAL_AVERAGE_POOL:
        case SL_OP_AVERAGE_POOL:
                a->consumes[index] = made_of_bytes(a, node->inputs[0]);
                break;
        default:
                break;
        }
}

static void mark_nodes(struct annotation *a, const bool *stays_float)
{
        for (uint32_t i = 0; i < a->graph->n_nodes; i++) {
                const struct sl_node *node = &a->graph->nodes[i];

                if (node->dead)
                        continue;
                for (uint32_t k = 0; k < node->n_outputs; k++)
                        if (node->outputs[k] != SL_VALUE_NONE)
                                a->marks[node->outputs[k]].maker = i;
                mark_node(a, i, stays_float[i]);
        }
}

static int add_vector(
        struct annotation *a, const char *name, uint32_t dtype, uint32_t rank, int64_t n, const void *data, uint32_t *ret)
{
        struct sl_tensor tensor = {.dtype = dtype, .shape = {.rank = rank, .dims = {n}}};
        uint64_t bytes = (uint64_t)n * sl_dtype_bytes(dtype);
        void *copy = sl_graph_alloc(a->graph, bytes);

        if (!copy)
                return -ENOMEM;
        if (data)
                memcpy(copy, data, bytes);
        return sl_graph_add_constant(a->graph, name, &tensor, copy, ret);
}

static int add_computed(struct annotation *a, uint32_t like, uint32_t dtype, uint32_t *ret_value)
{
        struct sl_tensor tensor = a->graph->values[like].tensor;

        tensor.dtype = dtype;
        return sl_graph_add_value(a->graph, a->graph->values[like].name, SL_VALUE_COMPUTED, &tensor, ret_value);
}

static int add_linear(struct annotation *a, uint32_t op, const uint32_t *inputs, uint32_t n_inputs, int axis, uint32_t output)
{
        uint32_t node;
        int r = sl_graph_add_node(a->graph, op, a->graph->values[output].name, inputs, n_inputs, &output, 1, &node);

        return r < 0 || axis < 0 ? r : sl_attrs_set_int(&a->graph->nodes[node].attrs, SL_ATTR_AXIS, axis);
}

/* The greatest of what is there keeps its place, so a pool has the numbers of what went into it. */
static void choose_numbers(struct annotation *a, uint32_t value, const struct sl_node *nodes)
{
        struct mark *mark = &a->marks[value];
        const struct sl_node *maker = mark->maker == SL_VALUE_NONE ? NULL : &nodes[mark->maker];
        const struct sl_limits *limits = &a->limits[value];

        if (maker && maker->op == SL_OP_MAX_POOL && a->marks[maker->inputs[0]].floats != SL_VALUE_NONE) {
                mark->scale = a->marks[maker->inputs[0]].scale;
                mark->zero = a->marks[maker->inputs[0]].zero;
                return;
        }
        mark->scale = (limits->high - limits->low) / 255;
        if (!(mark->scale > 1e-20f))
                mark->scale = 1.0f / 255;
        mark->zero = (int)fminf(fmaxf(rintf(-limits->low / mark->scale), 0), 255);
}

/* The value by way of bytes, which is made when it is wanted for the first time. */
static int floats_of(struct annotation *a, uint32_t value, const struct sl_node *nodes, uint32_t *ret_floats)
{
        uint32_t inputs[3] = {value}, bytes;
        uint8_t zero;
        int r;

        if (a->marks[value].floats != SL_VALUE_NONE) {
                *ret_floats = a->marks[value].floats;
                return 0;
        }
        choose_numbers(a, value, nodes);
        zero = (uint8_t)a->marks[value].zero;
        r = add_vector(a, "scale", SL_DTYPE_F32, 0, 1, &a->marks[value].scale, &inputs[1]);
        r = r < 0 ? r : add_vector(a, "zero", SL_DTYPE_U8, 0, 1, &zero, &inputs[2]);
        r = r < 0 ? r : add_computed(a, value, SL_DTYPE_U8, &bytes);
        r = r < 0 ? r : add_linear(a, SL_OP_QUANTIZE_LINEAR, inputs, 3, -1, bytes);
        r = r < 0 ? r : add_computed(a, value, SL_DTYPE_F32, ret_floats);
        inputs[0] = bytes;
        r = r < 0 ? r : add_linear(a, SL_OP_DEQUANTIZE_LINEAR, inputs, 3, -1, *ret_floats);
        if (r == 0)
                a->marks[value].floats = *ret_floats;
        return r;
}

/* Element @i of @n belongs to this channel. */
static int64_t channel_of(uint64_t i, uint64_t n, int64_t channels, uint32_t axis)
{
        return axis ? (int64_t)(i % (uint64_t)channels) : (int64_t)(i / (n / (uint64_t)channels));
}

/* @scales: the least that each may be. */
static void round_weights(const float *weights, uint64_t n, int64_t channels, uint32_t axis, float *scales, int8_t *bytes)
{
        for (uint64_t i = 0; i < n; i++) {
                float *scale = &scales[channel_of(i, n, channels, axis)];

                *scale = fmaxf(*scale, fabsf(weights[i]) / 127);
        }
        for (int64_t c = 0; c < channels; c++)
                scales[c] = scales[c] > 1e-20f ? scales[c] : 1.0f / 127;
        for (uint64_t i = 0; i < n; i++)
                bytes[i] = (int8_t)fminf(fmaxf(rintf(weights[i] / scales[channel_of(i, n, channels, axis)]), -127), 127);
}

/* A channel of tiny weights with a bias beside them still has to count that bias in 32 bits. */
static void leave_room(const struct annotation *a, const struct sl_node *node, int64_t channels, float *scales)
{
        uint32_t value = node->n_inputs > BIAS_INPUT ? node->inputs[BIAS_INPUT] : SL_VALUE_NONE;
        const float *bias = sl_graph_constant(a->graph, value);

        for (int64_t c = 0; bias && c < channels; c++)
                scales[c] = fabsf(bias[c]) / a->marks[node->inputs[0]].scale * 0x1p-28f;
}

static int add_weights(struct annotation *a, const struct sl_node *node, uint32_t *ret_weights, float **ret_scales)
{
        struct sl_value weights = a->graph->values[node->inputs[1]];
        uint32_t axis = channel_axis(node), inputs[3];
        int64_t channels = weights.tensor.shape.dims[axis];
        uint64_t n = sl_shape_elements(&weights.tensor.shape);
        float *scales = sl_graph_alloc(a->graph, (uint64_t)channels * sizeof(*scales));
        int8_t *bytes = sl_graph_alloc(a->graph, n);
        int r;

        if (!scales || !bytes)
                return -ENOMEM;
        leave_room(a, node, channels, scales);
        if (n)
                round_weights(sl_graph_constant(a->graph, node->inputs[1]), n, channels, axis, scales, bytes);
        sl_graph_drop_copies(a->graph);
        weights.tensor.dtype = SL_DTYPE_I8;
        r = sl_graph_add_constant(a->graph, weights.name, &weights.tensor, bytes, &inputs[0]);
        r = r < 0 ? r : add_vector(a, "scale", SL_DTYPE_F32, 1, channels, scales, &inputs[1]);
        r = r < 0 ? r : add_vector(a, "zero", SL_DTYPE_I8, 1, channels, NULL, &inputs[2]);
        r = r < 0 ? r : add_computed(a, node->inputs[1], SL_DTYPE_F32, ret_weights);
        *ret_scales = scales;
        return r < 0 ? r : add_linear(a, SL_OP_DEQUANTIZE_LINEAR, inputs, 3, (int)axis, *ret_weights);
}

/* In units of the sums, so that it is added to them as it is. */
static int add_bias(struct annotation *a, uint32_t bias, float x_scale, const float *scales, uint32_t *ret_bias)
{
        const float *data = sl_graph_constant(a->graph, bias);
        int64_t channels = a->graph->values[bias].tensor.shape.dims[0];
        float *units = sl_graph_alloc(a->graph, (uint64_t)channels * sizeof(*units));
        int32_t *counts = sl_graph_alloc(a->graph, (uint64_t)channels * sizeof(*counts));
        uint32_t inputs[2];
        int r;

        if (!units || !counts)
                return -ENOMEM;
        for (int64_t c = 0; c < channels; c++) {
                units[c] = x_scale * scales[c];
                counts[c] = (int32_t)fmin(fmax(rint((double)data[c] / (double)units[c]), -0x1p30), 0x1p30);
        }
        r = add_vector(a, "bias", SL_DTYPE_I32, 1, channels, counts, &inputs[0]);
        r = r < 0 ? r : add_vector(a, "scale", SL_DTYPE_F32, 1, channels, units, &inputs[1]);
        r = r < 0 ? r : add_computed(a, bias, SL_DTYPE_F32, ret_bias);
        return r < 0 ? r : add_linear(a, SL_OP_DEQUANTIZE_LINEAR, inputs, 2, 0, *ret_bias);
}

static int bring_product(struct annotation *a, const struct sl_node *node, const struct sl_node *nodes, uint32_t *inputs)
{
        float *scales = NULL;
        int r = floats_of(a, node->inputs[0], nodes, &inputs[0]);

        r = r < 0 ? r : add_weights(a, node, &inputs[1], &scales);
        /* That of a MatMul is an Add there, which stays float32. */
        if (r == 0 && node->op != SL_OP_MATMUL && node->n_inputs > BIAS_INPUT && node->inputs[BIAS_INPUT] != SL_VALUE_NONE)
                r = add_bias(a, node->inputs[BIAS_INPUT], a->marks[node->inputs[0]].scale, scales, &inputs[BIAS_INPUT]);
        return r;
}

static int write_node(struct annotation *a, uint32_t index, const struct sl_node *nodes)
{
        const struct sl_node *node = &nodes[index];
        bool product = a->bytes[index] && (node->op == SL_OP_CONV || node->op == SL_OP_GEMM || node->op == SL_OP_MATMUL);
        uint32_t inputs[SL_NODE_INPUTS_MAX], written;
        int r = 0;

        memcpy(inputs, node->inputs, node->n_inputs * sizeof(*inputs));
        if (product)
                r = bring_product(a, node, nodes, inputs);
        for (uint32_t i = 0; i < node->n_inputs && !product && a->consumes[index] && r == 0; i++)
                r = floats_of(a, node->inputs[i], nodes, &inputs[i]);
        if (r == 0)
                r = sl_graph_add_node(
                        a->graph, node->op, node->name, inputs, node->n_inputs, node->outputs, node->n_outputs, &written);
        if (r < 0)
                return r;
        a->graph->nodes[written].attrs = node->attrs;
        a->graph->nodes[written].epilogue = node->epilogue;
        return 0;
}

int sl_annotate(struct sl_graph *graph, const struct sl_limits *limits, const bool *stays_float, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct mark *marks = calloc(graph->n_values + 1u, sizeof(*marks));
        SL_CLEANUP(sl_cleanup_free) bool *bytes = calloc(graph->n_nodes + 1u, sizeof(*bytes));
        SL_CLEANUP(sl_cleanup_free) bool *consumes = calloc(graph->n_nodes + 1u, sizeof(*consumes));
        SL_CLEANUP(sl_cleanup_free) struct sl_node *nodes = NULL;
        struct annotation a = {.graph = graph, .limits = limits, .marks = marks, .bytes = bytes, .consumes = consumes};
        uint32_t n_nodes;
        int r = 0;

        if (!marks || !bytes || !consumes)
                return sl_error_set(error, ENOMEM, "no memory for the marks of %u values", graph->n_values);
        for (uint32_t i = 0; i < graph->n_values; i++)
                marks[i].maker = marks[i].floats = SL_VALUE_NONE;
        mark_nodes(&a, stays_float);
        nodes = sl_graph_take_nodes(graph, &n_nodes);
        for (uint32_t i = 0; i < n_nodes && r == 0; i++)
                r = nodes[i].dead ? 0 : write_node(&a, i, nodes);
        if (r < 0)
                return sl_error_set(error, -r, "no room for a quantized graph of %u nodes", n_nodes);
        r = sl_graph_infer(graph, error);
        return r < 0 ? r : sl_graph_check(graph, error);
}
