/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ONNX file is a protobuf message, and a message is fields one after another: a tag (number << 3 | kind) and a value; kind 0 is
 * a varint, kind 2 is a length and so many bytes, which may be a message again. Inner messages are built first, in buffers of
 * their own. The field numbers are those of onnx.proto.
 */
#include "conv_model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct buffer {
        unsigned char *bytes;
        size_t n, room;
        int failed;
};

static void add_bytes(struct buffer *to, const void *bytes, size_t n)
{
        if (to->n + n > to->room) {
                size_t room = 2 * (to->n + n) + 64;
                unsigned char *larger = realloc(to->bytes, room);

                if (!larger) {
                        to->failed = 1;
                        return;
                }
                to->bytes = larger;
                to->room = room;
        }
        memcpy(to->bytes + to->n, bytes, n);
        to->n += n;
}

static void add_varint(struct buffer *to, uint64_t value)
{
        unsigned char byte;

        do {
                byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
                add_bytes(to, &byte, 1);
                value >>= 7;
        } while (value);
}

static void add_number(struct buffer *to, uint32_t field, uint64_t value)
{
        add_varint(to, field << 3);
        add_varint(to, value);
}

static void add_block(struct buffer *to, uint32_t field, const void *bytes, size_t n)
{
        add_varint(to, field << 3 | 2);
        add_varint(to, n);
        add_bytes(to, bytes, n);
}

static void add_text(struct buffer *to, uint32_t field, const char *text)
{
        add_block(to, field, text, strlen(text));
}

/* Adds the inner message and frees it. */
static void add_message(struct buffer *to, uint32_t field, struct buffer *inner)
{
        to->failed |= inner->failed;
        add_block(to, field, inner->bytes, inner->n);
        free(inner->bytes);
        *inner = (struct buffer){0};
}

/* AttributeProto: name 1, ints 8, type 20 (INTS is 7). */
static void add_ints(struct buffer *node, const char *name, const int *values, int n)
{
        struct buffer attribute = {0};

        add_text(&attribute, 1, name);
        for (int i = 0; i < n; i++)
                add_number(&attribute, 8, (uint64_t)values[i]);
        add_number(&attribute, 20, 7);
        add_message(node, 5, &attribute);
}

/* NodeProto: input 1, output 2, name 3, op_type 4, attribute 5. GraphProto: node 1. */
static void add_convolution(struct buffer *graph, uint32_t layer, const char *input, const char *output)
{
        struct buffer node = {0};
        char name[16];

        snprintf(name, sizeof(name), "conv%u", layer);
        add_text(&node, 1, input);
        add_text(&node, 1, "weight");
        add_text(&node, 2, output);
        add_text(&node, 3, name);
        add_text(&node, 4, "Conv");
        add_ints(&node, "kernel_shape", (int[]){3, 3}, 2);
        add_ints(&node, "pads", (int[]){1, 1, 1, 1}, 4);
        add_message(graph, 1, &node);
}

static void add_relu(struct buffer *graph, uint32_t layer, const char *input, const char *output)
{
        struct buffer node = {0};
        char name[16];

        snprintf(name, sizeof(name), "relu%u", layer);
        add_text(&node, 1, input);
        add_text(&node, 2, output);
        add_text(&node, 3, name);
        add_text(&node, 4, "Relu");
        add_message(graph, 1, &node);
}

static void add_layers(struct buffer *graph, uint32_t layers)
{
        char input[16] = "image", middle[16], output[16];

        for (uint32_t layer = 0; layer < layers; layer++) {
                snprintf(middle, sizeof(middle), "sum%u", layer);
                if (layer + 1 < layers)
                        snprintf(output, sizeof(output), "part%u", layer);
                else
                        snprintf(output, sizeof(output), "features");
                add_convolution(graph, layer, input, middle);
                add_relu(graph, layer, middle, output);
                memcpy(input, output, sizeof(input));
        }
}

/* TensorProto: dims 1, data_type 2, name 8, raw_data 9. GraphProto: initializer 5. Each output is the mean of its inputs. */
static void add_weight(struct buffer *graph, uint32_t channels)
{
        size_t n = (size_t)channels * channels * 9;
        struct buffer tensor = {0};
        float *values = malloc(n * sizeof(*values));

        for (size_t i = 0; values && i < n; i++)
                values[i] = 1.0f / (float)(channels * 9);
        add_number(&tensor, 1, channels);
        add_number(&tensor, 1, channels);
        add_number(&tensor, 1, 3);
        add_number(&tensor, 1, 3);
        add_number(&tensor, 2, 1);
        add_text(&tensor, 8, "weight");
        if (values)
                add_block(&tensor, 9, values, n * sizeof(*values));
        else
                tensor.failed = 1;
        free(values);
        add_message(graph, 5, &tensor);
}

/* TensorShapeProto.Dimension: dim_value 1, dim_param 2. */
static void add_dimension(struct buffer *shape, uint32_t size)
{
        struct buffer dimension = {0};

        if (size)
                add_number(&dimension, 1, size);
        else
                add_text(&dimension, 2, "N");
        add_message(shape, 1, &dimension);
}

/* ValueInfoProto: name 1, type 2; TypeProto: tensor_type 1; TypeProto.Tensor: elem_type 1, shape 2. */
static void add_port(struct buffer *graph, uint32_t field, const char *name, const struct sl_conv_model *model)
{
        struct buffer shape = {0}, tensor = {0}, type = {0}, port = {0};

        add_dimension(&shape, 0);
        add_dimension(&shape, model->channels);
        add_dimension(&shape, model->side);
        add_dimension(&shape, model->side);
        add_number(&tensor, 1, 1);
        add_message(&tensor, 2, &shape);
        add_message(&type, 1, &tensor);
        add_text(&port, 1, name);
        add_message(&port, 2, &type);
        add_message(graph, field, &port);
}

/* ModelProto: ir_version 1, producer_name 2, graph 7, opset_import 8 (version 2). GraphProto: name 2, input 11, output 12. */
static void build(struct buffer *file, const struct sl_conv_model *model)
{
        struct buffer graph = {0}, opset = {0};

        add_layers(&graph, model->layers);
        add_text(&graph, 2, "convolutions");
        add_weight(&graph, model->channels);
        add_port(&graph, 11, "image", model);
        add_port(&graph, 12, "features", model);
        add_text(&opset, 1, "");
        add_number(&opset, 2, 13);
        add_number(file, 1, 7);
        add_text(file, 2, "starling bench");
        add_message(file, 7, &graph);
        add_message(file, 8, &opset);
}

static int make_folders(const char *repository, const char *name, char *ret_path, size_t bytes)
{
        snprintf(ret_path, bytes, "%s/%s", repository, name);
        if (mkdir(ret_path, 0700) < 0 && errno != EEXIST)
                return -errno;
        snprintf(ret_path, bytes, "%s/%s/1", repository, name);
        if (mkdir(ret_path, 0700) < 0 && errno != EEXIST)
                return -errno;
        snprintf(ret_path, bytes, "%s/%s/1/model.onnx", repository, name);
        return 0;
}

int sl_conv_model_write(const struct sl_conv_model *model, const char *repository, const char *name)
{
        struct buffer bytes = {0};
        char path[512];
        int r = make_folders(repository, name, path, sizeof(path));

        if (r < 0)
                return r;
        build(&bytes, model);

        FILE *file = bytes.failed ? NULL : fopen(path, "we");
        if (!file) {
                r = bytes.failed ? -ENOMEM : -errno;
        } else {
                if (fwrite(bytes.bytes, 1, bytes.n, file) != bytes.n)
                        r = -EIO;
                if (fclose(file) && r == 0)
                        r = -errno;
        }
        free(bytes.bytes);
        return r;
}
