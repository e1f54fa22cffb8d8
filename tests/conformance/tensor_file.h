/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor of a case as it lies on disk: a TensorProto, decoded. Any thread; the data are the owner's.
 */
#pragma once

#include "onnx/onnx.pb-c.h"
#include "tensor.h"

#include <stdbool.h>
#include <stddef.h>

struct tensor_file {
        struct sl_tensor tensor;
        void *data; /* 64-byte aligned */
        uint64_t bytes;
};

/* The whole file, one byte longer than it is; NULL when there is none. The caller frees it. */
uint8_t *read_whole_file(const char *path, size_t *ret_bytes);

/* False when there is no such file, or it holds no dense tensor of a type that Starling has. */
bool tensor_file_read(const char *path, struct tensor_file *ret_file);

/* numpy had no bfloat16, so some files hold its bits as uint16: such a one becomes what the model says, @dtype. */
void tensor_file_retype(struct tensor_file *file, uint32_t dtype);
void tensor_file_free(struct tensor_file *file);

/*
 * Do @got and @want, both of @tensor's type and shape, agree? Integers and truth values to the bit, floats within @tolerance,
 * absolute and relative. The text says which element is the first that does not.
 */
bool tensor_agrees(
        const struct sl_tensor *tensor, const void *got, const void *want, double tolerance, char *text, size_t text_bytes);

/* What rounding allows the type to differ from ONNX's own values, which were computed in it step by step. */
double tensor_tolerance(uint32_t dtype);
