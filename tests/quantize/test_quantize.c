/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A digits network becomes an int8 and a bfloat16 variant: bounded loss, a file that comes back as it went out, products that stay
 * float32 when the bound wants it.
 */
#include "base/error.h"
#include "dataset.h"
#include "export.h"
#include "graph.h"
#include "import.h"
#include "lower.h"
#include "quantize.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define MODEL  DIGITS "/models/lenet/1/model.onnx"
#define IMAGES DIGITS "/test-images.f32"
#define LABELS DIGITS "/test-labels.u8"

struct trial {
        struct sl_quantize_options options;
        struct sl_dataset *dataset;
        int64_t *labels;
        struct sl_variant variant;
};

static void trial_init(struct trial *trial, enum sl_precision precision, double max_loss)
{
        struct sl_graph *graph = NULL;
        struct sl_error error = {""};

        *trial = (struct trial){.options = {.method = SL_RANGE_MSE, .max_loss = max_loss, .calibration = 100}};
        sl_lower_options_init(&trial->options.lowering);
        trial->options.lowering.precision = precision;
        cr_assert_eq(sl_import_onnx(MODEL, NULL, &graph, &error), 0, "%s", error.text);
        cr_assert_eq(sl_dataset_open(IMAGES, graph, &trial->dataset, &error), 0, "%s", error.text);
        sl_graph_free(graph);
}

static void take_labels(struct trial *trial)
{
        struct sl_error error = {""};

        cr_assert_eq(sl_labels_read(LABELS, sl_dataset_count(trial->dataset), &trial->labels, &error), 0, "%s", error.text);
        trial->options.labels = trial->labels;
}

static void trial_run(struct trial *trial)
{
        struct sl_error error = {""};

        cr_assert_eq(sl_quantize(MODEL, &trial->options, trial->dataset, &trial->variant, &error), 0, "%s", error.text);
}

static void trial_deinit(struct trial *trial)
{
        sl_variant_deinit(&trial->variant);
        sl_dataset_free(trial->dataset);
        free(trial->labels);
}

static uint32_t count_ops(const struct sl_graph *graph, uint32_t op)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < graph->n_nodes; i++)
                n += !graph->nodes[i].dead && graph->nodes[i].op == op;
        return n;
}

Test(quantize, an_int8_variant_keeps_its_top_1)
{
        struct trial trial;

        trial_init(&trial, SL_PRECISION_INT8, 0.01);
        take_labels(&trial);
        trial_run(&trial);
        cr_expect_eq(trial.variant.n_float, 0);
        cr_expect_eq(trial.variant.accuracy.samples, sl_dataset_count(trial.dataset) - 100);
        cr_expect_gt(trial.variant.accuracy.top_1, trial.variant.accuracy.top_1_float32 - 0.01);
        cr_expect_gt(trial.variant.accuracy.top_1_float32, 0.95);
        cr_expect_gt(trial.variant.accuracy.cosine, 0.999);
        trial_deinit(&trial);
}

Test(quantize, every_method_stays_close)
{
        for (int method = SL_RANGE_MINMAX; method <= SL_RANGE_MSE; method++) {
                struct trial trial;

                trial_init(&trial, SL_PRECISION_INT8, 1);
                trial.options.method = (enum sl_range_method)method;
                trial.options.percentile = 99.99;
                trial_run(&trial);
                cr_expect_gt(trial.variant.accuracy.cosine, 0.999, "method %d", method);
                trial_deinit(&trial);
        }
}

/* No rounding is small enough for a bound of zero, so all products are given back, and nothing is lost any more. */
Test(quantize, products_that_cost_too_much_stay_float32)
{
        struct trial trial;

        trial_init(&trial, SL_PRECISION_INT8, 0);
        trial_run(&trial);
        cr_expect_eq(trial.variant.n_float, trial.variant.n_products);
        cr_expect_eq(count_ops(trial.variant.graph, SL_OP_QUANTIZE_LINEAR), 0);
        cr_expect_float_eq(trial.variant.accuracy.cosine, 1, 1e-6);
        cr_expect(strchr(trial.variant.float_nodes, ','), "%s", trial.variant.float_nodes);
        trial_deinit(&trial);
}

Test(quantize, a_bfloat16_variant_is_measured)
{
        struct trial trial;

        trial_init(&trial, SL_PRECISION_BF16, 0.01);
        trial_run(&trial);
        cr_expect_gt(trial.variant.accuracy.cosine, 0.999);
        cr_expect_lt(trial.variant.accuracy.cosine, 1 - 1e-12, "nothing was narrowed");
        trial_deinit(&trial);
}

Test(quantize, weights_in_halves_are_measured_and_a_file_that_says_so_gets_them)
{
        struct sl_export_property property = {.key = "starling.weights", .value = "f16"};
        uint32_t n_products = 0, n_halves = 0;
        struct sl_lower_options plain;
        struct sl_graph *back = NULL;
        struct sl_error error = {""};
        struct trial trial;
        uint8_t *file = NULL;
        size_t bytes = 0;

        trial_init(&trial, SL_PRECISION_FP32, 0.01);
        trial.options.lowering.weights = SL_WEIGHTS_F16;
        trial_run(&trial);
        cr_expect_gt(trial.variant.accuracy.cosine, 0.99999);
        cr_expect_lt(trial.variant.accuracy.cosine, 1 - 1e-14, "nothing was narrowed");
        cr_assert_eq(sl_export_onnx(trial.variant.graph, &property, 1, &file, &bytes, &error), 0, "%s", error.text);
        cr_assert_eq(sl_import_onnx_bytes(file, bytes, NULL, &back, &error), 0, "%s", error.text);
        sl_lower_options_init(&plain);
        cr_assert_eq(sl_lower_rewrite(back, &plain, &error), 0, "%s", error.text);
        for (uint32_t i = 0; i < back->n_nodes; i++) {
                bool is_product = back->nodes[i].op == SL_OP_GEMM || back->nodes[i].op == SL_OP_MATMUL;

                n_products += is_product && !back->nodes[i].dead;
                n_halves += is_product && sl_attrs_int(&back->nodes[i].attrs, SL_ATTR_WEIGHTS, SL_DTYPE_NONE) == SL_DTYPE_F16;
        }
        cr_expect_gt(n_products, 0);
        cr_expect_eq(n_halves, n_products);
        free(file);
        sl_graph_free(back);
        trial_deinit(&trial);
}

Test(quantize, wants_samples_for_both_halves)
{
        struct sl_error error = {""};
        struct trial trial;

        trial_init(&trial, SL_PRECISION_INT8, 0.01);
        trial.options.calibration = sl_dataset_count(trial.dataset);
        cr_expect_eq(sl_quantize(MODEL, &trial.options, trial.dataset, &trial.variant, &error), -EINVAL);
        cr_expect(strstr(error.text, "to calibrate on"), "%s", error.text);
        trial_deinit(&trial);
}

Test(export, what_was_written_comes_back_with_its_properties)
{
        struct sl_export_property property = {.key = "starling.cosine", .value = "0.5"};
        struct sl_graph *back = NULL;
        struct sl_error error = {""};
        struct trial trial;
        uint8_t *file = NULL;
        size_t bytes = 0;

        trial_init(&trial, SL_PRECISION_INT8, 0.01);
        trial_run(&trial);
        cr_assert_eq(sl_export_onnx(trial.variant.graph, &property, 1, &file, &bytes, &error), 0, "%s", error.text);
        cr_assert_eq(sl_import_onnx_bytes(file, bytes, NULL, &back, &error), 0, "%s", error.text);
        cr_assert_eq(back->n_properties, 1);
        cr_expect_str_eq(back->properties[0].key, "starling.cosine");
        cr_expect_str_eq(back->properties[0].value, "0.5");
        for (uint32_t op = 0; op < SL_OP_COUNT; op++)
                cr_expect_eq(count_ops(back, op), count_ops(trial.variant.graph, op), "%s", sl_op_name(op));
        cr_assert_eq(sl_lower_rewrite(back, &trial.options.lowering, &error), 0, "%s", error.text);
        cr_expect_eq(count_ops(back, SL_OP_QUANTIZED_CONV), 2);
        cr_expect_eq(count_ops(back, SL_OP_QUANTIZED_MATMUL), 3);
        free(file);
        sl_graph_free(back);
        trial_deinit(&trial);
}

Test(export, fused_operators_have_no_way_back)
{
        struct sl_lower_options options;
        struct sl_graph *graph = NULL;
        struct sl_error error = {""};
        uint8_t *file = NULL;
        size_t bytes;

        sl_lower_options_init(&options);
        cr_assert_eq(sl_import_onnx(MODEL, NULL, &graph, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lower_rewrite(graph, &options, &error), 0, "%s", error.text);
        cr_expect_eq(sl_export_onnx(graph, NULL, 0, &file, &bytes, &error), -ENOTSUP);
        cr_expect(strstr(error.text, "cannot be written"), "%s", error.text);
        sl_graph_free(graph);
}
