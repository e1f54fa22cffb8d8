/* SPDX-License-Identifier: Apache-2.0 */
/* A variant is to be written: what cannot be is refused before a sample is run. */
#include "base/error.h"
#include "builder.h"
#include "dataset.h"
#include "quantize.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
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
        struct sl_quantize_options options = {.max_loss = 1, .calibration = SAMPLES / 2};
        struct builder *then = builder_new(13), *other = builder_new(13), *b = branching(then, other);
        float x[SAMPLES * WIDTH];
        char model[64], data[64];
        struct sl_dataset *samples;
        struct sl_variant variant;
        struct sl_error error = {""};
        struct sl_graph *graph = builder_import(b);
        size_t bytes;
        const uint8_t *file = builder_pack(b, &bytes);
        int model_fd = write_file(file, bytes, model);

        fill_random(x, SAMPLES * WIDTH, 1);
        write_samples(x, sizeof(x), data);
        sl_lower_options_init(&options.lowering);
        options.lowering.precision = SL_PRECISION_INT8;
        cr_assert_eq(sl_dataset_open(data, graph, &samples, &error), 0, "%s", error.text);
        cr_expect_eq(sl_quantize(model, &options, samples, &variant, &error), -ENOTSUP);
        cr_expect(strstr(error.text, "a graph with an If, a Loop or a Scan is not written"), "%s", error.text);
        sl_dataset_free(samples);
        sl_graph_free(graph);
        close(model_fd);
        unlink(data);
        builder_free(b);
        builder_free(then);
        builder_free(other);
}
