/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LayerNormalization spelled out, as exporters do before opset 17, becomes one node:
 *
 *     d = x - ReduceMean(x);  d / Sqrt(ReduceMean(d ^ 2) + epsilon) * scale + shift
 *
 * over the last axis, with d * d for the square, in any order of factors and summands; the subtraction may stand there twice.
 */
#include "pass.h"

#include "base/error.h"
#include "graph.h"
#include "pass/match.h"

/* The mean of something over its last axis, which stays as a 1. */
static bool is_mean(const struct sl_graph *graph, uint32_t value, uint32_t *ret_of)
{
        uint32_t node = sl_match_made(graph, value, SL_OP_REDUCE_MEAN);
        const struct sl_attr *axes;
        uint32_t rank;

        if (node == SL_VALUE_NONE || graph->nodes[node].n_inputs != 1)
                return false;
        *ret_of = graph->nodes[node].inputs[0];
        rank = graph->values[*ret_of].tensor.shape.rank;
        axes = sl_attrs_find(&graph->nodes[node].attrs, SL_ATTR_AXES);
        return axes && axes->count == 1 && (axes->ints[0] == -1 || axes->ints[0] == (int64_t)rank - 1) &&
               sl_attrs_int(&graph->nodes[node].attrs, SL_ATTR_KEEPDIMS, 1);
}

/* x - mean(x) */
static bool is_centred(const struct sl_graph *graph, uint32_t value, uint32_t *ret_x)
{
        uint32_t node = sl_match_made(graph, value, SL_OP_SUB), of;

        if (node == SL_VALUE_NONE)
                return false;
        *ret_x = graph->nodes[node].inputs[0];
        return is_mean(graph, graph->nodes[node].inputs[1], &of) && of == *ret_x;
}

static bool is_square_of(const struct sl_graph *graph, uint32_t value, uint32_t *ret_of)
{
        uint32_t node = sl_match_made(graph, value, SL_OP_POW), other;
        double exponent;

        if (node != SL_VALUE_NONE) {
                *ret_of = graph->nodes[node].inputs[0];
                return sl_match_scalar(graph, graph->nodes[node].inputs[1], &exponent) && exponent == 2;
        }
        return sl_match_operands(graph, value, SL_OP_MUL, 0, ret_of, &other) && other == *ret_of;
}

/* The standard deviation: Sqrt(mean of squares of x - mean(x), + epsilon). */
static bool is_deviation(const struct sl_graph *graph, uint32_t value, uint32_t x, double *ret_epsilon)
{
        uint32_t node = sl_match_made(graph, value, SL_OP_SQRT), variance, squares, centred, of;

        return node != SL_VALUE_NONE &&
               sl_match_with_scalar(graph, graph->nodes[node].inputs[0], SL_OP_ADD, &variance, ret_epsilon) &&
               is_mean(graph, variance, &squares) && is_square_of(graph, squares, &centred) && is_centred(graph, centred, &of) &&
               of == x && *ret_epsilon >= 0;
}

/* d / deviation, or d * Reciprocal(deviation). */
static bool is_normalised(const struct sl_graph *graph, uint32_t value, uint32_t *ret_x, double *ret_epsilon)
{
        uint32_t node = sl_match_made(graph, value, SL_OP_DIV), centred, inverse;

        if (node != SL_VALUE_NONE)
                return is_centred(graph, graph->nodes[node].inputs[0], ret_x) &&
                       is_deviation(graph, graph->nodes[node].inputs[1], *ret_x, ret_epsilon);
        for (int order = 0; sl_match_operands(graph, value, SL_OP_MUL, order, &centred, &inverse); order++) {
                node = sl_match_made(graph, inverse, SL_OP_RECIPROCAL);
                if (node != SL_VALUE_NONE && is_centred(graph, centred, ret_x) &&
                        is_deviation(graph, graph->nodes[node].inputs[0], *ret_x, ret_epsilon))
                        return true;
        }
        return false;
}

/* A constant vector, one element for each of the last axis of @x. */
static bool is_vector(const struct sl_graph *graph, uint32_t value, uint32_t x)
{
        const struct sl_shape *shape = &graph->values[x].tensor.shape;
        const struct sl_tensor *vector;

        if (!sl_graph_is_constant(graph, value) || !shape->rank)
                return false;
        vector = &graph->values[value].tensor;
        return vector->dtype == graph->values[x].tensor.dtype && vector->shape.rank == 1 &&
               vector->shape.dims[0] == shape->dims[shape->rank - 1];
}

static int become_norm(struct sl_graph *graph, uint32_t index, const uint32_t inputs[3], double epsilon)
{
        int result = sl_match_become(graph, index, SL_OP_LAYER_NORM, inputs, 3);
        struct sl_attrs *attrs = &graph->nodes[index].attrs;

        if (result == 0)
                result = sl_attrs_set_int(attrs, SL_ATTR_AXIS, -1);
        return result < 0 ? result : sl_attrs_set_float(attrs, SL_ATTR_EPSILON, epsilon);
}

/* normalised * scale + shift */
static int fuse(struct sl_graph *graph, uint32_t index)
{
        uint32_t scaled, shift, normalised, scale, x;
        uint32_t sum = graph->nodes[index].outputs[0];
        double epsilon;

        for (int outer = 0; sl_match_operands(graph, sum, SL_OP_ADD, outer, &scaled, &shift); outer++)
                for (int inner = 0; sl_match_operands(graph, scaled, SL_OP_MUL, inner, &normalised, &scale); inner++)
                        if (is_normalised(graph, normalised, &x, &epsilon) && is_vector(graph, scale, x) &&
                                is_vector(graph, shift, x))
                                return become_norm(graph, index, (uint32_t[]){x, scale, shift}, epsilon);
        return 0;
}

int sl_pass_fuse_layer_norm(struct sl_graph *graph, struct sl_error *error)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                if (graph->nodes[i].dead || graph->nodes[i].op != SL_OP_ADD)
                        continue;
                if (fuse(graph, i) < 0)
                        return sl_error_set(error, ENOMEM, "node \"%s\": no memory for a normalisation", graph->nodes[i].name);
        }
        return sl_pass_remove_dead(graph, error);
}
