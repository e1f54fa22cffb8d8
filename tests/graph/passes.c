/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each pass on a small graph: what it looks like before and after, and that both compute the same.
 */
#include "backend.h"
#include "base/error.h"
#include "builder.h"
#include "graph.h"
#include "pass.h"
#include "pass_bench.h"

#include <criterion/criterion.h>
#include <string.h>

/* x [N,4,5,5] */
static struct builder *image_builder(void)
{
        return builder_new_of_x(13, DIMS(-1, 4, 5, 5));
}

static void add_conv(struct builder *b, const char *input, const char *weights, const char *output)
{
        char inputs[64];
        Onnx__NodeProto *conv;

        snprintf(inputs, sizeof(inputs), "%s,%s", input, weights);
        builder_random(b, weights, DIMS(4, 4, 3, 3));
        conv = builder_node(b, "Conv", inputs, output);
        builder_attr_ints(b, conv, "pads", DIMS(1, 1, 1, 1));
}

static int all_passes(struct sl_graph *graph, struct sl_error *error)
{
        return sl_passes_run(graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, error);
}

Test(passes, constants_fold_and_what_hangs_on_the_input_stays)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 4));

        builder_random(b, "a", DIMS(4));
        builder_random(b, "c", DIMS(4));
        builder_node(b, "Add", "a,c", "s");
        builder_node(b, "Exp", "s", "e");
        builder_node(b, "Mul", "x,e", "y");
        builder_output(b, "y");
        expect_after(b, sl_pass_fold_constants, "y = Mul(x [N,4], e [4]) -> y [N,4]\n");
}

static const void *data_of(const struct sl_graph *graph, const char *name)
{
        for (uint32_t i = 0; i < graph->n_values; i++)
                if (!strcmp(graph->values[i].name, name))
                        return graph->values[i].kind == SL_VALUE_CONSTANT ? graph->values[i].data : NULL;
        return NULL;
}

Test(passes, weights_that_only_get_another_shape_are_not_copied)
{
        const int64_t shape[] = {2, 3};
        struct builder *b = builder_new_of_x(13, DIMS(-1, 2));

        builder_random(b, "w", DIMS(3, 2, 1));
        builder_ints(b, "shape", DIMS(2), shape);
        builder_node(b, "Reshape", "w,shape", "r");
        builder_transpose(b, "w", "t", DIMS(1, 0, 2));
        builder_node(b, "Reshape", "t,shape", "u");
        builder_node(b, "MatMul", "x,r", "a");
        builder_node(b, "MatMul", "x,u", "c");
        builder_node(b, "Add", "a,c", "y");
        builder_output(b, "y");
        struct sl_graph *graph = run_pass(b, sl_pass_fold_constants);

        cr_assert_not_null(data_of(graph, "r"));
        cr_expect_eq(data_of(graph, "r"), data_of(graph, "w"));
        cr_expect_neq(data_of(graph, "t"), data_of(graph, "w"), "what is turned has other bytes");
        cr_expect_eq(data_of(graph, "u"), data_of(graph, "t"));
        sl_graph_free(graph);
        builder_free(b);
}

Test(passes, identities_go_and_outputs_keep_their_names)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 4, 2));

        builder_node(b, "Identity", "x", "i");
        Onnx__NodeProto *cast = builder_node(b, "Cast", "i", "c");
        builder_attr_int(b, cast, "to", SL_DTYPE_F32);
        builder_transpose(b, "c", "t", DIMS(1, 2, 0));
        builder_transpose(b, "t", "u", DIMS(2, 0, 1));
        builder_node(b, "Relu", "u", "r");
        builder_node(b, "Dropout", "r", "y");
        builder_output(b, "y");
        struct sl_graph *graph = run_pass(b, sl_pass_remove_identity);

        cr_assert_eq(sl_pass_remove_dead(graph, NULL), 0);
        expect_text(graph, "r = Relu(x [N,4,2]) -> y [N,4,2]\n");
        sl_graph_free(graph);
        builder_free(b);
}

Test(passes, an_identity_between_input_and_output_stays)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 4));

        builder_node(b, "Identity", "x", "y");
        builder_output(b, "y");
        expect_after(b, sl_pass_remove_identity, "y = Identity(x [N,4]) -> y [N,4]\n");
}

Test(passes, a_transpose_that_turns_nothing_goes)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 4, 2));

        builder_transpose(b, "x", "t", DIMS(0, 1, 2));
        builder_transpose(b, "t", "u", DIMS(0, 2, 1));
        builder_node(b, "Relu", "u", "y");
        builder_output(b, "y");
        struct sl_graph *graph = run_pass(b, sl_pass_remove_identity);

        cr_assert_eq(sl_pass_remove_dead(graph, NULL), 0);
        cr_assert_eq(count_ops(graph, SL_OP_TRANSPOSE), 1u);
        sl_graph_free(graph);
        builder_free(b);
}

Test(passes, a_transpose_that_was_undone_does_not_hide_the_only_user)
{
        struct builder *b = image_builder();

        add_conv(b, "x", "w", "c");
        builder_transpose(b, "c", "t", DIMS(0, 2, 3, 1));
        builder_transpose(b, "t", "u", DIMS(0, 3, 1, 2));
        builder_node(b, "Relu", "u", "y");
        builder_output(b, "y");
        expect_after(b, all_passes, "c = Conv(x [N,4,5,5], w [4,4,3,3]) {pads=[1,1,1,1]} | Relu -> y [N,4,5,5]\n");
}

Test(passes, transposes_that_do_not_undo_each_other_stay)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 4, 2));

        builder_transpose(b, "x", "t", DIMS(1, 2, 0));
        builder_transpose(b, "t", "u", DIMS(1, 2, 0));
        builder_node(b, "Relu", "u", "y");
        builder_output(b, "y");
        expect_ops_after(b, sl_pass_remove_identity, SL_OP_TRANSPOSE, 2);
}

static void add_batch_norm(struct builder *b, const char *input, const char *output)
{
        char inputs[64];
        float *variance = builder_alloc(b, 4 * sizeof(float));

        fill_random(variance, 4, 3);
        for (int i = 0; i < 4; i++)
                variance[i] = variance[i] * variance[i] + 0.1f;
        builder_random(b, "scale", DIMS(4));
        builder_random(b, "shift", DIMS(4));
        builder_random(b, "mean", DIMS(4));
        builder_floats(b, "variance", DIMS(4), variance);
        snprintf(inputs, sizeof(inputs), "%s,scale,shift,mean,variance", input);
        builder_node(b, "BatchNormalization", inputs, output);
}

Test(passes, batch_normalization_folds_into_the_conv_before_it)
{
        struct builder *b = image_builder();

        add_conv(b, "x", "w", "c");
        add_batch_norm(b, "c", "y");
        builder_output(b, "y");
        expect_after(b, sl_pass_fold_batch_norm, "c = Conv(x [N,4,5,5], w [4,4,3,3], c [4]) {pads=[1,1,1,1]} -> y [N,4,5,5]\n");
}

static void check_gemm_fold(bool transposed)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 6));

        if (transposed)
                builder_random(b, "w", DIMS(4, 6));
        else
                builder_random(b, "w", DIMS(6, 4));
        builder_random(b, "bias", DIMS(1, 4));
        Onnx__NodeProto *gemm = builder_node(b, "Gemm", "x,w,bias", "g");
        builder_attr_int(b, gemm, "transB", transposed);
        builder_attr_float(b, gemm, "alpha", 0.5f);
        builder_attr_float(b, gemm, "beta", 2);
        add_batch_norm(b, "g", "y");
        builder_output(b, "y");
        expect_ops_after(b, sl_pass_fold_batch_norm, SL_OP_BATCH_NORM, 0);
}

Test(passes, batch_normalization_folds_into_the_gemm_before_it)
{
        check_gemm_fold(false);
        check_gemm_fold(true);
}

Test(passes, batch_normalization_stays_when_the_conv_has_other_users)
{
        struct builder *b = image_builder();

        add_conv(b, "x", "w", "c");
        add_batch_norm(b, "c", "n");
        builder_node(b, "Add", "c,n", "y");
        builder_output(b, "y");
        expect_ops_after(b, sl_pass_fold_batch_norm, SL_OP_BATCH_NORM, 1);
}

Test(passes, a_constant_vector_becomes_the_bias)
{
        struct builder *b = image_builder();

        add_conv(b, "x", "w", "c");
        builder_random(b, "v", DIMS(1, 4, 1, 1));
        builder_random(b, "u", DIMS(4, 1, 1));
        builder_node(b, "Add", "v,c", "d");
        builder_node(b, "Add", "d,u", "y");
        builder_output(b, "y");
        expect_after(b, sl_pass_fuse_bias, "c = Conv(x [N,4,5,5], w [4,4,3,3], c [4]) {pads=[1,1,1,1]} -> y [N,4,5,5]\n");
}

Test(passes, a_constant_vector_becomes_the_bias_of_a_matmul)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 6));

        builder_random(b, "w", DIMS(6, 4));
        builder_random(b, "v", DIMS(4));
        builder_node(b, "MatMul", "x,w", "m");
        builder_node(b, "Add", "m,v", "y");
        builder_output(b, "y");
        expect_after(b, sl_pass_fuse_bias, "m = MatMul(x [N,6], w [6,4], m [4]) -> y [N,4]\n");
}

Test(passes, a_constant_along_another_axis_is_no_bias)
{
        struct builder *b = image_builder();

        add_conv(b, "x", "w", "c");
        builder_random(b, "v", DIMS(5));
        builder_node(b, "Add", "c,v", "y");
        builder_output(b, "y");
        expect_ops_after(b, sl_pass_fuse_bias, SL_OP_ADD, 1);
}

/* A branch with a bias, a scale for each channel, and one for all; what is added behind them is a residual then. */
static int fold_scales(struct sl_graph *graph, struct sl_error *error)
{
        int result = sl_pass_fuse_bias(graph, error);

        if (result == 0)
                result = sl_pass_fold_scale(graph, error);
        return result ? result : sl_pass_fuse_residual(graph, error);
}

Test(passes, a_scale_goes_into_the_weights_and_the_bias_of_a_conv)
{
        struct builder *b = image_builder();

        add_conv(b, "x", "w", "c");
        builder_random(b, "v", DIMS(4, 1, 1));
        builder_random(b, "gamma", DIMS(1, 4, 1, 1));
        builder_random(b, "beta", DIMS(1));
        builder_node(b, "Add", "c,v", "d");
        builder_node(b, "Mul", "gamma,d", "e");
        builder_node(b, "Mul", "e,beta", "f");
        builder_node(b, "Add", "f,x", "y");
        builder_output(b, "y");
        expect_after(b, fold_scales,
                "c = Conv(x [N,4,5,5], w [4,4,3,3], c [4], x [N,4,5,5]) {pads=[1,1,1,1]} + residual -> y [N,4,5,5]\n");
}

Test(passes, a_scale_goes_into_the_columns_of_a_product)
{
        for (int transposed = 0; transposed < 2; transposed++) {
                struct builder *b = builder_new_of_x(13, DIMS(-1, 6));

                builder_random(b, "w", 2, transposed ? (int64_t[]){4, 6} : (int64_t[]){6, 4});
                builder_random(b, "v", DIMS(4));
                builder_random(b, "gamma", DIMS(4));
                if (transposed) {
                        builder_attr_int(b, builder_node(b, "Gemm", "x,w,v", "d"), "transB", 1);
                } else {
                        builder_node(b, "MatMul", "x,w", "m");
                        builder_node(b, "Add", "m,v", "d");
                }
                builder_node(b, "Mul", "d,gamma", "y");
                builder_output(b, "y");
                struct sl_graph *graph = run_pass(b, fold_scales);

                cr_expect_eq(count_live(graph), 1u, "%s", transposed ? "Gemm" : "MatMul");
                sl_graph_free(graph);
                builder_free(b);
        }
}

Test(passes, a_scale_along_another_axis_or_of_what_others_use_stays)
{
        static const int64_t shapes[][4] = {{1, 1, 1, 5}, {1, 1, 5, 1}, {1, 4, 5, 5}, {1, 4, 1, 1}};

        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
                struct builder *b = image_builder();

                add_conv(b, "x", "w", "c");
                builder_random(b, "gamma", 4, (int64_t[]){shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]});
                builder_node(b, "Mul", "c,gamma", "d");
                builder_node(b, i == 3 ? "Add" : "Mul", i == 3 ? "d,c" : "d,d", "y");
                builder_output(b, "y");
                struct sl_graph *graph = run_pass(b, sl_pass_fold_scale);

                cr_expect_eq(count_live(graph), 3u, "shape %zu", i);
                sl_graph_free(graph);
                builder_free(b);
        }
}

Test(passes, a_residual_that_is_there_before_the_conv_is_fused)
{
        struct builder *b = image_builder();

        builder_node(b, "Relu", "x", "r");
        add_conv(b, "r", "w", "c");
        builder_node(b, "Add", "c,r", "y");
        builder_output(b, "y");
        expect_after(b, sl_pass_fuse_residual,
                "r = Relu(x [N,4,5,5]) -> r [N,4,5,5]\n"
                "c = Conv(r [N,4,5,5], w [4,4,3,3], -, r [N,4,5,5]) {pads=[1,1,1,1]} + residual -> y [N,4,5,5]\n");
}

Test(passes, a_residual_that_comes_after_the_conv_is_not_fused)
{
        struct builder *b = image_builder();

        add_conv(b, "x", "w", "c");
        builder_node(b, "Relu", "x", "r");
        builder_node(b, "Add", "c,r", "y");
        builder_output(b, "y");
        expect_ops_after(b, sl_pass_fuse_residual, SL_OP_ADD, 1);
}

Test(passes, of_two_convs_the_later_one_takes_the_sum)
{
        struct builder *b = image_builder();

        add_conv(b, "x", "w", "c");
        add_conv(b, "x", "v", "d");
        builder_node(b, "Add", "c,d", "y");
        builder_output(b, "y");
        struct sl_graph *graph = run_pass(b, sl_pass_fuse_residual);

        cr_assert_eq(count_ops(graph, SL_OP_ADD), 0u);
        cr_assert_eq(graph->nodes[0].epilogue.has_residual, 0u);
        cr_assert_eq(graph->nodes[1].epilogue.has_residual, 1u);
        sl_graph_free(graph);
        builder_free(b);
}

Test(passes, a_residual_of_another_shape_or_a_conv_with_other_users_is_not_fused)
{
        struct builder *b = image_builder();

        builder_node(b, "GlobalAveragePool", "x", "g");
        add_conv(b, "x", "w", "c");
        builder_node(b, "Add", "c,g", "broadcast");
        add_conv(b, "x", "v", "d");
        builder_node(b, "Add", "d,x", "s");
        builder_node(b, "Mul", "d,s", "shared");
        builder_node(b, "Add", "shared,broadcast", "y");
        builder_output(b, "y");
        expect_ops_after(b, sl_pass_fuse_residual, SL_OP_ADD, 3);
}

static void check_activation(const char *type, uint32_t op, uint32_t activation, int64_t opset)
{
        struct builder *b = builder_new_of_x(opset, DIMS(-1, 4, 5, 5));

        add_conv(b, "x", "w", "c");
        if (op == SL_OP_CLIP) {
                builder_floats(b, "low", 0, NULL, (float[]){-0.25f});
                builder_floats(b, "high", 0, NULL, (float[]){0.5f});
                builder_node(b, type, "c,low,high", "y");
        } else {
                builder_node(b, type, "c", "y");
        }
        builder_output(b, "y");
        struct sl_graph *graph = run_pass(b, sl_pass_fuse_activation);

        cr_assert_eq(count_live(graph), 1u, "%s is not fused", type);
        cr_assert_eq(graph->nodes[0].epilogue.activation, activation, "%s", type);
        sl_graph_free(graph);
        builder_free(b);
}

Test(passes, activations_go_into_the_epilogue)
{
        check_activation("Relu", SL_OP_RELU, SL_ACT_RELU, 13);
        check_activation("Clip", SL_OP_CLIP, SL_ACT_CLIP, 13);
        check_activation("Sigmoid", SL_OP_SIGMOID, SL_ACT_SIGMOID, 13);
        check_activation("Tanh", SL_OP_TANH, SL_ACT_TANH, 13);
        check_activation("LeakyRelu", SL_OP_LEAKY_RELU, SL_ACT_LEAKY_RELU, 13);
        check_activation("Elu", SL_OP_ELU, SL_ACT_ELU, 13);
        check_activation("HardSwish", SL_OP_HARD_SWISH, SL_ACT_HARD_SWISH, 14);
        check_activation("Gelu", SL_OP_GELU, SL_ACT_GELU_ERF, 20);
}

Test(passes, a_gelu_by_tanh_has_no_epilogue)
{
        struct builder *b = builder_new_of_x(20, DIMS(-1, 4, 5, 5));

        add_conv(b, "x", "w", "c");
        builder_attr_string(b, builder_node(b, "Gelu", "c", "y"), "approximate", "tanh");
        builder_output(b, "y");
        struct sl_graph *graph = run_pass(b, sl_pass_fuse_activation);

        cr_assert_eq(count_live(graph), 2u);
        sl_graph_free(graph);
        builder_free(b);
}

Test(passes, swish_is_recognised_when_it_is_spelled_out)
{
        struct builder *b = image_builder();

        add_conv(b, "x", "w", "c");
        builder_node(b, "Sigmoid", "c", "s");
        builder_node(b, "Mul", "s,c", "y");
        builder_output(b, "y");
        expect_after(b, sl_pass_fuse_activation, "c = Conv(x [N,4,5,5], w [4,4,3,3]) {pads=[1,1,1,1]} | Swish -> y [N,4,5,5]\n");
}

Test(passes, swish_stays_when_the_conv_has_a_third_user)
{
        struct builder *b = image_builder();

        add_conv(b, "x", "w", "c");
        builder_node(b, "Sigmoid", "c", "s");
        builder_node(b, "Mul", "s,c", "m");
        builder_node(b, "Add", "m,c", "y");
        builder_output(b, "y");
        struct sl_graph *graph = run_pass(b, sl_pass_fuse_activation);

        cr_assert_eq(count_live(graph), 4u);
        sl_graph_free(graph);
        builder_free(b);
}

Test(passes, what_no_output_needs_goes)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 4));

        builder_node(b, "Relu", "x", "y");
        builder_output(b, "y");
        struct sl_graph *graph = builder_import(b);
        uint32_t value, node;

        cr_assert_eq(sl_graph_add_value(graph, "unused", SL_VALUE_COMPUTED, &graph->values[graph->inputs[0]].tensor, &value), 0);
        cr_assert_eq(sl_graph_add_node(graph, SL_OP_EXP, "unused", graph->inputs, 1, &value, 1, &node), 0);
        cr_assert_eq(count_live(graph), 2u);
        cr_assert_eq(sl_pass_remove_dead(graph, NULL), 0);
        expect_text(graph, "y = Relu(x [N,4]) -> y [N,4]\n");
        cr_assert_eq(graph->values[value].dead, 1u);
        sl_graph_free(graph);
        builder_free(b);
}

Test(passes, a_residual_block_becomes_two_nodes)
{
        struct builder *b = image_builder();

        add_conv(b, "x", "w", "c");
        add_batch_norm(b, "c", "n");
        builder_node(b, "Relu", "n", "r");
        add_conv(b, "r", "v", "d");
        builder_node(b, "Add", "d,x", "a");
        builder_node(b, "Relu", "a", "y");
        builder_output(b, "y");
        expect_after(b, all_passes,
                "c = Conv(x [N,4,5,5], w [4,4,3,3], c [4]) {pads=[1,1,1,1]} | Relu -> r [N,4,5,5]\n"
                "d = Conv(r [N,4,5,5], v [4,4,3,3], -, x [N,4,5,5]) {pads=[1,1,1,1]} + residual | Relu -> y [N,4,5,5]\n");
}

Test(passes, a_pass_that_is_left_out_does_not_run)
{
        struct builder *b = image_builder();

        add_conv(b, "x", "w", "c");
        builder_node(b, "Relu", "c", "y");
        builder_output(b, "y");
        struct sl_graph *graph = builder_import(b);

        cr_assert_eq(sl_passes_run(graph, &(struct sl_pass_options){.without = 1u << SL_PASS_FUSE_ACTIVATION}, NULL), 0);
        cr_assert_eq(count_live(graph), 2u);
        sl_graph_free(graph);
        builder_free(b);
}

Test(passes, run_phase_by_phase)
{
        for (uint32_t pass = 1; pass < SL_PASS_COUNT; pass++)
                cr_expect_leq(sl_pass_phase(pass - 1), sl_pass_phase(pass), "%s", sl_pass_name(pass));
}

/* A stranger that has kernels, wants nothing particular and gains by nothing. */
static bool takes_all(const struct sl_target *target, const struct sl_node_desc *node)
{
        (void)target, (void)node;
        return true;
}

static const struct sl_planner plain_planner = {.supports = takes_all};
static const struct sl_backend plain_backend = {.name = "cpu", .planner = &plain_planner};

static struct sl_graph *bytes_for(const struct sl_backend *backend)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 4));
        struct sl_graph *graph;

        builder_floats(b, "scale", 0, NULL, (const float[]){0.5f});
        builder_raw(b, "zero", SL_DTYPE_I8, 0, NULL, (const int8_t[]){3});
        builder_node(b, "QuantizeLinear", "x,scale,zero", "q");
        builder_node(b, "DequantizeLinear", "q,scale,zero", "y");
        builder_output(b, "y");
        graph = builder_import(b);
        cr_assert_eq(sl_passes_run(graph, &(struct sl_pass_options){.backend = backend}, NULL), 0);
        builder_free(b);
        return graph;
}

Test(passes, ask_a_backend_for_its_traits_and_not_for_its_name)
{
        struct sl_graph *wants = bytes_for(sl_backend_find("cpu")), *does_not = bytes_for(&plain_backend),
                        *nobody = bytes_for(NULL);

        cr_expect_eq(wants->values[wants->nodes[0].outputs[0]].tensor.dtype, SL_DTYPE_U8);
        cr_expect_eq(does_not->values[does_not->nodes[0].outputs[0]].tensor.dtype, SL_DTYPE_I8);
        cr_expect_eq(nobody->values[nobody->nodes[0].outputs[0]].tensor.dtype, SL_DTYPE_I8);
        sl_graph_free(wants);
        sl_graph_free(does_not);
        sl_graph_free(nobody);
}

Test(passes, what_has_nothing_in_common_stays_apart)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 4));
        struct sl_graph *graphs[2], *merged;

        builder_node(b, "Relu", "x", "y");
        builder_output(b, "y");
        graphs[0] = builder_import(b);
        builder_node(b, "Sin", "x", "z");
        b->graph.node[0] = b->graph.node[1];
        b->graph.n_node = 1;
        b->graph.n_output = 0;
        builder_output(b, "z");
        graphs[1] = builder_import(b);
        cr_assert_eq(sl_graph_new(&merged), 0);
        for (int i = 0; i < 2; i++)
                cr_assert_eq(sl_passes_run_phase(graphs[i], SL_PASS_PORTABLE, &(struct sl_pass_options){0}, NULL), 0);
        cr_expect_eq(sl_passes_merge((const struct sl_graph *const *)graphs, 2, 0, merged, NULL), 0);
        cr_expect_eq(merged->n_nodes, 0);
        sl_graph_free(merged);
        sl_graph_free(graphs[0]);
        sl_graph_free(graphs[1]);
        builder_free(b);
}

Test(passes, the_checker_finds_a_use_before_the_producer)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 4));

        builder_node(b, "Relu", "x", "r");
        builder_node(b, "Exp", "r", "y");
        builder_output(b, "y");
        struct sl_graph *graph = builder_import(b);
        struct sl_error error = {0};

        graph->nodes[0].inputs[0] = graph->nodes[1].outputs[0];
        cr_assert_eq(sl_graph_check(graph, &error), -EINVAL);
        cr_assert(strstr(error.text, "is not made by any node before it"), "%s", error.text);
        sl_graph_free(graph);
        builder_free(b);
}

Test(passes, a_pad_of_zeros_goes_into_the_convolution_behind_it)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 4, 5, 5));

        builder_ints(b, "pads", DIMS(8), (const int64_t[]){0, 0, 0, 1, 0, 0, 2, 0});
        builder_node(b, "Pad", "x,pads", "p");
        add_conv(b, "p", "w", "y");
        builder_output(b, "y");
        expect_after(b, all_passes, "y = Conv(x [N,4,5,5], w [4,4,3,3]) {pads=[1,2,3,1]} -> y [N,4,7,6]\n");
}

Test(passes, a_pad_of_something_else_stays)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 4, 5, 5));

        builder_ints(b, "pads", DIMS(8), (const int64_t[]){0, 0, 1, 1, 0, 0, 1, 1});
        builder_floats(b, "one", 0, NULL, &(float){1});
        builder_node(b, "Pad", "x,pads,one", "p");
        add_conv(b, "p", "w", "y");
        builder_output(b, "y");
        expect_ops_after(b, all_passes, SL_OP_PAD, 1);
}

static int activation_then_residual(struct sl_graph *graph, struct sl_error *error)
{
        int result = sl_pass_fuse_activation(graph, error);

        return result ? result : sl_pass_fuse_residual(graph, error);
}

/* A kernel adds first: what is added behind an activation is another sum. */
Test(passes, a_residual_behind_an_activation_stays_an_add)
{
        struct builder *b = image_builder();

        add_conv(b, "x", "w", "c");
        builder_node(b, "Relu", "c", "r");
        builder_node(b, "Add", "r,x", "y");
        builder_output(b, "y");
        struct sl_graph *graph = run_pass(b, activation_then_residual);

        cr_expect_eq(count_ops(graph, SL_OP_ADD), 1);
        cr_expect_eq(count_ops(graph, SL_OP_RELU), 0);
        sl_graph_free(graph);
        builder_free(b);
}
