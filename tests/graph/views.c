/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of large tensors stay in the file: the graph's constants are there, wherever the file has them.
 */
#include "base/error.h"
#include "builder.h"
#include "import.h"
#include "import/wire.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MATRICES 8
#define SIDE     264 /* more than 256 KiB of floats in a square */

/* x times matrices, one after the other. Their names have other lengths, so that their data lie at all distances from a word's
 * start. */
static struct builder *chain(void)
{
        struct builder *b = builder_new_of_x(17, 2, (int64_t[]){-1, SIDE});
        char from[16] = "x", weights[16], inputs[40], to[16];

        for (int i = 0; i < MATRICES; i++) {
                snprintf(weights, sizeof(weights), "w%.*s", i + 1, "0123456789");
                snprintf(inputs, sizeof(inputs), "%s,%s", from, weights);
                snprintf(to, sizeof(to), "y%d", i);
                builder_random(b, weights, 2, (int64_t[]){SIDE, SIDE});
                builder_node(b, "MatMul", inputs, to);
                strcpy(from, to);
        }
        builder_output(b, from);
        return b;
}

static struct sl_graph *import_file(struct builder *b)
{
        char path[] = "/tmp/starling-views-XXXXXX";
        struct sl_error error = {0};
        struct sl_graph *graph = NULL;
        int fd = mkstemp(path);
        size_t n;
        uint8_t *bytes = builder_pack(b, &n);

        cr_assert_geq(fd, 0);
        cr_assert_eq(write(fd, bytes, n), (ssize_t)n);
        close(fd);
        cr_assert_eq(sl_import_onnx(path, NULL, &graph, &error), 0, "%s", error.text);
        unlink(path);
        return graph;
}

static bool is_aligned(const void *data)
{
        return (uintptr_t)data % sizeof(float) == 0;
}

Test(views, data_stay_where_the_file_has_them_and_are_read_aligned)
{
        struct builder *b = chain();
        struct sl_graph *file = import_file(b), *copied = builder_import(b);
        uint32_t n_constants = 0, n_askew = 0;

        cr_assert_eq(file->n_values, copied->n_values);
        for (uint32_t i = 0; i < file->n_values; i++) {
                const struct sl_value *value = &file->values[i];

                if (value->kind != SL_VALUE_CONSTANT)
                        continue;
                n_constants++;
                n_askew += !is_aligned(value->data);
                cr_assert(is_aligned(sl_graph_constant(file, i)));
                cr_assert_eq(
                        memcmp(sl_graph_constant(file, i), copied->values[i].data, value->data_bytes), 0, "\"%s\"", value->name);
                sl_graph_drop_copies(file);
                cr_assert_eq(memcmp(value->data, copied->values[i].data, value->data_bytes), 0, "\"%s\"", value->name);
        }
        cr_assert_eq(n_constants, MATRICES);
        cr_assert_gt(n_askew, 0, "a copy would be aligned");
        sl_graph_free(copied);
        sl_graph_free(file);
        builder_free(b);
}

Test(views, a_copy_is_made_once_and_again_when_it_was_dropped)
{
        struct builder *b = chain();
        struct sl_graph *graph = import_file(b);
        uint32_t askew = 0;

        while (graph->values[askew].kind != SL_VALUE_CONSTANT || is_aligned(graph->values[askew].data))
                askew++;
        cr_assert_eq(sl_graph_constant(graph, askew), sl_graph_constant(graph, askew));
        cr_assert_neq(sl_graph_constant(graph, askew), graph->values[askew].data);
        sl_graph_drop_copies(graph);
        cr_assert_eq(memcmp(sl_graph_constant(graph, askew), graph->values[askew].data, graph->values[askew].data_bytes), 0);
        sl_graph_free(graph);
        builder_free(b);
}

/* ---- the parser's message ---- */

static Onnx__ModelProto *read_model(const uint8_t *bytes, size_t n)
{
        const struct sl_wire_limits limits = {.nodes = 1000, .messages = 100000};
        Onnx__ModelProto *model = NULL;
        struct sl_error error = {0};

        cr_assert_eq(sl_wire_read_model(bytes, n, &limits, &model, &error), 0, "%s", error.text);
        return model;
}

Test(views, a_message_has_all_of_the_file_but_the_data)
{
        struct builder *b = chain();
        size_t n;
        uint8_t *bytes = builder_pack(b, &n);
        Onnx__ModelProto *model = read_model(bytes, n);

        cr_assert_eq(model->graph->n_initializer, MATRICES);
        cr_assert_eq(model->graph->n_node, MATRICES);
        for (size_t i = 0; i < MATRICES; i++) {
                const Onnx__TensorProto *there = b->graph.initializer[i], *here = model->graph->initializer[i];
                const struct sl_wire_data data = sl_wire_data_of(here, bytes, n);

                cr_assert_str_eq(here->name, there->name);
                cr_assert_str_eq(model->graph->node[i]->output[0], b->graph.node[i]->output[0]);
                cr_assert(data.in_file && data.bytes > bytes && data.bytes + data.n_bytes <= bytes + n);
                cr_assert_lt(here->raw_data.len, 64);
                cr_assert_eq(data.n_bytes, there->raw_data.len);
                cr_assert_eq(memcmp(data.bytes, there->raw_data.data, data.n_bytes), 0);
        }
        sl_wire_free_model(model);
        builder_free(b);
}

Test(views, data_of_every_length_are_found_again)
{
        for (int64_t length = 0; length <= 300; length++) {
                struct builder *b = builder_new_of_x(17, 1, (int64_t[]){1});
                uint8_t data[300];
                struct sl_wire_data found;
                Onnx__ModelProto *model;
                uint8_t *bytes;
                size_t n;

                for (size_t i = 0; i < sizeof(data); i++)
                        data[i] = (uint8_t)(i * 7 + 1);
                builder_raw(b, "w", SL_DTYPE_U8, 1, &length, data);
                builder_node(b, "Relu", "x", "y");
                builder_output(b, "y");
                bytes = builder_pack(b, &n);
                model = read_model(bytes, n);
                found = sl_wire_data_of(model->graph->initializer[0], bytes, n);
                cr_assert_eq(found.n_bytes, (uint64_t)length);
                cr_assert_eq(memcmp(found.bytes ? found.bytes : data, data, (size_t)length), 0, "%d bytes", (int)length);
                cr_assert_str_eq(model->graph->node[0]->op_type, "Relu");
                sl_wire_free_model(model);
                builder_free(b);
        }
}

Test(views, a_place_outside_of_the_file_has_no_data)
{
        struct builder *b = chain();
        size_t n;
        uint8_t *bytes = builder_pack(b, &n);
        Onnx__ModelProto *model = read_model(bytes, n);
        const struct sl_wire_data data = sl_wire_data_of(model->graph->initializer[MATRICES - 1], bytes, n / 2);

        cr_assert_null(data.bytes);
        cr_assert_eq(data.n_bytes, 0);
        sl_wire_free_model(model);
        builder_free(b);
}
