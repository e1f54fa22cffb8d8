/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Algorithm 1 as the paper has it: its Figure 4, the derivation of its appendix A, its table, and the corrections that its text
 * states. Source: Jeong et al., Accelerating Multi-Model Inference by Merging DNNs of Different Weights, 2020.
 */
#include "lanes.h"
#include "merge/rows.h"
#include "op.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

/* A fully connected layer, a layer normalization, and operations without weights. */
static void build_ffnn(struct network *net, uint64_t seed)
{
        uint32_t x;

        network_init(net);
        net->state += seed * 0x9e3779b97f4a7c15u;
        x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 5));
        x = network_node(net, SL_OP_MATMUL, VALUES(x, network_weights(net, DIMS(5, 6))), 0, NULL);
        x = network_node(net, SL_OP_LAYER_NORM, VALUES(x, network_scales(net, DIMS(6)), network_weights(net, DIMS(6))), 0, NULL);
        x = network_apply(net, SL_OP_TANH, network_apply(net, SL_OP_RELU, x));
        network_output(net, x);
        network_finish(net);
}

static void free_all(struct network *nets, uint32_t n, struct sl_graph *merged)
{
        sl_graph_free(merged);
        for (uint32_t i = 0; i < n; i++)
                network_deinit(&nets[i]);
}

static uint32_t place_of(const struct sl_graph *graph, uint32_t op)
{
        return (uint32_t)(lanes_find(graph, op) - graph->nodes);
}

Test(algorithm_1, figure_4)
{
        struct sl_merge_report report;
        struct network nets[2];
        struct sl_graph *merged;
        const struct sl_node *norm;

        build_ffnn(&nets[0], 1);
        build_ffnn(&nets[1], 2);
        merged = lanes_merge(nets, 2, NULL, &report);
        norm = lanes_find(merged, SL_OP_GROUP_NORM);
        cr_expect_eq(report.n_merged, 4);
        cr_expect_eq(merged->values[lanes_find(merged, SL_OP_MATMUL)->inputs[1]].tensor.shape.rank, 3);
        cr_expect_eq(sl_attrs_int(&norm->attrs, SL_ATTR_NUM_GROUPS, 0), 2);
        cr_expect_eq(merged->values[norm->inputs[0]].tensor.shape.dims[1], 12);
        /* One reshape-and-transpose, between the product and the normalization: what follows takes the dimension of its parent. */
        cr_expect_lt(place_of(merged, SL_OP_MATMUL), place_of(merged, SL_OP_TRANSPOSE));
        cr_expect_lt(place_of(merged, SL_OP_TRANSPOSE), place_of(merged, SL_OP_GROUP_NORM));
        cr_expect_eq(merged->values[lanes_find(merged, SL_OP_TANH)->outputs[0]].tensor.shape.dims[1], 12);
        lanes_expect_equal(nets, 2, merged, 3, 1e-5);
        free_all(nets, 2, merged);
}

/* Appendix A. */
#define CHANNELS_IN  3
#define CHANNELS_OUT 2
#define MODELS       4
#define SIDE         5
#define WINDOW       3
#define MADE         (SIDE - WINDOW + 1)

/* w[c, c_in] * x[c_in] at one place: the valid cross-correlation. */
static double correlate(const float *w, const float *x, uint32_t row, uint32_t column)
{
        double sum = 0;

        for (uint32_t i = 0; i < WINDOW; i++)
                for (uint32_t j = 0; j < WINDOW; j++)
                        sum += (double)w[i * WINDOW + j] * x[(row + i) * SIDE + column + j];
        return sum;
}

/* Equation 2: y[c] = sum of w[c, c_in] * x[g + c_in], with g = C_in * floor(c / C_out). */
static double grouped(const float *w, const float *x, uint32_t c, uint32_t row, uint32_t column)
{
        uint32_t g = CHANNELS_IN * (c / CHANNELS_OUT);
        double sum = 0;

        for (uint32_t k = 0; k < CHANNELS_IN; k++)
                sum += correlate(w + (c * CHANNELS_IN + k) * WINDOW * WINDOW, x + (g + k) * SIDE * SIDE, row, column);
        return sum;
}

static void build_convolution(struct network *net, uint64_t seed, int64_t group)
{
        uint32_t x, w;

        network_init(net);
        net->state += seed * 0x9e3779b97f4a7c15u;
        x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, CHANNELS_IN * group, SIDE, SIDE));
        w = network_weights(net, DIMS(CHANNELS_OUT * group, CHANNELS_IN, WINDOW, WINDOW));
        x = network_node(net, SL_OP_CONV, VALUES(x, w),
                ATTRS({SL_ATTR_KERNEL_SHAPE, 2, {WINDOW, WINDOW}}, {SL_ATTR_STRIDES, 2, {1, 1}}, {SL_ATTR_PADS, 4, {0, 0, 0, 0}},
                        {SL_ATTR_DILATIONS, 2, {1, 1}}, {SL_ATTR_GROUP, 0, {group}}));
        network_output(net, x);
        network_finish(net);
}

Test(algorithm_1, appendix_a_a_grouped_convolution_is_all_convolutions)
{
        struct sl_merge_report report;
        struct network nets[MODELS];
        float x[MODELS * CHANNELS_IN * SIDE * SIDE];
        struct sl_graph *merged;
        const struct sl_node *conv;
        const float *w;

        for (uint32_t m = 0; m < MODELS; m++)
                build_convolution(&nets[m], m, 1);
        merged = lanes_merge(nets, MODELS, NULL, &report);
        conv = lanes_find(merged, SL_OP_CONV);
        w = sl_graph_constant(merged, conv->inputs[1]);
        cr_expect_eq(sl_attrs_int(&conv->attrs, SL_ATTR_GROUP, 0), MODELS);
        for (uint32_t i = 0; i < sizeof(x) / sizeof(*x); i++)
                x[i] = network_random(&nets[0]);
        /* Equation 6: channel C_out * m + c_out of it is channel c_out of model m, of x_m and w_m alone. */
        for (uint32_t m = 0; m < MODELS; m++) {
                const float *w_m = sl_graph_constant(nets[m].graph, nets[m].graph->nodes[0].inputs[1]);
                const float *x_m = x + m * CHANNELS_IN * SIDE * SIDE;

                for (uint32_t c = 0; c < CHANNELS_OUT; c++)
                        for (uint32_t at = 0; at < MADE * MADE; at++)
                                cr_assert_float_eq(grouped(w, x, CHANNELS_OUT * m + c, at / MADE, at % MADE),
                                        grouped(w_m, x_m, c, at / MADE, at % MADE), 1e-12);
        }
        lanes_expect_equal(nets, MODELS, merged, 2, 1e-6);
        free_all(nets, MODELS, merged);
}

Test(algorithm_1, groups_are_multiplied)
{
        struct sl_merge_report report;
        struct network nets[4];
        struct sl_graph *merged;

        for (uint32_t m = 0; m < 4; m++)
                build_convolution(&nets[m], m, 2);
        merged = lanes_merge(nets, 4, NULL, &report);
        cr_expect_eq(sl_attrs_int(&lanes_find(merged, SL_OP_CONV)->attrs, SL_ATTR_GROUP, 0), 8);
        lanes_expect_equal(nets, 4, merged, 1, 1e-6);
        free_all(nets, 4, merged);
}

Test(algorithm_1, table_1)
{
        cr_expect_eq(sl_merge_row(SL_OP_CONV)->dimension, SL_MERGE_CHANNEL);
        cr_expect_eq(sl_merge_row(SL_OP_LAYER_NORM)->dimension, SL_MERGE_CHANNEL);
        cr_expect_eq(sl_merge_row(SL_OP_BATCH_NORM)->dimension, SL_MERGE_CHANNEL);
        cr_expect_eq(sl_merge_row(SL_OP_MATMUL)->dimension, SL_MERGE_BATCH);
        cr_expect_eq(sl_merge_row(SL_OP_GEMM)->dimension, SL_MERGE_BATCH);
        cr_expect_eq(sl_merge_row(SL_OP_MAX_POOL)->dimension, SL_MERGE_DONT_CARE);
        cr_expect_eq(sl_merge_row(SL_OP_RELU)->dimension, SL_MERGE_DONT_CARE);
        cr_expect_eq(sl_merge_row(SL_OP_ADD)->dimension, SL_MERGE_DONT_CARE);
        for (uint32_t op = 0; op < SL_OP_COUNT; op++) {
                const struct sl_merge_row *row = sl_merge_row(op);

                cr_expect_not_null(row->becomes);
                cr_expect_eq(row->dimension == SL_MERGE_APART, !row->lane && !row->channel, "%s", sl_op_name(op));
        }
}

/* Operators of the zoo's networks behind the portable passes. */
Test(algorithm_1, each_operator_of_the_zoo_has_a_row_or_a_reason)
{
        static const char *const zoo[] = {"Conv", "Gemm", "MatMul", "LayerNormalization", "Cast", "Add", "Sub", "Mul", "Div",
                "Unsqueeze", "Gather", "MaxPool", "AveragePool", "GlobalAveragePool", "BatchNormalization", "Flatten", "Concat",
                "Squeeze", "Transpose", "Expand", "Shape", "LSTM", "Clip", "ReduceSum", "ReduceL2", "ReduceMean", "HardSigmoid",
                "Sigmoid", "Exp", "Split", "Reshape", "NonMaxSuppression", "GatherND", "Relu", "Softmax", "Slice"};

        for (uint32_t i = 0; i < sizeof(zoo) / sizeof(*zoo); i++)
                cr_expect_neq(
                        strcmp(sl_merge_row((uint32_t)sl_op_find(zoo[i]))->becomes, "there is no rule for it"), 0, "%s", zoo[i]);
        cr_expect_eq(sl_merge_row(SL_OP_ROW_ATTENTION)->dimension, SL_MERGE_BATCH);
}

/* A sum of three: of @channels convolutions and of products behind them. */
static void build_vote(struct network *net, uint64_t seed, uint32_t channels)
{
        uint32_t x, terms[3];

        network_init(net);
        net->state += seed * 0x9e3779b97f4a7c15u;
        x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 2, 4, 4));
        for (uint32_t i = 0; i < 3; i++)
                terms[i] = i < channels ? network_conv(net, x, 2, 2, 1, 1, 1)
                                        : network_node(net, SL_OP_MATMUL, VALUES(x, network_weights(net, DIMS(4, 4))), 0, NULL);
        network_output(net, network_node(net, SL_OP_SUM, 3, terms, 0, NULL));
        network_finish(net);
}

static uint32_t rank_of_sum(uint32_t channels)
{
        struct sl_merge_report report;
        struct network nets[2];
        struct sl_graph *merged;
        uint32_t rank;

        build_vote(&nets[0], 1, channels);
        build_vote(&nets[1], 2, channels);
        merged = lanes_merge(nets, 2, NULL, &report);
        rank = merged->values[lanes_find(merged, SL_OP_SUM)->outputs[0]].tensor.shape.rank;
        lanes_expect_equal(nets, 2, merged, 2, 1e-5);
        free_all(nets, 2, merged);
        return rank;
}

Test(algorithm_1, the_majority_of_the_parents_decides)
{
        cr_expect_eq(rank_of_sum(3), 4);
        cr_expect_eq(rank_of_sum(2), 4);
        cr_expect_eq(rank_of_sum(1), 5);
        cr_expect_eq(rank_of_sum(0), 5);
}

/* A sum of a convolution and of two that stay apart. */
Test(algorithm_1, parents_that_stay_apart_have_no_vote)
{
        struct sl_merge_report report;
        struct network nets[2];
        struct sl_graph *merged;

        for (uint32_t i = 0; i < 2; i++) {
                struct network *net = &nets[i];
                uint32_t x, terms[3];

                network_init(net);
                net->state += i;
                x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 2, 4, 4));
                terms[0] = network_conv(net, x, 2, 2, 1, 1, 1);
                for (uint32_t k = 1; k < 3; k++)
                        terms[k] = network_node(net, SL_OP_MEAN_VARIANCE_NORM, VALUES(x), 0, NULL);
                network_output(net, network_node(net, SL_OP_SUM, 3, terms, 0, NULL));
                network_finish(net);
        }
        merged = lanes_merge(nets, 2, NULL, &report);
        cr_expect_eq(lanes_count(merged, SL_OP_MEAN_VARIANCE_NORM), 4, "they stay apart");
        const struct sl_tensor *sum = &merged->values[lanes_find(merged, SL_OP_SUM)->outputs[0]].tensor;
        cr_expect_eq(sum->shape.rank, 4);
        cr_expect_eq(sum->shape.dims[1], 4);
        lanes_expect_equal(nets, 2, merged, 2, 1e-5);
        free_all(nets, 2, merged);
}

/* A product and a normalization from @axis on, of three axes, and an operation without weights. */
static struct sl_graph *merge_norm(struct network *nets, int64_t axis, uint64_t n_scales)
{
        struct sl_merge_report report;

        for (uint32_t i = 0; i < 2; i++) {
                struct network *net = &nets[i];
                uint32_t x, scales, shifts;

                network_init(net);
                net->state += i * 77;
                x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 4, 5));
                x = network_node(net, SL_OP_MATMUL, VALUES(x, network_weights(net, DIMS(5, 6))), 0, NULL);
                scales = n_scales == 6 ? network_scales(net, DIMS(6)) : network_scales(net, DIMS(4, 6));
                shifts = n_scales == 6 ? network_weights(net, DIMS(6)) : network_weights(net, DIMS(4, 6));
                x = network_node(net, SL_OP_LAYER_NORM, VALUES(x, scales, shifts), ATTRS({SL_ATTR_AXIS, 0, {axis}}));
                network_output(net, network_apply(net, SL_OP_TANH, x));
                network_finish(net);
        }
        return lanes_merge(nets, 2, NULL, &report);
}

/* Its channels are the axis that it normalizes: the third one. What follows takes it. */
Test(algorithm_1, a_normalization_of_three_axes_has_its_lanes_in_the_last_one)
{
        struct network nets[2];
        struct sl_graph *merged = merge_norm(nets, -1, 6);
        const struct sl_tensor *out = &merged->values[lanes_find(merged, SL_OP_TANH)->outputs[0]].tensor;

        cr_expect_eq(lanes_count(merged, SL_OP_GROUP_NORM), 1);
        cr_expect_eq(out->shape.rank, 3);
        cr_expect_eq(out->shape.dims[1], 4);
        cr_expect_eq(out->shape.dims[2], 12);
        lanes_expect_equal(nets, 2, merged, 3, 1e-5);
        free_all(nets, 2, merged);
}

/* Over two axes it is no group normalization: it is merged with its lanes in front. */
Test(algorithm_1, what_cannot_have_the_form_that_it_asks_for_takes_batch)
{
        struct network nets[2];
        struct sl_graph *merged = merge_norm(nets, 1, 24);

        cr_expect_eq(lanes_count(merged, SL_OP_GROUP_NORM), 0);
        cr_expect_eq(lanes_count(merged, SL_OP_LAYER_NORM), 1);
        cr_expect_eq(merged->values[lanes_find(merged, SL_OP_TANH)->outputs[0]].tensor.shape.rank, 4);
        lanes_expect_equal(nets, 2, merged, 3, 1e-5);
        free_all(nets, 2, merged);
}

Test(algorithm_1, ties_and_operators_without_parents_take_batch)
{
        struct sl_merge_report report;
        struct network nets[2];
        struct sl_graph *merged;

        for (uint32_t i = 0; i < 2; i++) {
                struct network *net = &nets[i];
                uint32_t x, a, b;

                network_init(net);
                net->state += i;
                x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 2, 4, 4));
                x = network_apply(net, SL_OP_TANH, x);
                a = network_conv(net, x, 2, 2, 1, 1, 1);
                b = network_node(net, SL_OP_MATMUL, VALUES(x, network_weights(net, DIMS(4, 4))), 0, NULL);
                network_output(net, network_node(net, SL_OP_MUL, VALUES(a, b), 0, NULL));
                network_finish(net);
        }
        merged = lanes_merge(nets, 2, NULL, &report);
        cr_expect_eq(merged->values[lanes_find(merged, SL_OP_TANH)->outputs[0]].tensor.shape.rank, 5);
        cr_expect_eq(merged->values[lanes_find(merged, SL_OP_MUL)->outputs[0]].tensor.shape.rank, 5);
        lanes_expect_equal(nets, 2, merged, 2, 1e-5);
        free_all(nets, 2, merged);
}

/* Channels of a Concat are joined lane by lane; so are the halves of a Split. */
Test(algorithm_1, lanes_never_interleave)
{
        struct sl_merge_report report;
        struct network nets[3];
        struct sl_graph *merged;

        for (uint32_t i = 0; i < 3; i++) {
                struct network *net = &nets[i];
                uint32_t x, a, b;

                network_init(net);
                net->state += i * 77;
                x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 2, 4, 4));
                a = network_conv(net, x, 2, 2, 1, 1, 1);
                b = network_conv(net, x, 2, 3, 3, 1, 1);
                x = network_node(net, SL_OP_CONCAT, VALUES(a, b), ATTRS({SL_ATTR_AXIS, 0, {1}}));
                network_output(net, network_conv(net, x, 5, 2, 1, 1, 1));
                network_finish(net);
        }
        merged = lanes_merge(nets, 3, NULL, &report);
        cr_expect_eq(report.n_merged, 4);
        cr_expect_eq(lanes_count(merged, SL_OP_TRANSPOSE), 0);
        lanes_expect_equal(nets, 3, merged, 2, 1e-5);
        free_all(nets, 3, merged);
}

/* A node that computes along @axis of four: of @kind 0 to 11. */
static uint32_t build_along(struct network *net, uint32_t x, uint32_t kind, int64_t axis)
{
        static const int64_t perms[][4] = {{0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1}};
        const int64_t *perm = perms[kind % 5];
        int64_t pads[8] = {0};

        pads[axis] = 1;
        pads[4 + axis] = 2;
        switch (kind) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
                return network_node(
                        net, SL_OP_TRANSPOSE, VALUES(x), ATTRS({SL_ATTR_PERM, 4, {perm[0], perm[1], perm[2], perm[3]}}));
        case 5:
                return network_node(net, SL_OP_PAD, VALUES(x),
                        ATTRS({SL_ATTR_PADS, 8, {pads[0], pads[1], pads[2], pads[3], pads[4], pads[5], pads[6], pads[7]}}));
        case 6:
        case 7:
                return network_node(
                        net, SL_OP_REDUCE_MEAN, VALUES(x), ATTRS({SL_ATTR_AXES, 1, {axis}}, {SL_ATTR_KEEPDIMS, 0, {kind == 6}}));
        case 8:
                return network_node(net, SL_OP_SOFTMAX, VALUES(x), ATTRS({SL_ATTR_AXIS, 0, {axis}}));
        case 9:
                return network_node(net, SL_OP_SLICE, VALUES(x),
                        ATTRS({SL_ATTR_STARTS, 1, {1}}, {SL_ATTR_ENDS, 1, {3}}, {SL_ATTR_AXES, 1, {axis}},
                                {SL_ATTR_STEPS, 1, {1}}));
        case 10:
                return network_node(net, SL_OP_UNSQUEEZE, VALUES(x), ATTRS({SL_ATTR_AXES, 1, {axis}}));
        case 11:
                return network_node(net, SL_OP_CONCAT, VALUES(x, x), ATTRS({SL_ATTR_AXIS, 0, {axis}}));
        default:
                return 0;
        }
}

/* Behind a convolution lanes are in the channels, behind a product in front: either way the node is one, and computes the same. */
Test(algorithm_1, nodes_along_any_axis_compute_the_same_wherever_lanes_are)
{
        for (uint32_t at = 0; at < 12 * 3 * 2; at++) {
                uint32_t kind = at / 6, by_product = at % 2;
                int64_t axis = 1 + at / 2 % 3;
                struct sl_merge_report report;
                struct network nets[2];
                struct sl_graph *merged;

                for (uint32_t i = 0; i < 2; i++) {
                        struct network *net = &nets[i];
                        uint32_t x;

                        network_init(net);
                        net->state += i * 77;
                        x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 3, 4, 5));
                        x = by_product ? network_node(net, SL_OP_MATMUL, VALUES(x, network_weights(net, DIMS(5, 5))), 0, NULL)
                                       : network_conv(net, x, 3, 3, 1, 1, 1);
                        network_output(net, build_along(net, x, kind, axis));
                        network_finish(net);
                }
                merged = lanes_merge(nets, 2, NULL, &report);
                cr_expect_eq(report.n_merged, 2, "kind %u, axis %d, %s", kind, (int)axis, by_product ? "product" : "convolution");
                lanes_expect_equal(nets, 2, merged, 2, 1e-5);
                free_all(nets, 2, merged);
        }
}

/* Of the second network each node of the chain is what the first one's next node is: what is common lies askew. */
static void build_chain(struct network *net, bool shifted)
{
        static const uint32_t ops[2][6] = {{SL_OP_NEG, SL_OP_RELU, SL_OP_ABS, SL_OP_SIGMOID, SL_OP_EXP, SL_OP_FLOOR},
                {SL_OP_CEIL, SL_OP_ABS, SL_OP_SIGMOID, SL_OP_EXP, SL_OP_FLOOR, SL_OP_RECIPROCAL}};
        uint32_t x, z, first;

        network_init(net);
        x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 8));
        z = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 8));
        first = network_apply(net, ops[shifted][0], x);
        z = network_apply(net, SL_OP_TANH, network_apply(net, SL_OP_COS, network_apply(net, SL_OP_SIN, z)));
        for (uint32_t i = 1; i < 6; i++)
                x = network_apply(net, ops[shifted][i], x);
        network_output(net, first);
        network_output(net, z);
        network_output(net, x);
        network_finish(net);
}

Test(algorithm_1, what_is_common_may_lie_at_other_places_in_each)
{
        struct sl_merge_report report;
        struct network nets[2];
        struct sl_graph *merged;

        build_chain(&nets[0], false);
        build_chain(&nets[1], true);
        merged = lanes_merge(nets, 2, NULL, &report);
        lanes_expect_equal(nets, 2, merged, 2, 1e-5);
        free_all(nets, 2, merged);
}

Test(algorithm_1, ports_follow_each_other_lane_by_lane)
{
        struct sl_merge_report report;
        struct network nets[2];
        struct sl_graph *merged;

        build_ffnn(&nets[0], 1);
        build_ffnn(&nets[1], 2);
        merged = lanes_merge(nets, 2, NULL, &report);
        cr_expect_eq(report.first_input[1], 1);
        cr_expect_eq(report.first_output[2], 2);
        cr_expect_str_eq(merged->values[merged->inputs[1]].name, "1/in");
        cr_expect_eq(merged->n_outputs, 2);
        free_all(nets, 2, merged);
}
