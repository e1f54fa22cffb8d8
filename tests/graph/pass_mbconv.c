/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of a pointwise, a depthwise and a pointwise Conv, and what keeps them apart.
 */
#include "backend.h"
#include "base/error.h"
#include "pass.h"
#include "pass_bench.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define CHANNELS 4
#define INNER    48

#define SIDE 80 /* what the first convolution makes is more than 1 MiB for each sample */

enum form { WHOLE, WANTED, SQUEEZED, SHIFTED, LEVEL, ADDED_BEFORE, ADDED_BETWEEN };

static void convolution(
        struct builder *b, const char *input, const char *name, int64_t filters, int64_t channels, int64_t side, int64_t group)
{
        char inputs[256], weights[64], bias[64];
        Onnx__NodeProto *node;

        snprintf(weights, sizeof(weights), "%s_w", name);
        snprintf(bias, sizeof(bias), "%s_b", name);
        snprintf(inputs, sizeof(inputs), "%s,%s,%s", input, weights, bias);
        builder_random(b, weights, DIMS(filters, channels, side, side));
        builder_random(b, bias, DIMS(filters));
        node = builder_node(b, "Conv", inputs, name);
        builder_attr_ints(b, node, "pads", 4, (const int64_t[]){side / 2, side / 2, side / 2, side / 2});
        builder_attr_int(b, node, "group", group);
}

#define COPIES_OF_X "x,x,x,x,x,x,x,x,x,x,x,x" /* INNER channels together */

/* Images of @side pixels; what lies between the convolutions has 48 channels. */
static struct builder *block_builder(enum form form, int64_t side)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, CHANNELS, side, side));

        if (form == ADDED_BEFORE || form == ADDED_BETWEEN)
                builder_attr_int(b, builder_node(b, "Concat", COPIES_OF_X, "copies"), "axis", 1);
        if (form == LEVEL)
                convolution(b, "x", "wide", INNER / 2, CHANNELS, 3, 1);
        convolution(
                b, form == LEVEL ? "wide" : "x", "expand", INNER, form == LEVEL ? INNER / 2 : CHANNELS, form == SHIFTED ? 3 : 1, 1);
        builder_node(b, form == ADDED_BEFORE ? "Add" : "Relu", form == ADDED_BEFORE ? "expand,copies" : "expand", "e");
        convolution(b, "e", "depthwise", INNER, 1, 3, INNER);
        builder_node(b, form == ADDED_BETWEEN ? "Add" : "HardSwish", form == ADDED_BETWEEN ? "depthwise,copies" : "depthwise", "d");
        if (form == SQUEEZED) {
                builder_node(b, "GlobalAveragePool", "d", "mean");
                builder_node(b, "Mul", "d,mean", "scaled");
        }
        convolution(b, form == SQUEEZED ? "scaled" : "d", "project", CHANNELS, INNER, 1, 1);
        builder_node(b, "Add", "project,x", form == WANTED ? "sum" : "y");
        if (form == WANTED) {
                builder_node(b, "ReduceMax", "e", "most");
                builder_node(b, "Mul", "sum,most", "y");
        }
        builder_output(b, "y");
        return b;
}

static int to_blocks(struct sl_graph *graph, struct sl_error *error)
{
        int r = sl_pass_fuse_residual(graph, error);

        r = r ? r : sl_pass_fuse_activation(graph, error);
        return r ? r : sl_pass_join_mbconv(graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, error);
}

/* Whether this processor has a kernel for blocks. */
static bool has_kernel(void)
{
        struct sl_node_desc node = {.op = SL_OP_MBCONV, .n_inputs = 4, .n_outputs = 1};
        static const int64_t shapes[4][4] = {{1, 16, 8, 8}, {16, 1, 3, 3}, {0}, {16, 16, 1, 1}};

        for (uint32_t i = 0; i < 4; i++) {
                node.inputs[i].dtype = i == 2 ? SL_DTYPE_NONE : SL_DTYPE_F32;
                node.inputs[i].shape.rank = i == 2 ? 0 : 4;
                memcpy(node.inputs[i].shape.dims, shapes[i], sizeof(shapes[i]));
        }
        sl_attrs_set_int(&node.attrs, SL_ATTR_GROUP, 16);
        cr_assert_eq(sl_op_infer(&node, NULL), 0);
        node.inputs[0].layout = node.outputs[0].layout = SL_LAYOUT_CHANNELS_LAST;
        return sl_backend_find("cpu") && sl_backend_find("cpu")->planner->supports(NULL, &node);
}

static void expect_joined(enum form form, int64_t side, uint32_t blocks, uint32_t convolutions)
{
        struct builder *b = block_builder(form, side);
        struct sl_graph *graph = run_pass(b, to_blocks);

        cr_expect_eq(count_ops(graph, SL_OP_MBCONV), has_kernel() ? blocks : 0, "form %d", form);
        cr_expect_eq(count_ops(graph, SL_OP_CONV), has_kernel() ? convolutions : form == LEVEL ? 4 : 3, "form %d", form);
        sl_graph_free(graph);
        builder_free(b);
}

Test(passes, convolutions_around_a_depthwise_one_become_one_node_with_the_residual)
{
        if (!has_kernel())
                cr_skip_test("this processor has no kernel for blocks");
        expect_after(block_builder(WHOLE, SIDE), to_blocks,
                "project = starling.MBConv(x [N,4,80,80], depthwise_w [48,1,3,3], depthwise_b [48], expand_w [48,4,1,1], "
                "expand_b [48], project_w [4,48,1,1], project_b [4], x [N,4,80,80]) {pads=[1,1,1,1], group=48, activations=[1,7], "
                "activation_alpha=[0,0], activation_beta=[0,0]} + residual -> y [N,4,80,80]\n");
}

Test(passes, a_convolution_behind_something_else_stays_apart_from_its_block)
{
        expect_joined(SQUEEZED, SIDE, 1, 1);
}

Test(passes, convolutions_stay_apart_where_others_read_between_them_or_the_first_is_not_pointwise)
{
        expect_joined(WANTED, SIDE, 0, 3);
        expect_joined(SHIFTED, SIDE, 0, 3);
}

/* The kernel adds a residual behind its last part alone. */
Test(passes, a_convolution_with_a_residual_of_its_own_is_joined_to_nothing_behind_it)
{
        expect_joined(ADDED_BEFORE, SIDE, 0, 3);
        expect_joined(ADDED_BETWEEN, SIDE, 1, 1);
}

/* 108 KiB, which fill no processor's L2 cache. */
Test(passes, convolutions_with_little_between_them_stay_apart)
{
        expect_joined(WHOLE, 24, 0, 3);
}

Test(passes, convolutions_stay_apart_where_the_first_makes_hardly_more_channels_than_it_reads)
{
        expect_joined(LEVEL, SIDE, 0, 4);
}
