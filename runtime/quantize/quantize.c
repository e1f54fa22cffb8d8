/* SPDX-License-Identifier: Apache-2.0 */
#include "quantize.h"

#include "annotate.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "dataset.h"
#include "export.h"
#include "graph.h"
#include "greatest.h"
#include "import.h"
#include "lower.h"
#include "nibbles.h"
#include "observe.h"
#include "pass.h"
#include "runner.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INPUTS_MAX 64
#define SCOUTS     4  /* samples on which a single product is tried */
#define STEPS      16 /* products are given back in about so many portions */

/* Fused operators have no way back to ONNX, and a bias or a norm that stands apart costs a rounding. */
#define BASIC_PASSES                                                                                                               \
        (1u << SL_PASS_FOLD_CONSTANTS | 1u << SL_PASS_REMOVE_IDENTITY | 1u << SL_PASS_FUSE_PAD | 1u << SL_PASS_FOLD_BATCH_NORM |   \
                1u << SL_PASS_FUSE_BIAS | 1u << SL_PASS_REMOVE_DEAD)

SL_DEFINE_CLEANUP(struct sl_graph *, sl_graph_free)
SL_DEFINE_CLEANUP(struct sl_observation *, sl_observation_free)
SL_DEFINE_CLEANUP(struct sl_runner *, sl_runner_free)

struct job {
        const struct sl_quantize_options *options;
        const struct sl_dataset *samples;
        struct sl_graph *graph;  /* float32, after the basic passes */
        struct sl_range *ranges; /* of each value */
        struct sl_limits *limits;
        bool *stays_float;      /* of each node */
        float *wanted;          /* what float32 gives on the samples that are measured on, one after the other */
        uint64_t result_floats; /* of one sample */
        uint64_t classes;       /* of output 0; 0: it has none */
        const char *not_finite; /* an output of the sample that is calibrated on */
};

static uint64_t held_out(const struct job *job)
{
        return sl_dataset_count(job->samples) - job->options->calibration;
}

static bool is_output(const struct sl_graph *graph, uint32_t value)
{
        for (uint32_t i = 0; i < graph->n_outputs; i++)
                if (graph->outputs[i] == value)
                        return true;
        return false;
}

/* Where the first of them is that is not finite; @n without one. */
static uint64_t find_not_finite(const float *data, uint64_t n)
{
        uint64_t at = 0;

        while (at < n && isfinite(data[at]))
                at++;
        return at;
}

static int refuse_result(uint64_t sample, const char *output, const char *of, struct sl_error *error)
{
        return sl_error_set(error, EINVAL, "sample %" PRIu64 ": output \"%s\" of %s is not finite", sample, output, of);
}

static void observe(void *context, uint32_t value, const float *data, uint64_t elements)
{
        struct job *job = context;

        if (value >= job->graph->n_values)
                return;
        sl_range_add(&job->ranges[value], data, elements);
        if (is_output(job->graph, value) && find_not_finite(data, elements) < elements)
                job->not_finite = job->graph->values[value].name;
}

static int observe_sample(struct job *job, struct sl_observation *observation, uint64_t sample, struct sl_error *error)
{
        const void *inputs[INPUTS_MAX];
        int r;

        sl_dataset_at(job->samples, sample, inputs);
        r = sl_observation_run(observation, inputs, observe, job, error);
        if (r < 0)
                return sl_error_prefix(error, r, "sample %" PRIu64, sample);
        return job->not_finite ? refuse_result(sample, job->not_finite, "float32", error) : 0;
}

static int calibrate(struct job *job, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *single = NULL;
        SL_CLEANUP(sl_cleanup_sl_observation_free) struct sl_observation *observation = NULL;
        int r = sl_graph_specialise(job->graph, 1, &single, error);

        if (r == 0)
                r = sl_observation_new(single, sl_lower_options_backend(&job->options->lowering), &observation, error);
        for (uint64_t i = 0; i < job->options->calibration && r == 0; i++)
                r = observe_sample(job, observation, i, error);
        for (uint32_t i = 0; i < job->graph->n_values && r == 0; i++)
                sl_range_limits(
                        &job->ranges[i], job->options->method, job->options->percentile, &job->limits[i].low, &job->limits[i].high);
        return r;
}

/* A copy of the float32 graph, annotated. */
static int make_variant(const struct job *job, struct sl_graph **ret_graph, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *graph = NULL;
        int r = sl_graph_copy(job->graph, &graph);

        if (r < 0)
                return sl_error_set(error, -r, "no memory for a copy of the graph");
        if (job->options->lowering.precision == SL_PRECISION_INT8)
                r = sl_annotate(graph, job->limits, job->stays_float, error);
        if (r < 0)
                return r;
        *ret_graph = sl_take(graph);
        return 0;
}

static double cosine_of(const float *a, const float *b, uint64_t n)
{
        double dot = 0, aa = 0, bb = 0;

        for (uint64_t i = 0; i < n; i++) {
                dot += (double)a[i] * (double)b[i];
                aa += (double)a[i] * (double)a[i];
                bb += (double)b[i] * (double)b[i];
        }
        return aa > 0 && bb > 0 ? dot / sqrt(aa * bb) : aa == bb;
}

static void score(const struct job *job, uint64_t index, const float *got, struct sl_accuracy *accuracy)
{
        const float *want = job->wanted + index * job->result_floats;
        uint64_t class_got, class_want;

        accuracy->samples++;
        accuracy->cosine += cosine_of(got, want, job->result_floats);
        if (!job->classes)
                return;
        class_got = sl_greatest(got, job->classes);
        class_want = sl_greatest(want, job->classes);
        accuracy->agreement += class_got == class_want;
        if (!job->options->labels)
                return;
        accuracy->top_1 += (int64_t)class_got == job->options->labels[job->options->calibration + index];
        accuracy->top_1_float32 += (int64_t)class_want == job->options->labels[job->options->calibration + index];
}

/* An int8 variant whose results are not finite has products to give back; others have none. */
static int check_result(const struct job *job, const struct sl_runner *runner, uint64_t sample, const float *result,
        const struct sl_accuracy *accuracy, struct sl_error *error)
{
        uint64_t at = find_not_finite(result, job->result_floats);

        if (at == job->result_floats || (accuracy && job->options->lowering.precision == SL_PRECISION_INT8))
                return 0;
        return refuse_result(sample, sl_runner_output_of(runner, at), accuracy ? "the variant" : "float32", error);
}

/* Runs the samples that are measured on (the first @n of them); the results of float32 when there is no accuracy to fill. */
static int run_samples(
        const struct job *job, struct sl_runner *runner, uint64_t n, struct sl_accuracy *accuracy, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) float *room = calloc(job->result_floats + 1, sizeof(*room));
        int r = room ? 0 : sl_error_set(error, ENOMEM, "no memory for results");

        for (uint64_t i = 0; i < n && r == 0; i++) {
                float *result = accuracy ? room : job->wanted + i * job->result_floats;
                uint64_t sample = job->options->calibration + i;
                const void *inputs[INPUTS_MAX];

                sl_dataset_at(job->samples, sample, inputs);
                r = sl_runner_run(runner, inputs, result, error);
                r = r < 0 ? sl_error_prefix(error, r, "sample %" PRIu64, sample)
                          : check_result(job, runner, sample, result, accuracy, error);
                if (r == 0 && accuracy)
                        score(job, i, result, accuracy);
        }
        return r;
}

static int measure(
        const struct job *job, const struct sl_graph *variant, uint64_t n, struct sl_accuracy *ret_accuracy, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_runner_free) struct sl_runner *runner = NULL;
        struct sl_lower_options lowering = job->options->lowering;
        struct sl_accuracy accuracy = {0};
        double share = 1.0 / (double)n;
        int r;

        /* A graph of which every product stayed float32 is no error here. */
        if (lowering.precision == SL_PRECISION_INT8)
                lowering.precision = SL_PRECISION_FP32;
        /* What is measured is bfloat16, on any processor. */
        if (lowering.precision == SL_PRECISION_BF16 && !sl_lower_narrows(&lowering) &&
                sl_lower_options_parse(&lowering, "backend=ref", error) < 0)
                return -EINVAL;
        r = sl_runner_new(variant, &lowering, &runner, error);
        r = r < 0 ? r : run_samples(job, runner, n, &accuracy, error);
        if (r < 0)
                return r;
        accuracy.cosine *= share;
        accuracy.agreement = job->classes ? accuracy.agreement * share : NAN;
        accuracy.top_1 = job->classes && job->options->labels ? accuracy.top_1 * share : NAN;
        accuracy.top_1_float32 = job->classes && job->options->labels ? accuracy.top_1_float32 * share : NAN;
        *ret_accuracy = accuracy;
        return 0;
}

/* What is not finite has lost everything. */
static double cosine_loss(const struct sl_accuracy *accuracy)
{
        return isfinite(accuracy->cosine) ? 1 - accuracy->cosine : INFINITY;
}

static double loss_of(const struct sl_accuracy *accuracy)
{
        double loss = cosine_loss(accuracy);

        return isnan(accuracy->top_1) || isinf(loss) ? loss : accuracy->top_1_float32 - accuracy->top_1;
}

static bool loses_too_much(const struct job *job, const struct sl_accuracy *accuracy)
{
        return job->options->lowering.precision == SL_PRECISION_INT8 && !(loss_of(accuracy) <= job->options->max_loss);
}

static int make_and_measure(
        struct job *job, uint64_t n, struct sl_graph **ret_graph, struct sl_accuracy *ret_accuracy, struct sl_error *error)
{
        struct sl_graph *graph = NULL;
        int r = make_variant(job, &graph, error);

        if (r < 0)
                return r;
        r = measure(job, graph, n, ret_accuracy, error);
        if (r < 0 || !ret_graph) {
                sl_graph_free(graph);
                return r;
        }
        *ret_graph = graph;
        return 0;
}

static int check_labels(const struct job *job, struct sl_error *error)
{
        const int64_t *labels = job->options->labels;

        for (uint64_t i = 0; labels && job->classes && i < sl_dataset_count(job->samples); i++)
                if (labels[i] < 0 || (uint64_t)labels[i] >= job->classes)
                        return sl_error_set(error, EINVAL, "label %" PRIi64 " of sample %" PRIu64 ": classes are 0 to %" PRIu64,
                                labels[i], i, job->classes - 1);
        return 0;
}

/* What float32 says on the samples that are measured on. */
static int run_float32(struct job *job, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_runner_free) struct sl_runner *runner = NULL;
        struct sl_lower_options lowering = job->options->lowering;
        int r;

        lowering.precision = SL_PRECISION_FP32;
        lowering.weights = SL_WEIGHTS_FP32;
        r = sl_runner_new(job->graph, &lowering, &runner, error);
        if (r < 0)
                return r;
        job->result_floats = sl_runner_floats(runner);
        job->classes = sl_runner_classes(runner);
        r = check_labels(job, error);
        if (r < 0)
                return r;
        job->wanted = calloc(held_out(job) * job->result_floats + 1, sizeof(*job->wanted));
        if (!job->wanted)
                return sl_error_set(error, ENOMEM, "no memory for the results of %" PRIu64 " samples", held_out(job));
        return run_samples(job, runner, held_out(job), NULL, error);
}

/* A product and what it costs alone. */
struct suspect {
        uint32_t node;
        double loss;
};

static int compare_suspects(const void *a, const void *b)
{
        const struct suspect *x = a, *y = b;

        return x->loss < y->loss ? 1 : x->loss > y->loss ? -1 : x->node < y->node ? -1 : 1;
}

/* Each product quantized alone, on a few samples: the worst first. */
static int rank_products(struct job *job, struct suspect *suspects, uint32_t n_suspects, struct sl_error *error)
{
        uint64_t scouts = held_out(job) < SCOUTS ? held_out(job) : SCOUTS;

        memset(job->stays_float, 1, job->graph->n_nodes);
        for (uint32_t i = 0; i < n_suspects; i++) {
                struct sl_accuracy accuracy;
                int r;

                job->stays_float[suspects[i].node] = false;
                r = make_and_measure(job, scouts, NULL, &accuracy, error);
                job->stays_float[suspects[i].node] = true;
                if (r < 0)
                        return r;
                suspects[i].loss = cosine_loss(&accuracy);
        }
        qsort(suspects, n_suspects, sizeof(*suspects), compare_suspects);
        memset(job->stays_float, 0, job->graph->n_nodes);
        return 0;
}

/* Gives the worst back to float32, portion by portion, until the loss is within its bound. */
static int give_back(
        struct job *job, struct suspect *suspects, uint32_t n_suspects, struct sl_variant *variant, struct sl_error *error)
{
        uint32_t portion = (n_suspects + STEPS - 1) / STEPS;
        int r = rank_products(job, suspects, n_suspects, error);

        for (uint32_t at = 0; at < n_suspects && r == 0 && loses_too_much(job, &variant->accuracy);) {
                for (uint32_t end = at + portion; at < end && at < n_suspects; at++) {
                        job->stays_float[suspects[at].node] = true;
                        variant->n_float++;
                }
                variant->graph = sl_graph_free(variant->graph);
                r = make_and_measure(job, held_out(job), &variant->graph, &variant->accuracy, error);
        }
        return r;
}

static int name_float_nodes(const struct job *job, struct sl_variant *variant)
{
        size_t room = 1;
        char *at;

        for (uint32_t i = 0; i < job->graph->n_nodes; i++)
                room += job->stays_float[i] ? strlen(job->graph->nodes[i].name) + 1 : 0;
        variant->float_nodes = at = calloc(room, 1);
        for (uint32_t i = 0; at && i < job->graph->n_nodes; i++) {
                if (!job->stays_float[i])
                        continue;
                if (at != variant->float_nodes)
                        *at++ = ',';
                at = stpcpy(at, job->graph->nodes[i].name);
        }
        return at ? 0 : -ENOMEM;
}

static int quantize(struct job *job, struct sl_variant *variant, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct suspect *suspects = calloc(job->graph->n_nodes + 1u, sizeof(*suspects));
        int r = suspects ? run_float32(job, error) : -ENOMEM;

        for (uint32_t i = 0; i < job->graph->n_nodes && r == 0; i++)
                if (sl_annotate_is_product(job->graph, i))
                        suspects[variant->n_products++].node = i;
        if (r == 0 && job->options->lowering.precision == SL_PRECISION_INT8)
                r = calibrate(job, error);
        if (r == 0)
                r = make_and_measure(job, held_out(job), &variant->graph, &variant->accuracy, error);
        if (r == 0 && loses_too_much(job, &variant->accuracy))
                r = give_back(job, suspects, variant->n_products, variant, error);
        if (r == 0 && name_float_nodes(job, variant) < 0)
                r = sl_error_set(error, ENOMEM, "no memory for the names of %u nodes", variant->n_float);
        return r;
}

static int import(const char *model, const struct sl_lower_options *lowering, struct sl_graph **ret_graph, struct sl_error *error)
{
        struct sl_graph_limits limits = sl_lower_graph_limits(lowering);
        int r = sl_import_onnx_bound(model, &limits, &lowering->shapes, ret_graph, error);

        r = r < 0 ? r : sl_graph_expand_nibbles(*ret_graph, NULL, NULL, error);
        return r < 0 ? r : sl_passes_run(*ret_graph, &(struct sl_pass_options){.without = ~BASIC_PASSES}, error);
}

/*
 * A variant has the nodes of the graph, and some that can be written: what cannot is to be said before samples are run. Its size is
 * another one.
 */
static int check_export(const struct sl_graph *graph, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *copy = NULL;
        SL_CLEANUP(sl_cleanup_free) uint8_t *file = NULL;
        size_t bytes;
        int r = sl_graph_copy(graph, &copy);

        if (r < 0)
                return sl_error_set(error, -r, "no memory for a copy of the graph");
        r = sl_export_onnx(copy, NULL, 0, &file, &bytes, error);
        return r == -EFBIG ? 0 : r;
}

/* Results are compared number by number. */
static int check_outputs(const struct sl_graph *graph, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *single = NULL;
        char shape[SL_SHAPE_TEXT_BYTES];
        int r = sl_graph_specialise(graph, 1, &single, error);

        for (uint32_t i = 0; r == 0 && i < single->n_outputs; i++) {
                const struct sl_value *output = &single->values[single->outputs[i]];

                if (!sl_shape_is_static(&output->tensor.shape))
                        r = sl_error_set(error, ENOTSUP,
                                "output \"%s\" has the data-dependent shape %s: its accuracy is not measured", output->name,
                                sl_shape_print(&output->tensor.shape, shape));
        }
        return r;
}

static void job_deinit(struct job *job)
{
        free(job->ranges);
        free(job->limits);
        free(job->stays_float);
        free(job->wanted);
}

int sl_quantize(const char *model, const struct sl_quantize_options *options, const struct sl_dataset *samples,
        struct sl_variant *ret_variant, struct sl_error *error)
{
        struct job job = {.options = options, .samples = samples};
        struct sl_variant variant = {0};
        int r;

        if (!options->calibration || options->calibration >= sl_dataset_count(samples))
                return sl_error_set(error, EINVAL,
                        "%" PRIu64 " of %" PRIu64 " samples to calibrate on: both they and the others are wanted",
                        options->calibration, sl_dataset_count(samples));
        r = import(model, &options->lowering, &job.graph, error);
        r = r < 0 ? r : check_export(job.graph, error);
        r = r < 0 ? r : check_outputs(job.graph, error);
        if (r == 0) {
                job.ranges = calloc(job.graph->n_values + 1u, sizeof(*job.ranges));
                job.limits = calloc(job.graph->n_values + 1u, sizeof(*job.limits));
                job.stays_float = calloc(job.graph->n_nodes + 1u, sizeof(*job.stays_float));
                if (job.ranges && job.limits && job.stays_float)
                        r = quantize(&job, &variant, error);
                else
                        r = sl_error_set(error, ENOMEM, "no memory for the ranges of %u values", job.graph->n_values);
        }
        job_deinit(&job);
        /* The variant shares the constants of the graph that it was made from. */
        variant.source = job.graph;
        if (r < 0) {
                sl_variant_deinit(&variant);
                return r;
        }
        *ret_variant = variant;
        return 0;
}

void sl_variant_deinit(struct sl_variant *variant)
{
        sl_graph_free(variant->graph);
        sl_graph_free(variant->source);
        free(variant->float_nodes);
        *variant = (struct sl_variant){0};
}
