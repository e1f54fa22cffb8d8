/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conv, Gemm and MatMul over dequantized bytes and constant int8 weights become products of bytes; so do QLinearConv and
 * QLinearMatMul. The bias is counted in units of the sums. What follows as QuantizeLinear goes in as well; without one the result
 * is float32. A zero point of the source goes into the bias where nothing is padded.
 */
#include "pass.h"

#include "base/error.h"
#include "graph.h"
#include "pass/quantity.h"

#include <math.h>
#include <string.h>

#define RESIDUAL_INPUT 3
#define BIAS_LIMIT     0x1p31

/* One product while it is rewritten: what goes in, what comes out. */
struct product {
        uint32_t op;
        uint32_t x, weights, bias, residual; /* values; bias: float32 or int32 constant, or a DequantizeLinear of one */
        struct sl_quantity source, addend, result;
        uint32_t result_user; /* the QuantizeLinear that goes in, or SL_VALUE_NONE */
        const float *weight_scales;
        uint64_t n_weight_scales;
        int64_t channels;
        bool channels_last; /* of the weights: [K,N], not [N,K] */
};

static bool read_source(const struct sl_graph *graph, const struct sl_node *node, struct product *p)
{
        p->x = sl_quantity_bytes(graph, node->inputs[0], &p->source);
        return p->x != SL_VALUE_NONE;
}

static bool all_zero(const struct sl_graph *graph, uint32_t value)
{
        const uint8_t *data = sl_graph_constant(graph, value);

        if (value == SL_VALUE_NONE)
                return true;
        for (uint64_t i = 0; data && i < graph->values[value].data_bytes; i++)
                if (data[i])
                        return false;
        return data != NULL;
}

static bool take_weights(
        const struct sl_graph *graph, uint32_t weights, uint32_t scales, uint32_t zeros, int64_t axis, struct product *p)
{
        const struct sl_value *w = &graph->values[weights];
        uint32_t channel_axis = p->channels_last ? 1 : 0;
        const float *data = sl_graph_constant(graph, scales);

        if (!sl_graph_is_constant(graph, weights) || w->tensor.dtype != SL_DTYPE_I8 || w->tensor.shape.rank < 2 || !data)
                return false;
        if (graph->values[scales].tensor.dtype != SL_DTYPE_F32 || !all_zero(graph, zeros))
                return false;
        p->weights = weights;
        p->weight_scales = data;
        p->n_weight_scales = sl_shape_elements(&graph->values[scales].tensor.shape);
        p->channels = w->tensor.shape.dims[channel_axis];
        if (p->channels < 1)
                return false;
        if (p->n_weight_scales == 1)
                return true;
        axis = axis < 0 ? axis + w->tensor.shape.rank : axis;
        return axis == channel_axis && p->n_weight_scales == (uint64_t)p->channels;
}

static bool read_weights(const struct sl_graph *graph, const struct sl_node *node, struct product *p)
{
        uint32_t maker = sl_graph_producer(graph, node->inputs[1]);
        const struct sl_node *dequantize = maker == SL_VALUE_NONE ? NULL : &graph->nodes[maker];

        if (!dequantize || dequantize->op != SL_OP_DEQUANTIZE_LINEAR || sl_attrs_int(&dequantize->attrs, SL_ATTR_BLOCK_SIZE, 0))
                return false;
        return take_weights(graph, dequantize->inputs[0], dequantize->inputs[1],
                dequantize->n_inputs > 2 ? dequantize->inputs[2] : SL_VALUE_NONE, sl_attrs_int(&dequantize->attrs, SL_ATTR_AXIS, 1),
                p);
}

static float unit_of(const struct product *p, int64_t channel)
{
        return p->source.scale * p->weight_scales[p->n_weight_scales == 1 ? 0 : channel];
}

/* The bias as real numbers, from a constant or from a DequantizeLinear of int32 with one scale or one for each channel. */
static bool read_bias(const struct sl_graph *graph, const struct product *p, double *ret_bias)
{
        uint32_t maker = sl_graph_producer(graph, p->bias);
        const struct sl_node *dequantize = maker == SL_VALUE_NONE ? NULL : &graph->nodes[maker];
        uint32_t value = dequantize && dequantize->op == SL_OP_DEQUANTIZE_LINEAR ? dequantize->inputs[0] : p->bias;
        const void *data = sl_graph_constant(graph, value);
        const float *scales = value == p->bias ? NULL : sl_graph_constant(graph, dequantize->inputs[1]);
        uint32_t dtype = graph->values[value].tensor.dtype;

        if (!data || sl_shape_elements(&graph->values[value].tensor.shape) != (uint64_t)p->channels)
                return false;
        if (value != p->bias) {
                uint64_t n = scales ? sl_shape_elements(&graph->values[dequantize->inputs[1]].tensor.shape) : 0;

                if (dtype != SL_DTYPE_I32 || (n != 1 && n != (uint64_t)p->channels) ||
                        graph->values[dequantize->inputs[1]].tensor.dtype != SL_DTYPE_F32 ||
                        (dequantize->n_inputs > 2 && !all_zero(graph, dequantize->inputs[2])))
                        return false;
                for (int64_t i = 0; i < p->channels; i++)
                        ret_bias[i] = (double)((const int32_t *)data)[i] * (double)scales[n == 1 ? 0 : i];
                return true;
        }
        for (int64_t i = 0; i < p->channels; i++)
                ret_bias[i] = dtype == SL_DTYPE_I32 ? (double)((const int32_t *)data)[i] * (double)unit_of(p, i)
                                                    : (double)((const float *)data)[i];
        return dtype == SL_DTYPE_I32 || dtype == SL_DTYPE_F32;
}

/* The sum of the weights of one channel. */
static int64_t weight_sum(const struct sl_graph *graph, const struct product *p, int64_t channel)
{
        const int8_t *weights = graph->values[p->weights].data;
        int64_t each = (int64_t)graph->values[p->weights].data_bytes / p->channels, sum = 0;

        for (int64_t i = 0; i < each; i++)
                sum += weights[p->channels_last ? i * p->channels + channel : channel * each + i];
        return sum;
}

static bool pads_nothing(const struct sl_node *node)
{
        const struct sl_attr *pads = sl_attrs_find(&node->attrs, SL_ATTR_PADS);

        if (sl_attrs_find(&node->attrs, SL_ATTR_SAME))
                return false;
        for (uint32_t i = 0; pads && i < pads->count; i++)
                if (pads->ints[i])
                        return false;
        return true;
}

/* Fills the two vectors. False when a number is out of range: then the product stays as it is. */
static bool fill_vectors(
        const struct sl_graph *graph, const struct product *p, bool takes_zero, float *scales, int32_t *bias, double *real)
{
        if (p->bias != SL_VALUE_NONE && !read_bias(graph, p, real))
                return false;
        for (int64_t i = 0; i < p->channels; i++) {
                double unit = (double)unit_of(p, i);
                double sum = p->bias == SL_VALUE_NONE ? 0 : nearbyint(real[i] / unit);

                if (takes_zero)
                        sum -= (double)p->source.zero * (double)weight_sum(graph, p, i);
                if (!(unit > 1e-37 && unit < 1e30) || !(fabs(sum) < BIAS_LIMIT))
                        return false;
                scales[i] = (float)unit;
                bias[i] = (int32_t)sum;
        }
        return true;
}

static int add_vector(struct sl_graph *graph, const char *name, uint32_t dtype, int64_t n, const void *data, uint32_t *ret_value)
{
        struct sl_tensor tensor = {.dtype = dtype, .shape = {.rank = 1, .dims = {n}}};

        return sl_graph_add_constant(graph, name, &tensor, data, ret_value);
}

static int set_numbers(struct sl_attrs *attrs, const struct product *p, bool takes_zero)
{
        bool real = p->result_user == SL_VALUE_NONE && p->result.dtype != SL_DTYPE_U8 && p->result.dtype != SL_DTYPE_I8;
        int r = sl_attrs_set_int(attrs, SL_ATTR_TO, real ? SL_DTYPE_F32 : p->result.dtype);

        if (r == 0 && !takes_zero && p->source.zero)
                r = sl_attrs_set_int(attrs, SL_ATTR_X_ZERO, p->source.zero);
        if (r == 0 && !real)
                r = sl_attrs_set_float(attrs, SL_ATTR_Y_SCALE, (double)p->result.scale);
        if (r == 0 && !real && p->result.zero)
                r = sl_attrs_set_int(attrs, SL_ATTR_Y_ZERO, p->result.zero);
        if (r == 0 && p->addend.scale > 0)
                r = sl_attrs_set_float(attrs, SL_ATTR_ADDEND_SCALE, (double)p->addend.scale);
        if (r == 0 && p->addend.zero)
                r = sl_attrs_set_int(attrs, SL_ATTR_ADDEND_ZERO, p->addend.zero);
        return r;
}

/* Everything that can fail comes before the node changes. */
static int rewrite(struct sl_graph *graph, uint32_t index, const struct product *p, struct sl_error *error)
{
        bool takes_zero = pads_nothing(&graph->nodes[index]);
        uint64_t n = (uint64_t)p->channels;
        float *scales = sl_graph_alloc(graph, n * sizeof(*scales));
        int32_t *bias = sl_graph_alloc(graph, n * sizeof(*bias));
        double *real = sl_graph_alloc(graph, n * sizeof(*real));
        struct sl_attrs attrs = graph->nodes[index].attrs;
        uint32_t inputs[] = {p->x, p->weights, SL_VALUE_NONE, SL_VALUE_NONE, p->residual};
        int r;

        if (!scales || !bias || !real)
                return -ENOMEM;
        if (!fill_vectors(graph, p, takes_zero, scales, bias, real))
                return 0;
        sl_attrs_remove(&attrs, SL_ATTR_ALPHA);
        sl_attrs_remove(&attrs, SL_ATTR_BETA);
        sl_attrs_remove(&attrs, SL_ATTR_TRANS_A);
        if (set_numbers(&attrs, p, takes_zero) < 0)
                return 0;
        r = add_vector(graph, graph->nodes[index].name, SL_DTYPE_F32, p->channels, scales, &inputs[2]);
        r = r < 0 ? r : add_vector(graph, graph->nodes[index].name, SL_DTYPE_I32, p->channels, bias, &inputs[3]);
        r = r < 0 ? r : sl_graph_set_inputs(graph, index, inputs, p->residual == SL_VALUE_NONE ? 4 : 5);
        if (r < 0)
                return r;
        graph->nodes[index].op = p->op;
        graph->nodes[index].attrs = attrs;
        if (p->result_user != SL_VALUE_NONE) {
                graph->values[graph->nodes[index].outputs[0]].dead = 1;
                sl_graph_set_output(graph, index, 0, graph->nodes[p->result_user].outputs[0]);
                graph->nodes[p->result_user].dead = 1;
        }
        return sl_graph_infer_node(graph, index, error);
}

static bool is_plain_gemm(const struct sl_node *node)
{
        return !sl_attrs_int(&node->attrs, SL_ATTR_TRANS_A, 0) && sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1) == 1 &&
               (node->n_inputs < 3 || node->inputs[2] == SL_VALUE_NONE || sl_attrs_float(&node->attrs, SL_ATTR_BETA, 1) == 1);
}

/* A matrix with more rows than one is no bias. */
static bool is_row(const struct sl_graph *graph, const struct sl_node *node)
{
        const struct sl_shape *shape;

        if (node->n_inputs < 3 || node->inputs[2] == SL_VALUE_NONE)
                return true;
        shape = &graph->values[node->inputs[2]].tensor.shape;
        return shape->rank == 1 || (shape->rank == 2 && shape->dims[0] == 1);
}

/* An operator on floats that such a product can stand for. */
static bool read_float_product(const struct sl_graph *graph, const struct sl_node *node, struct product *p)
{
        p->op = node->op == SL_OP_CONV ? SL_OP_QUANTIZED_CONV : SL_OP_QUANTIZED_MATMUL;
        p->channels_last = node->op == SL_OP_MATMUL || (node->op == SL_OP_GEMM && !sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0));
        if (node->op != SL_OP_CONV && graph->values[node->inputs[0]].tensor.shape.rank < 2)
                return false;
        if (node->op != SL_OP_CONV && graph->values[node->inputs[1]].tensor.shape.rank != 2)
                return false;
        if (node->op == SL_OP_GEMM && (!is_plain_gemm(node) || !is_row(graph, node)))
                return false;
        if (!read_source(graph, node, p) || !read_weights(graph, node, p))
                return false;
        p->bias = node->n_inputs > 2 ? node->inputs[2] : SL_VALUE_NONE;
        p->residual = SL_VALUE_NONE;
        if (node->epilogue.has_residual) {
                p->residual = sl_quantity_bytes(graph, node->inputs[RESIDUAL_INPUT], &p->addend);
                if (p->residual != SL_VALUE_NONE && node->epilogue.activation > SL_ACT_CLIP)
                        return false;
        }
        p->result_user = sl_quantity_user(graph, node->outputs[0], &p->result);
        /* Floats are added to floats, which a QuantizeLinear behind them rounds on its own. */
        if (node->epilogue.has_residual && p->residual == SL_VALUE_NONE) {
                p->residual = node->inputs[RESIDUAL_INPUT];
                p->result_user = SL_VALUE_NONE;
                p->result = (struct sl_quantity){0};
        }
        return true;
}

/* QLinearConv and QLinearMatMul have the same in other places: x, its scale and zero, w, its, those of y, the bias. */
static bool read_integer_product(const struct sl_graph *graph, const struct sl_node *node, struct product *p)
{
        p->op = node->op == SL_OP_QLINEAR_CONV ? SL_OP_QUANTIZED_CONV : SL_OP_QUANTIZED_MATMUL;
        p->channels_last = node->op == SL_OP_QLINEAR_MATMUL;
        p->x = node->inputs[0];
        p->residual = p->result_user = SL_VALUE_NONE;
        p->bias = node->n_inputs > 8 ? node->inputs[8] : SL_VALUE_NONE;
        if (p->channels_last &&
                (graph->values[p->x].tensor.shape.rank < 2 || graph->values[node->inputs[3]].tensor.shape.rank != 2))
                return false;
        return sl_quantity_read(graph, node->inputs[1], node->inputs[2], graph->values[p->x].tensor.dtype, &p->source) &&
               take_weights(graph, node->inputs[3], node->inputs[4], node->inputs[5], p->channels_last ? 1 : 0, p) &&
               sl_quantity_read(graph, node->inputs[6], node->inputs[7], graph->values[node->outputs[0]].tensor.dtype, &p->result);
}

static bool read_product(const struct sl_graph *graph, const struct sl_node *node, struct product *p)
{
        switch (node->op) {
        case SL_OP_CONV:
        case SL_OP_GEMM:
        case SL_OP_MATMUL:
                return read_float_product(graph, node, p);
        case SL_OP_QLINEAR_CONV:
        case SL_OP_QLINEAR_MATMUL:
                return read_integer_product(graph, node, p);
        default:
                return false;
        }
}

int sl_pass_quantize_products(struct sl_graph *graph, const struct sl_pass_options *options, struct sl_error *error)
{
        (void)options;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                struct product p = {.n_weight_scales = 0};
                int r = !graph->nodes[i].dead && read_product(graph, &graph->nodes[i], &p) ? rewrite(graph, i, &p, error) : 0;

                if (r == -ENOMEM)
                        return sl_error_set(error, ENOMEM, "node \"%s\": no memory for its scales", graph->nodes[i].name);
                if (r < 0)
                        return r;
        }
        return 0;
}
