/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes over QuantizeLinear and DequantizeLinear: which graph comes out of which, and that it computes the same, to a step of
 * the bytes that it ends in.
 */
#include "builder.h"

#include "backend.h"
#include "base/error.h"
#include "narrow.h"
#include "pass.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH    2
#define CHANNELS 4
#define IMAGE    (BATCH * CHANNELS * 5 * 5)

/* What bytes stand for: NAME_s and NAME_z. */
static void add_quantity(struct builder *b, const char *name, int32_t dtype, float scale, int zero)
{
        char text[64];
        uint8_t byte = (uint8_t)zero;

        snprintf(text, sizeof(text), "%s_s", name);
        builder_floats(b, text, 0, NULL, &scale);
        snprintf(text, sizeof(text), "%s_z", name);
        builder_raw(b, text, dtype, 0, NULL, &byte);
}

/* @name becomes bytes and floats again, as NAME_d. */
static void add_pair(struct builder *b, const char *name, int32_t dtype, float scale, int zero)
{
        char inputs[128], outputs[64];

        add_quantity(b, name, dtype, scale, zero);
        snprintf(inputs, sizeof(inputs), "%s,%s_s,%s_z", name, name, name);
        snprintf(outputs, sizeof(outputs), "%s_q", name);
        builder_node(b, "QuantizeLinear", inputs, outputs);
        snprintf(inputs, sizeof(inputs), "%s_q,%s_s,%s_z", name, name, name);
        snprintf(outputs, sizeof(outputs), "%s_d", name);
        builder_node(b, "DequantizeLinear", inputs, outputs);
}

static int8_t *random_bytes(struct builder *b, size_t n, uint32_t seed)
{
        float *floats = builder_alloc(b, n * sizeof(*floats));
        int8_t *bytes = builder_alloc(b, n);

        fill_random(floats, n, seed);
        for (size_t i = 0; i < n; i++)
                bytes[i] = (int8_t)lrintf(floats[i] * 120);
        return bytes;
}

/* Weights of int8 with a scale for each of CHANNELS filters, dequantized as NAME_d. */
static void add_weights(struct builder *b, const char *name, uint32_t rank, const int64_t *dims, int64_t axis)
{
        char inputs[128], text[64];
        float *scales = builder_alloc(b, CHANNELS * sizeof(*scales));
        int8_t *zeros = builder_alloc(b, CHANNELS);
        size_t n = 1;

        for (uint32_t i = 0; i < rank; i++)
                n *= (size_t)dims[i];
        for (int i = 0; i < CHANNELS; i++)
                scales[i] = 0.003f + 0.001f * (float)i;
        builder_raw(b, name, SL_DTYPE_I8, rank, dims, random_bytes(b, n, (uint32_t)name[0]));
        snprintf(text, sizeof(text), "%s_s", name);
        builder_floats(b, text, DIMS(CHANNELS), scales);
        snprintf(text, sizeof(text), "%s_z", name);
        builder_raw(b, text, SL_DTYPE_I8, DIMS(CHANNELS), zeros);
        snprintf(inputs, sizeof(inputs), "%s,%s_s,%s_z", name, name, name);
        snprintf(text, sizeof(text), "%s_d", name);
        builder_attr_int(b, builder_node(b, "DequantizeLinear", inputs, text), "axis", axis);
}

static void add_conv(struct builder *b, const char *input, const char *weights, const char *output)
{
        char inputs[128], bias[64];

        add_weights(b, weights, DIMS(CHANNELS, CHANNELS, 3, 3), 0);
        snprintf(bias, sizeof(bias), "%s_b", weights);
        builder_random(b, bias, DIMS(CHANNELS));
        snprintf(inputs, sizeof(inputs), "%s,%s_d,%s", input, weights, bias);
        builder_attr_ints(b, builder_node(b, "Conv", inputs, output), "pads", DIMS(1, 1, 1, 1));
}

/* Runs the graph before and after all passes on `ref`; the results may differ by one step of the last bytes. */
static struct sl_graph *optimise(struct builder *b, size_t n_in, size_t n_out, float step)
{
        struct sl_graph *raw = builder_import(b), *graph = builder_import(b);
        struct sl_error error = {""};
        float *input = malloc(n_in * sizeof(*input)), *want = malloc(n_out * sizeof(*want)), *got = malloc(n_out * sizeof(*got));

        fill_random(input, n_in, 3);
        cr_assert_eq(
                sl_passes_run(graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, &error), 0, "%s", error.text);
        evaluate_floats(raw, BATCH, input, want, n_out);
        evaluate_floats(graph, BATCH, input, got, n_out);
        for (size_t i = 0; i < n_out; i++)
                cr_assert(fabsf(want[i] - got[i]) <= 1.01f * step, "element %zu is %g, was %g", i, (double)got[i], (double)want[i]);
        free(input);
        free(want);
        free(got);
        sl_graph_free(raw);
        return graph;
}

static void expect_count(const struct sl_graph *graph, uint32_t op, uint32_t n)
{
        char *text = print_graph(graph);

        cr_expect_eq(count_ops(graph, op), n, "%u %s, not %u:\n%s", count_ops(graph, op), sl_op_name(op), n, text);
        free(text);
}

static struct builder *image_model(void)
{
        struct builder *b = builder_new(17);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, CHANNELS, 5, 5));
        return b;
}

Test(quantize, a_convolution_between_bytes_is_one_of_bytes)
{
        struct builder *b = image_model();

        add_pair(b, "x", SL_DTYPE_U8, 1.0f / 127, 128);
        add_conv(b, "x_d", "w", "c");
        builder_node(b, "Relu", "c", "y");
        add_pair(b, "y", SL_DTYPE_U8, 0.02f, 0);
        builder_output(b, "y_d");
        struct sl_graph *graph = optimise(b, IMAGE, IMAGE, 0.02f);

        expect_count(graph, SL_OP_QUANTIZED_CONV, 1);
        expect_count(graph, SL_OP_CONV, 0);
        expect_count(graph, SL_OP_QUANTIZE_LINEAR, 1);
        expect_count(graph, SL_OP_DEQUANTIZE_LINEAR, 1);
        sl_graph_free(graph);
        builder_free(b);
}

Test(quantize, without_bytes_behind_it_a_product_gives_floats)
{
        struct builder *b = image_model();

        add_pair(b, "x", SL_DTYPE_U8, 1.0f / 127, 128);
        add_conv(b, "x_d", "w", "y");
        builder_output(b, "y");
        struct sl_graph *graph = optimise(b, IMAGE, IMAGE, 0.001f);

        expect_count(graph, SL_OP_QUANTIZED_CONV, 1);
        expect_count(graph, SL_OP_DEQUANTIZE_LINEAR, 0);
        sl_graph_free(graph);
        builder_free(b);
}

Test(quantize, signed_activations_become_unsigned)
{
        struct builder *b = image_model();

        add_pair(b, "x", SL_DTYPE_I8, 1.0f / 127, 0);
        add_conv(b, "x_d", "w", "y");
        add_pair(b, "y", SL_DTYPE_I8, 0.02f, -128);
        builder_output(b, "y_d");
        struct sl_graph *graph = optimise(b, IMAGE, IMAGE, 0.02f);

        for (uint32_t i = 0; i < graph->n_values; i++)
                cr_expect(graph->values[i].dead || graph->values[i].kind == SL_VALUE_CONSTANT ||
                                  graph->values[i].tensor.dtype != SL_DTYPE_I8,
                        "%s is int8", graph->values[i].name);
        expect_count(graph, SL_OP_QUANTIZED_CONV, 1);
        sl_graph_free(graph);
        builder_free(b);
}

/* A block of a residual network: two convolutions, the way around them, a limit. */
Test(quantize, a_residual_sum_goes_into_the_convolution_before_it)
{
        struct builder *b = image_model();

        add_pair(b, "x", SL_DTYPE_U8, 1.0f / 127, 128);
        add_conv(b, "x_d", "w", "c");
        builder_node(b, "Relu", "c", "r");
        add_pair(b, "r", SL_DTYPE_U8, 0.01f, 0);
        add_conv(b, "r_d", "v", "d");
        add_pair(b, "d", SL_DTYPE_U8, 0.02f, 120);
        builder_node(b, "Add", "d_d,x_d", "s");
        builder_node(b, "Relu", "s", "y");
        add_pair(b, "y", SL_DTYPE_U8, 0.02f, 0);
        builder_output(b, "y_d");
        struct sl_graph *graph = optimise(b, IMAGE, IMAGE, 0.04f);

        expect_count(graph, SL_OP_QUANTIZED_CONV, 2);
        expect_count(graph, SL_OP_QUANTIZED_ADD, 0);
        expect_count(graph, SL_OP_ADD, 0);
        expect_count(graph, SL_OP_RELU, 0);
        sl_graph_free(graph);
        builder_free(b);
}

/* Files have no Relu in front of bytes that stand for nothing below it. */
Test(quantize, a_part_of_a_sum_that_its_bytes_limit_stays_one)
{
        struct builder *b = image_model();

        add_pair(b, "x", SL_DTYPE_U8, 1.0f / 127, 128);
        add_conv(b, "x_d", "w", "c");
        add_pair(b, "c", SL_DTYPE_U8, 0.01f, 0);
        builder_node(b, "Add", "c_d,x_d", "y");
        add_pair(b, "y", SL_DTYPE_U8, 0.02f, 120);
        builder_output(b, "y_d");
        struct sl_graph *graph = optimise(b, IMAGE, IMAGE, 0.02f);

        expect_count(graph, SL_OP_QUANTIZED_CONV, 1);
        expect_count(graph, SL_OP_QUANTIZED_ADD, 1);
        sl_graph_free(graph);
        builder_free(b);
}

/* Nor a Clip where they end at its limits. */
Test(quantize, a_part_of_a_sum_that_its_bytes_clip_stays_one)
{
        static const struct {
                float scale;
                int zero;
                uint32_t sums;
        } parts[] = {{1.0f / 127, 128, 1}, {12.0f / 255, 128, 1}, {3.0f / 255, 85, 1}, {3.3f / 127, 128, 0}, {7.7f / 255, 85, 0}};

        for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
                struct builder *b = image_model();

                add_pair(b, "x", SL_DTYPE_U8, 1.0f / 127, 128);
                add_conv(b, "x_d", "w", "c");
                add_pair(b, "c", SL_DTYPE_U8, parts[i].scale, parts[i].zero);
                builder_node(b, "Add", "c_d,x_d", "y");
                add_pair(b, "y", SL_DTYPE_U8, 0.05f, 120);
                builder_output(b, "y_d");
                struct sl_graph *graph = optimise(b, IMAGE, IMAGE, 0.05f);

                expect_count(graph, SL_OP_QUANTIZED_CONV, 1);
                expect_count(graph, SL_OP_QUANTIZED_ADD, parts[i].sums);
                sl_graph_free(graph);
                builder_free(b);
        }
}

/* As where one region of bytes ends and the next begins, with the same scale or another, and with what moves elements between. */
Test(quantize, bytes_that_are_made_floats_and_bytes_again_are_rescaled)
{
        for (int i = 0; i < 4; i++) {
                struct builder *b = image_model();

                add_pair(b, "x", SL_DTYPE_U8, 1.0f / 127, 128);
                builder_node(b, "Identity", "x_d", "i");
                add_quantity(b, "r", SL_DTYPE_U8, i % 2 ? 0.01f : 1.0f / 127, i % 2 ? 100 : 128);
                builder_node(b, "QuantizeLinear", i / 2 ? "i,r_s,r_z" : "x_d,r_s,r_z", "r_q");
                builder_node(b, "DequantizeLinear", "r_q,r_s,r_z", "r_d");
                builder_node(b, "Relu", "r_d", "y");
                builder_output(b, "y");
                struct sl_graph *graph = optimise(b, IMAGE, IMAGE, 0.01f);

                expect_count(graph, SL_OP_QUANTIZE_LINEAR, 1);
                expect_count(graph, SL_OP_DEQUANTIZE_LINEAR, 1);
                expect_count(graph, SL_OP_QUANTIZED_ADD, i % 2);
                sl_graph_free(graph);
                builder_free(b);
        }
}

Test(quantize, concat_may_read_the_same_bytes_twice)
{
        struct builder *b = image_model();

        add_pair(b, "x", SL_DTYPE_U8, 1.0f / 127, 128);
        builder_attr_int(b, builder_node(b, "Concat", "x_d,x_d", "c"), "axis", 1);
        add_pair(b, "c", SL_DTYPE_U8, 0.01f, 110);
        builder_output(b, "c_d");
        struct sl_graph *graph = optimise(b, IMAGE, 2 * IMAGE, 0.01f);

        expect_count(graph, SL_OP_QUANTIZED_ADD, 1);
        sl_graph_free(graph);
        builder_free(b);
}

/* Of which not every backend has the greatest of a plane. */
Test(quantize, bytes_are_left_where_only_some_backends_take_them)
{
        struct builder *b = image_model();

        add_pair(b, "x", SL_DTYPE_U8, 1.0f / 127, 128);
        builder_node(b, "GlobalMaxPool", "x_d", "p");
        add_pair(b, "p", SL_DTYPE_U8, 1.0f / 127, 128);
        builder_output(b, "p_d");
        struct sl_graph *graph = optimise(b, IMAGE, BATCH * CHANNELS, 1.0f / 127);

        expect_count(graph, SL_OP_GLOBAL_MAX_POOL, 1);
        sl_graph_free(graph);
        builder_free(b);
}

Test(quantize, pools_and_concat_move_bytes_and_rescale_what_differs)
{
        struct builder *b = image_model();

        add_pair(b, "x", SL_DTYPE_U8, 1.0f / 127, 128);
        builder_attr_ints(b, builder_node(b, "MaxPool", "x_d", "p"), "kernel_shape", DIMS(1, 1));
        add_pair(b, "p", SL_DTYPE_U8, 1.0f / 127, 128);
        builder_node(b, "Relu", "x_d", "r");
        add_pair(b, "r", SL_DTYPE_U8, 1.0f / 255, 0);
        builder_attr_int(b, builder_node(b, "Concat", "p_d,r_d", "c"), "axis", 1);
        add_pair(b, "c", SL_DTYPE_U8, 1.0f / 127, 128);
        builder_output(b, "c_d");
        struct sl_graph *graph = optimise(b, IMAGE, 2 * IMAGE, 1.0f / 127);

        expect_count(graph, SL_OP_QUANTIZE_LINEAR, 1);
        expect_count(graph, SL_OP_DEQUANTIZE_LINEAR, 1);
        expect_count(graph, SL_OP_QUANTIZED_ADD, 2);
        sl_graph_free(graph);
        builder_free(b);
}

Test(quantize, a_gemm_takes_its_weights_either_way)
{
        for (int64_t trans = 0; trans < 2; trans++) {
                struct builder *b = builder_new(17);

                builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, CHANNELS));
                add_pair(b, "x", SL_DTYPE_U8, 1.0f / 127, 120);
                add_weights(b, "w", DIMS(CHANNELS, CHANNELS), trans ? 0 : 1);
                builder_random(b, "b", DIMS(CHANNELS));
                builder_attr_int(b, builder_node(b, "Gemm", "x_d,w_d,b", "y"), "transB", trans);
                builder_output(b, "y");
                struct sl_graph *graph = optimise(b, BATCH * CHANNELS, BATCH * CHANNELS, 0.001f);

                expect_count(graph, SL_OP_QUANTIZED_MATMUL, 1);
                sl_graph_free(graph);
                builder_free(b);
        }
}

Test(quantize, qlinear_operators_are_the_same_products)
{
        struct builder *b = image_model();

        add_quantity(b, "x", SL_DTYPE_U8, 1.0f / 127, 128);
        builder_node(b, "QuantizeLinear", "x,x_s,x_z", "x_q");
        add_weights(b, "w", DIMS(CHANNELS, CHANNELS, 1, 1), 0);
        add_quantity(b, "y", SL_DTYPE_U8, 0.01f, 100);
        builder_node(b, "QLinearConv", "x_q,x_s,x_z,w,w_s,w_z,y_s,y_z", "y_q");
        builder_node(b, "DequantizeLinear", "y_q,y_s,y_z", "y");
        builder_output(b, "y");
        struct sl_graph *graph = optimise(b, IMAGE, IMAGE, 0.01f);

        expect_count(graph, SL_OP_QUANTIZED_CONV, 1);
        expect_count(graph, SL_OP_QLINEAR_CONV, 0);
        sl_graph_free(graph);
        builder_free(b);
}

Test(quantize, weights_that_stay_floats_become_constants)
{
        struct builder *b = image_model();

        add_conv(b, "x", "w", "y");
        builder_output(b, "y");
        struct sl_graph *graph = optimise(b, IMAGE, IMAGE, 1e-5f);

        expect_count(graph, SL_OP_CONV, 1);
        expect_count(graph, SL_OP_DEQUANTIZE_LINEAR, 0);
        sl_graph_free(graph);
        builder_free(b);
}

/* Two convolutions and what carries between them are bfloat16; a softmax is not, nor are the ports. */
Test(narrow, casts_stand_at_the_borders_of_products_and_nowhere_else)
{
        struct builder *b = image_model();
        struct sl_error error = {""};
        float input[IMAGE], want[IMAGE], got[IMAGE];

        builder_random(b, "w", DIMS(CHANNELS, CHANNELS, 1, 1));
        builder_random(b, "v", DIMS(CHANNELS, CHANNELS, 1, 1));
        builder_node(b, "Conv", "x,w", "c");
        builder_attr_ints(b, builder_node(b, "MaxPool", "c", "p"), "kernel_shape", DIMS(1, 1));
        builder_node(b, "Conv", "p,v", "d");
        builder_attr_int(b, builder_node(b, "Softmax", "d", "y"), "axis", 1);
        builder_output(b, "y");
        struct sl_graph *raw = builder_import(b), *graph = builder_import(b);

        cr_assert_eq(sl_graph_narrow(graph, false, &error), 0, "%s", error.text);
        expect_count(graph, SL_OP_CAST, 2);
        cr_expect_eq(graph->values[graph->outputs[0]].tensor.dtype, SL_DTYPE_F32);
        fill_random(input, IMAGE, 3);
        evaluate_floats(raw, BATCH, input, want, IMAGE);
        evaluate_floats(graph, BATCH, input, got, IMAGE);
        for (size_t i = 0; i < IMAGE; i++)
                cr_expect(fabsf(want[i] - got[i]) <= 0.02f, "element %zu is %g, was %g", i, (double)got[i], (double)want[i]);
        sl_graph_free(raw);
        sl_graph_free(graph);
        builder_free(b);
}

static uint32_t dtype_of_output(const struct sl_graph *graph, uint32_t op)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i].dead && graph->nodes[i].op == op)
                        return graph->values[graph->nodes[i].outputs[0]].tensor.dtype;
        return SL_DTYPE_NONE;
}

/* Where a backend has halves everywhere: what lies between products is narrow, its parameters and what the model answers are not.
 */
Test(narrow, for_a_backend_of_halves_leaves_normalisations_between_products_and_not_the_last_node)
{
        struct builder *b = image_model();
        struct sl_error error = {""};
        float input[IMAGE], want[IMAGE], got[IMAGE];

        builder_random(b, "w", DIMS(CHANNELS, CHANNELS, 1, 1));
        builder_random(b, "v", DIMS(CHANNELS, CHANNELS, 1, 1));
        builder_random(b, "scale", DIMS(CHANNELS));
        builder_random(b, "shift", DIMS(CHANNELS));
        builder_node(b, "Conv", "x,w", "c");
        builder_node(b, "InstanceNormalization", "c,scale,shift", "n");
        builder_node(b, "HardSigmoid", "n", "p");
        builder_node(b, "Conv", "p,v", "d");
        builder_attr_int(b, builder_node(b, "Softmax", "d", "y"), "axis", 1);
        builder_output(b, "y");
        struct sl_graph *raw = builder_import(b), *graph = builder_import(b);

        cr_assert_eq(sl_graph_narrow(graph, true, &error), 0, "%s", error.text);
        expect_count(graph, SL_OP_CAST, 2);
        cr_expect_eq(dtype_of_output(graph, SL_OP_INSTANCE_NORM), SL_DTYPE_BF16);
        cr_expect_eq(dtype_of_output(graph, SL_OP_HARD_SIGMOID), SL_DTYPE_BF16);
        cr_expect_eq(dtype_of_output(graph, SL_OP_SOFTMAX), SL_DTYPE_F32);
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i].dead && graph->nodes[i].op == SL_OP_INSTANCE_NORM)
                        cr_expect_eq(graph->values[graph->nodes[i].inputs[1]].tensor.dtype, SL_DTYPE_F32);
        fill_random(input, IMAGE, 3);
        evaluate_floats(raw, BATCH, input, want, IMAGE);
        evaluate_floats(graph, BATCH, input, got, IMAGE);
        for (size_t i = 0; i < IMAGE; i++)
                cr_expect(fabsf(want[i] - got[i]) <= 0.02f, "element %zu is %g, was %g", i, (double)got[i], (double)want[i]);
        sl_graph_free(raw);
        sl_graph_free(graph);
        builder_free(b);
}

/* Types that follow a parameter's, and results that are float32 in any case. */
Test(narrow, for_a_backend_of_halves_leaves_types_that_agree)
{
        struct builder *b = image_model();
        struct sl_error error = {""};

        builder_random(b, "w", DIMS(CHANNELS, CHANNELS, 1, 1));
        builder_random(b, "scale", DIMS(1));
        builder_node(b, "Conv", "x,w", "c");
        builder_node(b, "RMSNormalization", "c,scale", "r");
        builder_node(b, "Conv", "r,w", "d");
        builder_node(b, "LayerNormalization", "d,scale,,", "n,m,s");
        builder_node(b, "Mul", "n,m", "p");
        builder_node(b, "Conv", "p,w", "y");
        builder_output(b, "y");
        struct sl_graph *graph = builder_import(b);

        cr_assert_eq(sl_graph_narrow(graph, true, &error), 0, "%s", error.text);
        cr_expect_eq(dtype_of_output(graph, SL_OP_RMS_NORM), SL_DTYPE_BF16);
        cr_expect_eq(dtype_of_output(graph, SL_OP_LAYER_NORM), SL_DTYPE_F32);
        sl_graph_free(graph);
        builder_free(b);
}

Test(narrow, a_graph_without_products_stays_as_it_is)
{
        struct builder *b = image_model();
        struct sl_error error = {""};

        builder_node(b, "Relu", "x", "r");
        builder_node(b, "Add", "r,x", "y");
        builder_output(b, "y");
        struct sl_graph *graph = builder_import(b);
        char *before = print_graph(graph);

        cr_assert_eq(sl_graph_narrow(graph, false, &error), 0, "%s", error.text);
        char *after = print_graph(graph);
        cr_expect_str_eq(before, after);
        free(before);
        free(after);
        sl_graph_free(graph);
        builder_free(b);
}

Test(quantize, floats_are_added_to_a_product_that_stays_unrounded)
{
        struct builder *b = image_model();

        add_pair(b, "x", SL_DTYPE_U8, 1.0f / 127, 128);
        add_conv(b, "x_d", "w", "c");
        builder_node(b, "Add", "c,x", "y");
        add_pair(b, "y", SL_DTYPE_U8, 0.02f, 100);
        builder_output(b, "y_d");
        struct sl_graph *graph = optimise(b, IMAGE, IMAGE, 0.02f);

        expect_count(graph, SL_OP_QUANTIZED_CONV, 1);
        expect_count(graph, SL_OP_ADD, 0);
        sl_graph_free(graph);
        builder_free(b);
}
