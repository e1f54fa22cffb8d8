/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of float32 becomes a variant of it: int8, calibrated on samples, bfloat16, or weights in halves; with its accuracy, measured on samples that
 * the calibration has not seen. For tools: it compiles and runs models in the calling process. One thread.
 *
 * int8: what each value may be is taken from the samples by the method; products that cost more than @max_loss when they are all
 * quantized stay float32, the worst first, until the loss is within it. The loss is that of top-1 with labels, else 1 - cosine
 * similarity of the outputs.
 */
#pragma once

#include "lower_options.h"
#include "range.h"

#include <stdint.h>

struct sl_error;
struct sl_graph;
struct sl_dataset;

struct sl_quantize_options {
        struct sl_lower_options lowering; /* precision, or weights where that is fp32: what the variant is */
        enum sl_range_method method;
        double percentile;
        double max_loss;
        uint64_t calibration;  /* samples that are calibrated on, the first ones; the others are measured on */
        const int64_t *labels; /* of each sample, or NULL */
};

struct sl_accuracy {
        uint64_t samples;
        double cosine;    /* mean over the samples, of all float outputs */
        double agreement; /* share of samples with the class of float32; NaN where output 0 has no classes */
        double top_1;     /* share with the class of the label; NaN without labels */
        double top_1_float32;
};

struct sl_variant {
        struct sl_graph *graph;  /* can be written as ONNX; owned */
        struct sl_graph *source; /* float32; owns constants of the other; owned */
        struct sl_accuracy accuracy;
        uint32_t n_products, n_float; /* products with constant weights; of these, those that stayed float32 */
        char *float_nodes;            /* their names, with commas between; owned */
};

/*
 * @model: path of the file. Return: 0; -EINVAL too few samples, a label that is no class, a result of float32 (or of bfloat16, or
 * of halves) that is not finite; -ENOTSUP an output of data-dependent shape; what import, export (before any sample is run),
 * compiler and kernels say; the text names sample and output, or node.
 */
int sl_quantize(const char *model, const struct sl_quantize_options *options, const struct sl_dataset *samples,
        struct sl_variant *ret_variant, struct sl_error *error);
void sl_variant_deinit(struct sl_variant *variant);
