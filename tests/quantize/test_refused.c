/* SPDX-License-Identifier: Apache-2.0 */
/* Models and samples of which no variant is made: what is said of them. */
#include "base/error.h"
#include "builder.h"
#include "dataset.h"
#include "quantize.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SAMPLES 4
#define WIDTH   4

/* Samples are known by their ending; unlinked by the caller. */
static void write_samples(const void *data, size_t bytes, char path[64])
{
        int fd;

        strcpy(path, "/tmp/quantize-XXXXXX.f32");
        fd = mkstemps(path, 4);
        cr_assert_geq(fd, 0);
        cr_assert_eq(write(fd, data, bytes), (ssize_t)bytes);
        close(fd);
}

/* A file without a name; @ret_path opens it as long as the descriptor is. */
static int write_file(const void *data, size_t bytes, char ret_path[64])
{
        int fd = memfd_create("quantize", MFD_CLOEXEC);

        cr_assert_geq(fd, 0);
        cr_assert_eq(write(fd, data, bytes), (ssize_t)bytes);
        snprintf(ret_path, 64, "/proc/self/fd/%d", fd);
        return fd;
}

struct trial {
        struct sl_quantize_options options;
        float x[SAMPLES * WIDTH];
};

static void trial_init(struct trial *trial, enum sl_precision precision)
{
        *trial = (struct trial){.options = {.max_loss = 1, .calibration = SAMPLES / 2}};
        sl_lower_options_init(&trial->options.lowering);
        trial->options.lowering.precision = precision;
        fill_random(trial->x, SAMPLES * WIDTH, 1);
}

/* Frees the builder. */
static int trial_run(struct trial *trial, struct builder *b, struct sl_variant *ret_variant, struct sl_error *error)
{
        struct sl_graph *graph = builder_import(b);
        char model[64], data[64];
        struct sl_dataset *samples;
        size_t bytes;
        const uint8_t *file = builder_pack(b, &bytes);
        int fd = write_file(file, bytes, model), r;

        write_samples(trial->x, sizeof(trial->x), data);
        cr_assert_eq(sl_dataset_open(data, graph, &samples, error), 0, "%s", error->text);
        r = sl_quantize(model, &trial->options, samples, ret_variant, error);
        sl_dataset_free(samples);
        sl_graph_free(graph);
        close(fd);
        unlink(data);
        builder_free(b);
        return r;
}

static void expect_refusal(struct trial *trial, struct builder *b, int result, const char *text)
{
        struct sl_error error = {""};
        struct sl_variant variant = {0};

        cr_expect_eq(trial_run(trial, b, &variant, &error), result);
        cr_expect(strstr(error.text, text), "\"%s\" is not in \"%s\"", text, error.text);
        sl_variant_deinit(&variant);
}

/* An If whose condition is data. */
static struct builder *branching(struct builder *then, struct builder *other)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, WIDTH));
        Onnx__NodeProto *node;

        builder_node(then, "Neg", "p", "t");
        builder_output(then, "t");
        builder_node(other, "Abs", "p", "e");
        builder_output(other, "e");
        builder_random(b, "w", DIMS(WIDTH, WIDTH));
        builder_floats(b, "zero", 0, NULL, (float[]){0});
        builder_node(b, "MatMul", "x,w", "p");
        builder_attr_int(b, builder_node(b, "ReduceSum", "p", "sum"), "keepdims", 0);
        builder_node(b, "Greater", "sum,zero", "positive");
        node = builder_node(b, "If", "positive", "y");
        builder_attr_graph(b, node, "then_branch", then);
        builder_attr_graph(b, node, "else_branch", other);
        builder_output(b, "y");
        return b;
}

Test(quantize, what_cannot_be_written_is_refused_before_a_sample_is_run)
{
        struct builder *then = builder_new(13), *other = builder_new(13);
        struct trial trial;

        trial_init(&trial, SL_PRECISION_INT8);
        expect_refusal(&trial, branching(then, other), -ENOTSUP, "a graph with an If, a Loop or a Scan is not written");
        builder_free(then);
        builder_free(other);
}

/* y = x w */
static struct builder *product(void)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, WIDTH));

        builder_random(b, "w", DIMS(WIDTH, WIDTH));
        builder_node(b, "MatMul", "x,w", "y");
        builder_output(b, "y");
        return b;
}

/* Calibrated on or measured on. */
Test(quantize, a_sample_whose_result_is_not_finite_is_refused)
{
        static const float values[] = {NAN, INFINITY, -INFINITY};
        static const enum sl_precision precisions[] = {SL_PRECISION_INT8, SL_PRECISION_BF16};

        for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
                for (size_t k = 0; k < sizeof(precisions) / sizeof(*precisions); k++) {
                        struct trial trial;

                        trial_init(&trial, precisions[k]);
                        trial.x[3 * WIDTH + 1] = values[i];
                        expect_refusal(&trial, product(), -EINVAL, "sample 3: output \"y\" of float32 is not finite");
                }
}

Test(quantize, a_sample_that_is_calibrated_on_has_a_finite_result)
{
        struct trial trial;

        trial_init(&trial, SL_PRECISION_INT8);
        trial.x[WIDTH] = NAN;
        expect_refusal(&trial, product(), -EINVAL, "sample 1: output \"y\" of float32 is not finite");
}

/* The largest float is rounded up to infinity in bfloat16. */
Test(quantize, a_variant_whose_result_is_not_finite_is_refused)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, WIDTH));
        struct trial trial;

        trial_init(&trial, SL_PRECISION_BF16);
        trial.x[3 * WIDTH] = FLT_MAX;
        builder_floats(b, "w", DIMS(WIDTH, 1), (float[WIDTH]){0.25f, 0.25f, 0.25f, 0.25f});
        builder_node(b, "MatMul", "x,w", "y");
        builder_output(b, "y");
        expect_refusal(&trial, b, -EINVAL, "sample 3: output \"y\" of the variant is not finite");
}

Test(quantize, labels_are_classes_of_the_output)
{
        int64_t labels[] = {0, WIDTH - 1, 1, 2};
        struct sl_error error = {""};
        struct sl_variant variant;
        struct trial trial;

        trial_init(&trial, SL_PRECISION_INT8);
        trial.options.labels = labels;
        cr_expect_eq(trial_run(&trial, product(), &variant, &error), 0, "%s", error.text);
        sl_variant_deinit(&variant);
        labels[1] = WIDTH;
        expect_refusal(&trial, product(), -EINVAL, "label 4 of sample 1: classes are 0 to 3");
        labels[1] = -1;
        expect_refusal(&trial, product(), -EINVAL, "label -1 of sample 1: classes are 0 to 3");
}

Test(quantize, an_output_of_data_dependent_shape_is_refused_before_a_sample_is_run)
{
        static const enum sl_precision precisions[] = {SL_PRECISION_INT8, SL_PRECISION_BF16};

        for (size_t k = 0; k < sizeof(precisions) / sizeof(*precisions); k++) {
                struct builder *b = product();
                struct trial trial;

                builder_node(b, "NonZero", "y", "places");
                builder_output(b, "places");
                trial_init(&trial, precisions[k]);
                expect_refusal(&trial, b, -ENOTSUP, "output \"places\" has the data-dependent shape [2,?]");
        }
}

/* y = table[int(x)] w */
static struct builder *lookup(void)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, WIDTH));

        builder_random(b, "table", DIMS(5, WIDTH));
        builder_random(b, "w", DIMS(WIDTH, WIDTH));
        builder_attr_int(b, builder_node(b, "Cast", "x", "i"), "to", ONNX__TENSOR_PROTO__DATA_TYPE__INT64);
        builder_node(b, "Gather", "table,i", "rows");
        builder_node(b, "MatMul", "rows,w", "y");
        builder_output(b, "y");
        return b;
}

Test(quantize, an_index_that_is_out_of_range_is_said_with_its_node_and_sample)
{
        for (uint32_t sample = 0; sample < SAMPLES; sample++) {
                char text[64];
                struct trial trial;

                trial_init(&trial, SL_PRECISION_INT8);
                trial.x[sample * WIDTH] = 9;
                snprintf(text, sizeof(text), "sample %u: node \"rows\" (Gather): an index in an input", sample);
                expect_refusal(&trial, lookup(), -ERANGE, text);
        }
}
