/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BatchNormalization in training: statistics of its own input, and running ones that move towards them.
 */
#include "backend.h"
#include "base/error.h"
#include "builder.h"
#include "evaluate.h"
#include "import.h"
#include "pass.h"

#include <criterion/criterion.h>
#include <math.h>

#define SAMPLES  4
#define CHANNELS 3
#define PIXELS   5
#define EPSILON  1e-3f
#define MOMENTUM 0.8f

static const float scale[CHANNELS] = {1, 2, 0.5f}, bias[CHANNELS] = {0, 1, -1};
static const float running_mean[CHANNELS] = {0.1f, 0.2f, 0.3f}, running_variance[CHANNELS] = {1, 2, 3};

static struct builder *begin(int64_t opset, const char *outputs)
{
        struct builder *b = builder_new(opset);
        Onnx__NodeProto *node;

        builder_floats(b, "scale", DIMS(CHANNELS), scale);
        builder_floats(b, "bias", DIMS(CHANNELS), bias);
        builder_floats(b, "mean", DIMS(CHANNELS), running_mean);
        builder_floats(b, "variance", DIMS(CHANNELS), running_variance);
        node = builder_node(b, "BatchNormalization", "x,scale,bias,mean,variance", outputs);
        builder_attr_float(b, node, "epsilon", EPSILON);
        builder_attr_float(b, node, "momentum", MOMENTUM);
        if (opset >= 14)
                builder_attr_int(b, node, "training_mode", 1);
        return b;
}

static double at(const float *x, int sample, int channel, int pixel)
{
        return x[(sample * CHANNELS + channel) * PIXELS + pixel];
}

static void statistics(const float *x, int channel, double *ret_mean, double *ret_variance)
{
        double sum = 0, squares = 0;

        for (int i = 0; i < SAMPLES * PIXELS; i++)
                sum += at(x, i / PIXELS, channel, i % PIXELS);
        *ret_mean = sum / (SAMPLES * PIXELS);
        for (int i = 0; i < SAMPLES * PIXELS; i++)
                squares += pow(at(x, i / PIXELS, channel, i % PIXELS) - *ret_mean, 2);
        *ret_variance = squares / (SAMPLES * PIXELS);
}

static void expect_normalised(const float *x, const float *y)
{
        for (int c = 0; c < CHANNELS; c++) {
                double mean, variance;

                statistics(x, c, &mean, &variance);
                for (int i = 0; i < SAMPLES * PIXELS; i++)
                        cr_assert_float_eq(at(y, i / PIXELS, c, i % PIXELS),
                                (at(x, i / PIXELS, c, i % PIXELS) - mean) / sqrt(variance + EPSILON) * scale[c] + bias[c], 1e-5);
        }
}

static void expect_moved(const float *x, const float *mean, const float *variance)
{
        for (int c = 0; c < CHANNELS; c++) {
                double own_mean, own_variance;

                statistics(x, c, &own_mean, &own_variance);
                cr_assert_float_eq(mean[c], running_mean[c] * MOMENTUM + own_mean * (1 - MOMENTUM), 1e-6);
                cr_assert_float_eq(variance[c], running_variance[c] * MOMENTUM + own_variance * (1 - MOMENTUM), 1e-6);
        }
}

static void expect_training(int64_t opset, const char *outputs)
{
        struct builder *b = begin(opset, outputs);
        float x[SAMPLES * CHANNELS * PIXELS], y[SAMPLES * CHANNELS * PIXELS], mean[CHANNELS], variance[CHANNELS];
        struct sl_graph *graph, *four;

        fill_random(x, SAMPLES * CHANNELS * PIXELS, 3);
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, CHANNELS, PIXELS));
        builder_output(b, "y");
        builder_output(b, "moved_mean");
        builder_output(b, "moved_variance");
        graph = builder_import(b);
        cr_assert_str_eq(graph->values[graph->outputs[2]].name, "moved_variance");
        cr_assert_eq(sl_graph_specialise(graph, SAMPLES, &four, NULL), 0);
        cr_assert_eq(sl_graph_evaluate(four, (const void *[]){x}, (void *[]){y, mean, variance}, NULL), 0);
        expect_normalised(x, y);
        expect_moved(x, mean, variance);
        sl_graph_free(four);
        sl_graph_free(graph);
        builder_free(b);
}

Test(batch_norm, in_training_takes_the_statistics_of_its_input)
{
        expect_training(15, "y,moved_mean,moved_variance");
        expect_training(9, "y,moved_mean,moved_variance,,");
}

Test(batch_norm, of_one_output_is_not_in_training_before_the_attribute)
{
        struct builder *b = begin(9, "y,,,,");
        struct sl_graph *graph;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, CHANNELS, PIXELS));
        builder_output(b, "y");
        graph = builder_import(b);
        cr_assert_eq(count_live(graph), 1);
        sl_graph_free(graph);
        builder_free(b);
}

/* Exporters standardise weights so: nothing of it is left for the request. */
Test(batch_norm, of_constant_weights_is_computed_once)
{
        struct builder *b = begin(15, "standard,,");
        float x[CHANNELS * PIXELS];
        struct sl_error error = {""};
        struct sl_graph *graph;

        fill_random(x, CHANNELS * PIXELS, 5);
        builder_floats(b, "x", DIMS(1, CHANNELS, PIXELS), x);
        builder_input(b, "activations", SL_DTYPE_F32, DIMS(-1, CHANNELS, PIXELS));
        builder_node(b, "Add", "activations,standard", "y");
        builder_output(b, "y");
        graph = builder_import(b);
        cr_assert_eq(
                sl_passes_run(graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, &error), 0, "%s", error.text);
        cr_assert_eq(count_live(graph), 1);
        sl_graph_free(graph);
        builder_free(b);
}
