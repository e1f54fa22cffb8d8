/* SPDX-License-Identifier: Apache-2.0 */
/* Files of samples: the formats, and what does not fit the model. */
#include "base/error.h"
#include "dataset.h"
#include "graph.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/starling-dataset-XXXXXX";

static void make_folder(void)
{
        cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
        static const char *const names[] = {"x.npy", "x.f32", "x.npz", "x.NPY", "labels.npy"};
        char path[128];

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
                unlink(path);
        }
        rmdir(folder);
}

TestSuite(dataset, .init = make_folder, .fini = remove_folder);

static const char *write_file(const char *name, const void *data, size_t bytes)
{
        static char path[128];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        file = fopen(path, "wb");
        cr_assert_not_null(file);
        cr_assert_eq(fwrite(data, 1, bytes, file), bytes);
        fclose(file);
        return path;
}

/* A .npy file of version 1 whose header is padded to 128 bytes. */
static const char *write_npy(const char *name, const char *dictionary, const void *data, size_t bytes)
{
        char file[4096] = "\x93NUMPY\x01";

        file[8] = 118;
        memset(file + 10, ' ', 118);
        memcpy(file + 10, dictionary, strlen(dictionary));
        file[127] = '\n';
        memcpy(file + 128, data, bytes);
        return write_file(name, file, 128 + bytes);
}

/* A graph of one input "x", float32 [N,2,3]. */
static struct sl_graph *make_graph(void)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_F32, .shape = {.rank = 3, .dims = {SL_DIM_BATCH, 2, 3}}};
        struct sl_graph *graph;
        uint32_t input;

        cr_assert_eq(sl_graph_new(&graph), 0);
        cr_assert_eq(sl_graph_add_value(graph, "x", SL_VALUE_INPUT, &tensor, &input), 0);
        cr_assert_eq(sl_graph_set_ports(graph, &input, 1, &input, 1), 0);
        return graph;
}

static void expect_refusal(const char *path, const char *part)
{
        struct sl_graph *graph = make_graph();
        struct sl_dataset *dataset = NULL;
        struct sl_error error = {""};

        cr_expect_lt(sl_dataset_open(path, graph, &dataset, &error), 0);
        cr_expect(strstr(error.text, part), "\"%s\" is not in \"%s\"", part, error.text);
        cr_expect_null(dataset);
        sl_graph_free(graph);
}

static void expect_samples(const char *path)
{
        struct sl_graph *graph = make_graph();
        struct sl_dataset *dataset = NULL;
        struct sl_error error = {""};
        const void *inputs[1];

        cr_assert_eq(sl_dataset_open(path, graph, &dataset, &error), 0, "%s", error.text);
        cr_expect_eq(sl_dataset_count(dataset), 2);
        sl_dataset_at(dataset, 1, inputs);
        cr_expect_eq(((const float *)inputs[0])[5], 11);
        sl_dataset_free(dataset);
        sl_graph_free(graph);
}

static const float twelve[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

Test(dataset, reads_npy_from_a_file_and_from_a_folder)
{
        expect_samples(
                write_npy("x.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2, 3), }", twelve, sizeof(twelve)));
        expect_samples(folder);
}

Test(dataset, reads_bare_floats)
{
        expect_samples(write_file("x.f32", twelve, sizeof(twelve)));
}

Test(dataset, refuses_what_does_not_fit)
{
        expect_refusal("/nonexistent", "/nonexistent");
        expect_refusal(folder, "no x.npy");
        expect_refusal(write_file("x.f32", twelve, 28), "no whole samples");
        expect_refusal(write_file("x.npy", twelve, sizeof(twelve)), "no .npy file");
        expect_refusal(
                write_npy("x.npy", "{'descr': '<i8', 'fortran_order': False, 'shape': (6,), }", twelve, sizeof(twelve)), "int64");
        expect_refusal(write_npy("x.npy", "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2, 3), }", twelve, sizeof(twelve)),
                "C order");
        expect_refusal(write_npy("x.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 3), }", twelve, sizeof(twelve)),
                "no .npy file");
        expect_refusal(write_npy("x.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2, ", twelve, sizeof(twelve)),
                "no .npy file");
}

#define FLOATS_OF(shape) "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }"

/* Floats of twice [2,3]. */
static const char *write_floats_of(const char *dictionary)
{
        return write_npy("x.npy", dictionary, twelve, sizeof(twelve));
}

Test(dataset, axes_are_those_of_the_input_or_one_of_all_its_elements)
{
        expect_samples(write_floats_of(FLOATS_OF("(2, 6)")));
        expect_refusal(write_floats_of(FLOATS_OF("(2, 3, 2)")), "has the shape [2,3,2], input \"x\" wants [N,2,3] or [N,6]");
        expect_refusal(write_floats_of(FLOATS_OF("(4, 3)")), "[4,3]");
        expect_refusal(write_floats_of(FLOATS_OF("(12,)")), "[12]");
        expect_refusal(write_floats_of(FLOATS_OF("(1, 2, 2, 3)")), "[1,2,2,3]");
        expect_refusal(write_npy("x.npy", FLOATS_OF("()"), twelve, sizeof(*twelve)), "has the shape []");
}

Test(dataset, samples_of_other_files_are_refused_by_name)
{
        expect_refusal(write_file("x.npz", twelve, sizeof(twelve)), "x.npz: samples are in files that end with .npy");
        expect_refusal(write_file("x.NPY", twelve, sizeof(twelve)), "x.NPY: samples are in files");
}

Test(dataset, bare_floats_are_of_an_input_of_floats)
{
        const char *path = write_file("x.f32", twelve, sizeof(twelve));
        struct sl_graph *graph = make_graph();
        struct sl_dataset *dataset = NULL;
        struct sl_error error = {""};

        graph->values[graph->inputs[0]].tensor.dtype = SL_DTYPE_I32;
        cr_expect_eq(sl_dataset_open(path, graph, &dataset, &error), -EINVAL);
        cr_expect(strstr(error.text, "is of float32, input \"x\" wants int32"), "%s", error.text);
        sl_graph_free(graph);
}

Test(dataset, labels_are_one_for_each_sample)
{
        const int64_t classes[] = {7, 9};
        int64_t *labels = NULL;
        struct sl_error error = {""};
        const char *path =
                write_npy("labels.npy", "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", classes, sizeof(classes));

        cr_assert_eq(sl_labels_read(path, 2, &labels, &error), 0, "%s", error.text);
        cr_expect_eq(labels[1], 9);
        free(labels);
        cr_expect_eq(sl_labels_read(path, 3, &labels, &error), -EINVAL);
        cr_expect(strstr(error.text, "2 labels for 3 samples"), "%s", error.text);
}

Test(dataset, labels_of_other_types_are_refused_by_name)
{
        static const char *const types[][2] = {{"<f4", "float32"}, {"<i2", "int16"}, {"<u4", "uint32"}, {"|b1", "bool"}};
        const int64_t classes[2] = {0};

        for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
                struct sl_error error = {""};
                int64_t *labels = NULL;
                char dictionary[128];
                uint64_t bytes = i == 1 ? 2 : i == 3 ? 1 : 4;

                snprintf(dictionary, sizeof(dictionary), "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }", types[i][0]);
                cr_expect_eq(sl_labels_read(write_npy("labels.npy", dictionary, classes, 2 * bytes), 2, &labels, &error), -EINVAL);
                cr_expect(strstr(error.text, types[i][1]), "%s", error.text);
                cr_expect_null(labels);
        }
}
