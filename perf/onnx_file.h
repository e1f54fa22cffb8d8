/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ONNX file written without a library. It is a protobuf message, and a message is fields one after another: a tag (number << 3 |
 * kind) and a value; kind 0 is a varint, kind 2 is a length and so many bytes, which may be a message again. Inner messages are
 * built first, in bytes of their own. The field numbers are those of onnx.proto. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A message that is being built; all zero at first. Once memory has run out it only remembers that. */
struct sl_onnx_bytes {
        unsigned char *bytes;
        size_t n, room;
        int failed;
};

void sl_onnx_number(struct sl_onnx_bytes *to, uint32_t field, uint64_t value);
void sl_onnx_block(struct sl_onnx_bytes *to, uint32_t field, const void *bytes, size_t n);
void sl_onnx_text(struct sl_onnx_bytes *to, uint32_t field, const char *text);

/* Adds the inner message and frees it. */
void sl_onnx_message(struct sl_onnx_bytes *to, uint32_t field, struct sl_onnx_bytes *inner);

/* Adds a float32 tensor of @rank @dims to the graph's initializers. */
void sl_onnx_weight(struct sl_onnx_bytes *graph, const char *name, const uint32_t *dims, uint32_t rank, const float *values);

/* Adds a float32 input (@field 11) or output (12) [N, dims...] to the graph. */
void sl_onnx_port(struct sl_onnx_bytes *graph, uint32_t field, const char *name, const uint32_t *dims, uint32_t rank);

/* Writes @repository/NAME/1/model.onnx of opset 13 with this graph, which is freed. Return: 0, -errno. */
int sl_onnx_write(struct sl_onnx_bytes *graph, const char *graph_name, const char *repository, const char *name);
