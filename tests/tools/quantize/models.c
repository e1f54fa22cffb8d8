/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantize-models FOLDER: models with operators that import brings into another form (upsampled.onnx, recurrent.onnx), one that
 * cannot be written again (branching.onnx), one of products with long names (named.onnx), one without products (plain.onnx), and
 * NAME.f32, samples of each.
 */
#include "builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 8

static void write_file(const char *folder, const char *name, const char *suffix, const void *data, size_t bytes)
{
        char path[512];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s.%s", folder, name, suffix);
        file = fopen(path, "wb");
        if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0) {
                perror(path);
                exit(1);
        }
}

/* @floats: of one sample. Frees the builder. */
static void write_model(struct builder *b, const char *folder, const char *name, size_t floats)
{
        float *samples = builder_alloc(b, SAMPLES * floats * sizeof(*samples));
        const uint8_t *file;
        size_t bytes;

        builder_output(b, "y");
        file = builder_pack(b, &bytes);
        write_file(folder, name, "onnx", file, bytes);
        fill_random(samples, SAMPLES * floats, 1);
        write_file(folder, name, "f32", samples, SAMPLES * floats * sizeof(*samples));
        builder_free(b);
}

static void write_upsampled(const char *folder)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 3, 8, 8));
        Onnx__NodeProto *node;

        builder_random(b, "w", DIMS(8, 3, 3, 3));
        builder_random(b, "v", DIMS(8, 8, 3, 3));
        builder_floats(b, "scales", DIMS(4), (float[]){1, 1, 2, 2});
        builder_attr_ints(b, builder_node(b, "Conv", "x,w", "c"), "pads", DIMS(1, 1, 1, 1));
        node = builder_node(b, "Resize", "c,,scales", "u");
        builder_attr_string(b, node, "coordinate_transformation_mode", "asymmetric");
        builder_attr_string(b, node, "nearest_mode", "floor");
        builder_node(b, "Conv", "u,v", "d");
        node = builder_node(b, "DepthToSpace", "d", "y");
        builder_attr_int(b, node, "blocksize", 2);
        builder_attr_string(b, node, "mode", "CRD");
        write_model(b, folder, "upsampled", 3 * 8 * 8);
}

static void write_recurrent(const char *folder)
{
        struct builder *b = builder_new_of_x(14, DIMS(-1, 6, 4));
        Onnx__NodeProto *node;

        builder_random(b, "w", DIMS(1, 4 * 8, 4));
        builder_random(b, "r", DIMS(1, 4 * 8, 8));
        builder_random(b, "v", DIMS(8, 5));
        builder_ints(b, "first", DIMS(1), (int64_t[]){0});
        builder_transpose(b, "x", "t", DIMS(1, 0, 2));
        node = builder_node(b, "LSTM", "t,w,r", ",h");
        builder_attr_int(b, node, "hidden_size", 8);
        builder_attr_string(b, node, "direction", "reverse");
        builder_node(b, "Squeeze", "h,first", "s");
        builder_node(b, "MatMul", "s,v", "y");
        write_model(b, folder, "recurrent", 6 * 4);
}

static void write_branching(const char *folder)
{
        struct builder *b = builder_new_of_x(13, DIMS(1, 4)), *then = builder_new(13), *other = builder_new(13);
        Onnx__NodeProto *node;

        builder_node(then, "Neg", "x", "t");
        builder_output(then, "t");
        builder_node(other, "Abs", "x", "e");
        builder_output(other, "e");
        builder_floats(b, "zero", 0, NULL, (float[]){0});
        builder_attr_int(b, builder_node(b, "ReduceSum", "x", "sum"), "keepdims", 0);
        builder_node(b, "Greater", "sum,zero", "positive");
        node = builder_node(b, "If", "positive", "y");
        builder_attr_graph(b, node, "then_branch", then);
        builder_attr_graph(b, node, "else_branch", other);
        write_model(b, folder, "branching", 4);
        builder_free(then);
        builder_free(other);
}

/* Ten products "p0", "p1", ... whose names have 142 bytes, of two-byte characters. */
static void write_named(const char *folder)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 4));
        const char *from = "x";

        builder_random(b, "w", DIMS(4, 4));
        for (int i = 0; i < 10; i++) {
                char inputs[256], *name = builder_alloc(b, 160);

                snprintf(name, 3, "p%d", i);
                for (int k = 0; k < 70; k++)
                        memcpy(name + 2 + 2 * k, "\xc3\xa4", 2);
                snprintf(inputs, sizeof(inputs), "%s,w", from);
                builder_node(b, "MatMul", inputs, name);
                from = name;
        }
        builder_node(b, "Neg", from, "y");
        write_model(b, folder, "named", 4);
}

static void write_plain(const char *folder)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 4));

        builder_node(b, "Relu", "x", "y");
        write_model(b, folder, "plain", 4);
}

int main(int argc, char **argv)
{
        if (argc != 2)
                return 2;
        write_upsampled(argv[1]);
        write_recurrent(argv[1]);
        write_branching(argv[1]);
        write_named(argv[1]);
        write_plain(argv[1]);
        return 0;
}
