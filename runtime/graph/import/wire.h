/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look at protobuf bytes before the parser may have them: nesting, counts, and fields that only a hostile file gives twice.
 * And the parser itself, on a budget of memory, which never sees the data of tensors: they stay in the file. Pure but for memory;
 * any thread.
 */
#pragma once

#include "onnx/onnx.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_error;

#define SL_WIRE_DEPTH_MAX 32

struct sl_wire_limits {
        uint64_t nodes;    /* NodeProto in the whole file */
        uint64_t messages; /* of any type */
};

/*
 * Walks the bytes along the descriptor, without recursion and without memory. The parser recurses once for each level and merges
 * singular messages that come twice, so both are refused here.
 * Return: 0; -EBADMSG truncated, malformed or nested deeper than SL_WIRE_DEPTH_MAX; -E2BIG a limit is exceeded.
 */
int sl_wire_check(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n_bytes, const struct sl_wire_limits *limits,
        struct sl_error *error);

/*
 * Parses a model. Memory comes from malloc(), so a buffer can be taken out of the message, but no more of it than a multiple of the
 * file's size. Return: 0; -EBADMSG; -E2BIG over the budget; -ENOMEM. Free with sl_wire_free_model().
 */
int sl_wire_parse_model(const void *bytes, size_t n_bytes, Onnx__ModelProto **ret_model, struct sl_error *error);
void sl_wire_free_model(Onnx__ModelProto *model);

/*
 * Checks the bytes of a model as above and parses them without the data of tensors (raw_data): what the message has there is for
 * sl_wire_data_of() alone. Return: as above.
 */
int sl_wire_read_model(const void *bytes, size_t n_bytes, const struct sl_wire_limits *limits, Onnx__ModelProto **ret_model,
        struct sl_error *error);

/* The data of a tensor, at any address. */
struct sl_wire_data {
        const uint8_t *bytes;
        uint64_t n_bytes;
        bool in_file; /* or in the message, which has them as long as it lives: fewer than 16 bytes */
};

/* Of a message that sl_wire_read_model() made of these bytes. None of a file that changed meanwhile. */
struct sl_wire_data sl_wire_data_of(const Onnx__TensorProto *tensor, const void *file_bytes, size_t n_file_bytes);
