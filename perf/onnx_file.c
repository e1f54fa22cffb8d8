/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void add_bytes(struct sl_onnx_bytes *to, const void *bytes, size_t n)
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

static void add_varint(struct sl_onnx_bytes *to, uint64_t value)
{
        unsigned char byte;

        do {
                byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
                add_bytes(to, &byte, 1);
                value >>= 7;
        } while (value);
}

void sl_onnx_number(struct sl_onnx_bytes *to, uint32_t field, uint64_t value)
{
        add_varint(to, field << 3);
        add_varint(to, value);
}

void sl_onnx_block(struct sl_onnx_bytes *to, uint32_t field, const void *bytes, size_t n)
{
        add_varint(to, field << 3 | 2);
        add_varint(to, n);
        add_bytes(to, bytes, n);
}

void sl_onnx_text(struct sl_onnx_bytes *to, uint32_t field, const char *text)
{
        sl_onnx_block(to, field, text, strlen(text));
}

void sl_onnx_message(struct sl_onnx_bytes *to, uint32_t field, struct sl_onnx_bytes *inner)
{
        to->failed |= inner->failed;
        sl_onnx_block(to, field, inner->bytes, inner->n);
        free(inner->bytes);
        *inner = (struct sl_onnx_bytes){0};
}

/* TensorProto: dims 1, data_type 2, name 8, raw_data 9. GraphProto: initializer 5. */
void sl_onnx_weight(struct sl_onnx_bytes *graph, const char *name, const uint32_t *dims, uint32_t rank, const float *values)
{
        struct sl_onnx_bytes tensor = {0};
        size_t n = 1;

        for (uint32_t i = 0; i < rank; i++) {
                sl_onnx_number(&tensor, 1, dims[i]);
                n *= dims[i];
        }
        sl_onnx_number(&tensor, 2, 1);
        sl_onnx_text(&tensor, 8, name);
        sl_onnx_block(&tensor, 9, values, n * sizeof(*values));
        sl_onnx_message(graph, 5, &tensor);
}

/* TensorShapeProto.Dimension: dim_value 1, dim_param 2. */
static void add_dimension(struct sl_onnx_bytes *shape, uint32_t size)
{
        struct sl_onnx_bytes dimension = {0};

        if (size)
                sl_onnx_number(&dimension, 1, size);
        else
                sl_onnx_text(&dimension, 2, "N");
        sl_onnx_message(shape, 1, &dimension);
}

/* ValueInfoProto: name 1, type 2; TypeProto: tensor_type 1; TypeProto.Tensor: elem_type 1, shape 2. */
void sl_onnx_port(struct sl_onnx_bytes *graph, uint32_t field, const char *name, const uint32_t *dims, uint32_t rank)
{
        struct sl_onnx_bytes shape = {0}, tensor = {0}, type = {0}, port = {0};

        add_dimension(&shape, 0);
        for (uint32_t i = 0; i < rank; i++)
                add_dimension(&shape, dims[i]);
        sl_onnx_number(&tensor, 1, 1);
        sl_onnx_message(&tensor, 2, &shape);
        sl_onnx_message(&type, 1, &tensor);
        sl_onnx_text(&port, 1, name);
        sl_onnx_message(&port, 2, &type);
        sl_onnx_message(graph, field, &port);
}

/* ModelProto: ir_version 1, producer_name 2, graph 7, opset_import 8 (version 2). GraphProto: name 2. */
static void wrap(struct sl_onnx_bytes *file, struct sl_onnx_bytes *graph, const char *graph_name)
{
        struct sl_onnx_bytes opset = {0};

        sl_onnx_text(graph, 2, graph_name);
        sl_onnx_text(&opset, 1, "");
        sl_onnx_number(&opset, 2, 13);
        sl_onnx_number(file, 1, 7);
        sl_onnx_text(file, 2, "starling bench");
        sl_onnx_message(file, 7, graph);
        sl_onnx_message(file, 8, &opset);
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

static int write_file(const struct sl_onnx_bytes *bytes, const char *path)
{
        FILE *file = bytes->failed ? NULL : fopen(path, "we");
        int r = 0;

        if (!file)
                return bytes->failed ? -ENOMEM : -errno;
        if (fwrite(bytes->bytes, 1, bytes->n, file) != bytes->n)
                r = -EIO;
        if (fclose(file) && r == 0)
                r = -errno;
        return r;
}

int sl_onnx_write(struct sl_onnx_bytes *graph, const char *graph_name, const char *repository, const char *name)
{
        struct sl_onnx_bytes bytes = {0};
        char path[512];

        wrap(&bytes, graph, graph_name);
        int r = make_folders(repository, name, path, sizeof(path));
        if (r == 0)
                r = write_file(&bytes, path);
        free(bytes.bytes);
        return r;
}
