/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of nodes that exporters write for one operator: Gelu and LayerNormalization, with operands in every order, and
 * shuffles of channels.
 */
#include "backend.h"
#include "base/error.h"
#include "pass.h"
#include "pass_bench.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEATURES 6

static struct builder *rows_builder(void)
{
        return builder_new_of_x(13, DIMS(-1, FEATURES));
}

static void scalar(struct builder *b, const char *name, float value)
{
        builder_floats(b, name, 0, NULL, &value);
}

static void binary(struct builder *b, const char *type, bool swapped, const char *left, const char *right, const char *output)
{
        char inputs[128];

        snprintf(inputs, sizeof(inputs), "%s,%s", swapped ? right : left, swapped ? left : right);
        builder_node(b, type, inputs, output);
}

static void gelu_scalars(struct builder *b)
{
        scalar(b, "root", 1.41421356f);
        scalar(b, "inverse", 0.70710678f);
        scalar(b, "one", 1.0f);
        scalar(b, "half", 0.5f);
}

#define GELU "y = Gelu(x [N,6]) {approximate=0} -> y [N,6]\n"

Test(passes, gelu_by_erf_is_one_node_in_every_order_of_operands)
{
        for (int swapped = 0; swapped < 16; swapped++) {
                struct builder *b = rows_builder();

                gelu_scalars(b);
                if (swapped & 1)
                        builder_node(b, "Div", "x,root", "d");
                else
                        binary(b, "Mul", swapped & 2, "x", "inverse", "d");
                builder_node(b, "Erf", "d", "e");
                binary(b, "Add", swapped & 4, "e", "one", "a");
                binary(b, "Mul", swapped & 8, "x", "a", "m");
                binary(b, "Mul", swapped & 2, "m", "half", "y");
                builder_output(b, "y");
                expect_after(b, sl_pass_fuse_gelu, GELU);
        }
}

Test(passes, gelu_may_halve_its_argument_or_its_bend_first)
{
        for (int form = 0; form < 2; form++) {
                struct builder *b = rows_builder();

                gelu_scalars(b);
                builder_node(b, "Div", "x,root", "d");
                builder_node(b, "Erf", "d", "e");
                builder_node(b, "Add", "one,e", "a");
                builder_node(b, "Mul", form ? "half,x" : "a,half", "h");
                builder_node(b, "Mul", form ? "h,a" : "x,h", "y");
                builder_output(b, "y");
                expect_after(b, sl_pass_fuse_gelu, GELU);
        }
}

Test(passes, gelu_by_tanh_is_one_node_cubed_by_pow_by_products_or_factored_out)
{
        for (int form = 0; form < 3; form++) {
                struct builder *b = rows_builder();

                gelu_scalars(b);
                scalar(b, "cubic", 0.044715f);
                scalar(b, "three", 3.0f);
                scalar(b, "slope", 0.79788456f);
                if (form == 0) {
                        builder_node(b, "Pow", "x,three", "p");
                } else {
                        builder_node(b, "Mul", "x,x", "q");
                        builder_node(b, "Mul", form == 1 ? "x,q" : "q,cubic", "p");
                }
                if (form < 2) {
                        builder_node(b, "Mul", "cubic,p", "c");
                        builder_node(b, "Add", "c,x", "s");
                        builder_node(b, "Mul", "s,slope", "t");
                } else {
                        builder_node(b, "Add", "one,p", "s");
                        builder_node(b, "Mul", "slope,x", "v");
                        builder_node(b, "Mul", "v,s", "t");
                }
                builder_node(b, "Tanh", "t", "h");
                builder_node(b, "Add", "h,one", "a");
                builder_node(b, "Mul", "x,a", "m");
                builder_node(b, "Mul", "half,m", "y");
                builder_output(b, "y");
                expect_after(b, sl_pass_fuse_gelu, "y = Gelu(x [N,6]) {approximate=1} -> y [N,6]\n");
        }
}

Test(passes, what_is_nearly_a_gelu_stays)
{
        struct builder *b = rows_builder();

        gelu_scalars(b);
        builder_node(b, "Div", "x,root", "d");
        builder_node(b, "Erf", "d", "e");
        builder_node(b, "Add", "e,half", "a");
        builder_node(b, "Mul", "x,a", "m");
        builder_node(b, "Mul", "m,half", "y");
        builder_output(b, "y");
        expect_ops_after(b, sl_pass_fuse_gelu, SL_OP_GELU, 0);
}

/* @form: bit 0 d * d instead of Pow, bit 1 the subtraction twice, bit 2 Reciprocal instead of Div, bit 3 operands swapped. */
static struct builder *norm_builder(int form, const char *shift)
{
        struct builder *b = rows_builder();
        const char *means[] = {"mean", "variance"}, *of[] = {"x", "square"};

        scalar(b, "two", 2.0f);
        scalar(b, "epsilon", 0.25f);
        builder_random(b, "scale", DIMS(FEATURES));
        builder_random(b, "shift", DIMS(FEATURES));
        for (int i = 0; i < 2; i++) {
                Onnx__NodeProto *mean;

                if (i) {
                        builder_node(b, "Sub", "x,mean", "d");
                        if (form & 2)
                                builder_node(b, "Sub", "x,mean", "again");
                        if (form & 1)
                                builder_node(b, "Mul", form & 2 ? "again,again" : "d,d", "square");
                        else
                                builder_node(b, "Pow", form & 2 ? "again,two" : "d,two", "square");
                }
                mean = builder_node(b, "ReduceMean", of[i], means[i]);
                builder_attr_ints(b, mean, "axes", DIMS(-1));
        }
        binary(b, "Add", form & 8, "variance", "epsilon", "v");
        builder_node(b, "Sqrt", "v", "s");
        if (form & 4)
                builder_node(b, "Reciprocal", "s", "r");
        binary(b, form & 4 ? "Mul" : "Div", (form & 12) == 12, "d", form & 4 ? "r" : "s", "n");
        binary(b, "Mul", form & 8, "n", "scale", "m");
        binary(b, "Add", form & 8, "m", shift, "y");
        builder_output(b, "y");
        return b;
}

Test(passes, layer_norm_is_one_node_in_every_form)
{
        for (int form = 0; form < 16; form++)
                expect_after(norm_builder(form, "shift"), sl_pass_fuse_layer_norm,
                        "y = LayerNormalization(x [N,6], scale [6], shift [6]) {axis=-1, epsilon=0.25} -> y [N,6]\n");
}

Test(passes, what_adds_something_computed_is_no_layer_norm)
{
        expect_ops_after(norm_builder(0, "x"), sl_pass_fuse_layer_norm, SL_OP_LAYER_NORM, 0);
}

Test(passes, a_normalisation_behind_no_conv_takes_a_relu_but_no_tanh)
{
        for (int relu = 0; relu < 2; relu++) {
                struct builder *b = builder_new_of_x(13, DIMS(-1, 2, 3));
                struct sl_graph *graph;

                for (int i = 0; i < 4; i++)
                        builder_floats(b, (const char *[]){"s", "b", "m", "v"}[i], DIMS(2), (const float[]){0.5f, 2.0f});
                builder_node(b, "BatchNormalization", "x,s,b,m,v", "n");
                builder_node(b, relu ? "Relu" : "Tanh", "n", "y");
                builder_output(b, "y");
                graph = run_pass(b, sl_pass_fuse_activation);
                cr_assert_eq(count_live(graph), relu ? 1 : 2);
                sl_graph_free(graph);
                builder_free(b);
        }
}

#define CHANNELS 8

/* @form: bit 0 a Concat before it, bit 1 a Split behind it; @swapped is what the Transpose does. */
static struct builder *shuffle_builder(int form, const int64_t swapped[5])
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, CHANNELS, 2, 3));

        builder_ints(b, "split", DIMS(5), (const int64_t[]){-1, 2, CHANNELS / 2, 2, 3});
        builder_ints(b, "whole", DIMS(4), (const int64_t[]){-1, CHANNELS, 2, 3});
        builder_ints(b, "parts", DIMS(2), (const int64_t[]){2, 6});
        builder_ints(b, "halves", DIMS(2), (const int64_t[]){4, 4});
        if (form & 1) {
                builder_attr_int(b, builder_node(b, "Split", "x,halves", "l,r"), "axis", 1);
                builder_node(b, "Relu", "r", "p");
                builder_attr_int(b, builder_node(b, "Concat", "l,p", "c"), "axis", 1);
        } else {
                builder_node(b, "Relu", "x", "c");
        }
        builder_node(b, "Reshape", "c,split", "s");
        builder_transpose(b, "s", "t", 5, swapped);
        builder_node(b, "Reshape", "t,whole", form & 2 ? "w" : "y");
        if (form & 2) {
                builder_attr_int(b, builder_node(b, "Split", "w,parts", "u,v"), "axis", 1);
                builder_node(b, "Exp", "v", "e");
                builder_attr_int(b, builder_node(b, "Concat", "e,u", "y"), "axis", 1);
        }
        builder_output(b, "y");
        return b;
}

static int to_shuffle(struct sl_graph *graph, struct sl_error *error)
{
        int result = sl_pass_fold_constants(graph, error);

        return result ? result
                      : sl_pass_fuse_channel_shuffle(graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, error);
}

Test(passes, a_channel_shuffle_is_one_node_with_what_joins_and_cuts_its_channels)
{
        static const char *const texts[] = {
                "y = starling.ChannelShuffle(c [N,8,2,3]) {axis=1, group=2, split=[8]} -> y [N,8,2,3]\n",
                "y = starling.ChannelShuffle(l [N,4,2,3], p [N,4,2,3]) {axis=1, group=2, split=[8]} -> y [N,8,2,3]\n",
                "u,v = starling.ChannelShuffle(c [N,8,2,3]) {axis=1, group=2, split=[2,6]} -> u [N,2,2,3], v [N,6,2,3]\n",
                "u,v = starling.ChannelShuffle(l [N,4,2,3], p [N,4,2,3]) {axis=1, group=2, split=[2,6]} -> u [N,2,2,3], v "
                "[N,6,2,3]\n",
        };

        for (int form = 0; form < 4; form++) {
                struct builder *b = shuffle_builder(form, (const int64_t[]){0, 2, 1, 3, 4});
                struct sl_graph *graph = run_pass(b, to_shuffle);
                char *printed = print_graph(graph);

                cr_assert(strstr(printed, texts[form]), "%s", printed);
                cr_assert_eq(count_ops(graph, SL_OP_TRANSPOSE) + count_ops(graph, SL_OP_RESHAPE), 0);
                free(printed);
                sl_graph_free(graph);
                builder_free(b);
        }
}

Test(passes, a_transpose_of_other_dimensions_is_no_channel_shuffle)
{
        expect_ops_after(shuffle_builder(0, (const int64_t[]){0, 1, 2, 4, 3}), to_shuffle, SL_OP_CHANNEL_SHUFFLE, 0);
}

/* @axis of the Concat; whether its sum is wanted elsewhere, too. */
static struct builder *norm_of_concat(int64_t axis, bool wanted)
{
        struct builder *b = builder_new(13);
        int64_t channels = axis == 1 ? 2 * CHANNELS : CHANNELS;
        float variance[2 * CHANNELS];

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, CHANNELS, 2, 3));
        builder_random(b, "scale", DIMS(channels));
        builder_random(b, "shift", DIMS(channels));
        builder_random(b, "mean", DIMS(channels));
        for (int i = 0; i < 2 * CHANNELS; i++)
                variance[i] = 0.5f + (float)i;
        builder_floats(b, "variance", DIMS(channels), variance);
        builder_node(b, "Exp", "x", "e");
        builder_attr_int(b, builder_node(b, "Concat", "x,e", "c"), "axis", axis);
        builder_node(b, "BatchNormalization", "c,scale,shift,mean,variance", "n");
        builder_node(b, "Relu", "n", wanted ? "r" : "y");
        if (wanted)
                builder_node(b, "Add", "r,c", "y");
        builder_output(b, "y");
        return b;
}

static int to_normalized_concat(struct sl_graph *graph, struct sl_error *error)
{
        int result = sl_pass_fuse_activation(graph, error);

        return result ? result
                      : sl_pass_fuse_normalized_concat(graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, error);
}

Test(passes, a_normalisation_reads_the_parts_of_a_concat_along_the_channels_that_nobody_else_wants)
{
        for (int form = 0; form < 3; form++) {
                struct builder *b = norm_of_concat(form == 1 ? 3 : 1, form == 2);
                struct sl_graph *graph = run_pass(b, to_normalized_concat);

                cr_assert_eq(count_ops(graph, SL_OP_NORMALIZED_CONCAT), form == 0);
                cr_assert_eq(count_ops(graph, SL_OP_CONCAT), form != 0);
                sl_graph_free(graph);
                builder_free(b);
        }
}

enum repetition { REPEATED_PER_SAMPLE, REPEATED_FOR_ONE_SAMPLE_TOO, REPEATED_BEFORE_A_SUM };

/* Scores of x [N,2,3,4] against a table of 5 rows of 6, repeated for each sample and brought to 2 heads of 4. */
static struct builder *repetition_builder(enum repetition form)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 2, 3, 4));

        builder_random(b, "table", DIMS(5, 1, 6));
        builder_random(b, "w", DIMS(6, 8));
        builder_ints(b, "two", DIMS(1), (const int64_t[]){2});
        builder_ints(b, "first", DIMS(1), (const int64_t[]){0});
        builder_ints(b, "five", DIMS(1), (const int64_t[]){5});
        builder_ints(b, "six", DIMS(1), (const int64_t[]){6});
        builder_ints(b, "heads", DIMS(4), (const int64_t[]){0, 0, 2, 4});
        builder_ints(b, "whole", DIMS(4), (const int64_t[]){-1, 2, 3, 5});
        builder_node(b, "Shape", "x", "s");
        builder_attr_int(b, builder_node(b, "Gather", "s,first", "n"), "axis", 0);
        builder_node(b, "Max", form == REPEATED_FOR_ONE_SAMPLE_TOO ? "n,two" : "n,n", "m");
        builder_attr_int(b, builder_node(b, "Concat", "five,m,six", "c"), "axis", 0);
        builder_node(b, "Expand", "table,c", "e");
        builder_node(b, "MatMul", "e,w", "p");
        builder_node(b, "Reshape", "p,heads", "r");
        builder_transpose(b, "r", "t", DIMS(1, 2, 3, 0));
        builder_node(b, "MatMul", "x,t", form == REPEATED_BEFORE_A_SUM ? "q" : "y");
        if (form == REPEATED_BEFORE_A_SUM) {
                builder_node(b, "ReduceSum", "p", "z");
                builder_node(b, "Add", "q,z", "u");
                builder_node(b, "Reshape", "u,whole", "y");
        }
        builder_output(b, "y");
        return b;
}

static void expect_expands(enum repetition form, uint32_t expands)
{
        expect_ops_after(repetition_builder(form), sl_pass_remove_expand, SL_OP_EXPAND, expands);
}

Test(passes, a_table_repeated_for_a_product_that_broadcasts_it_is_not_repeated)
{
        expect_after(repetition_builder(REPEATED_PER_SAMPLE), sl_pass_remove_expand,
                "p = MatMul(table [5,1,6], w [6,8]) -> p [5,1,8]\n"
                "r = Reshape(p [5,1,8]) {shape=[0,0,2,4]} -> r [5,1,2,4]\n"
                "t = Transpose(r [5,1,2,4]) {perm=[1,2,3,0]} -> t [1,2,4,5]\n"
                "y = MatMul(x [N,2,3,4], t [1,2,4,5]) -> y [N,2,3,5]\n");
}

Test(passes, repetitions_stay_where_one_sample_has_several_or_something_counts_them)
{
        expect_expands(REPEATED_FOR_ONE_SAMPLE_TOO, 1);
        expect_expands(REPEATED_BEFORE_A_SUM, 1);
}
