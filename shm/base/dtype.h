/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element types of tensors. The numbers are those of ONNX's TensorProto.DataType, and are part of the wire. An element of 4 or 2 bits
 * takes a byte of its own, whose low bits count.
 * Pure; any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SL_DTYPES(X)                                                                                                               \
        /* id      number  name        bytes */                                                                                    \
        X(F32, 1, "float32", 4)                                                                                                    \
        X(U8, 2, "uint8", 1)                                                                                                       \
        X(I8, 3, "int8", 1)                                                                                                        \
        X(U16, 4, "uint16", 2)                                                                                                     \
        X(I16, 5, "int16", 2)                                                                                                      \
        X(I32, 6, "int32", 4)                                                                                                      \
        X(I64, 7, "int64", 8)                                                                                                      \
        X(BOOL, 9, "bool", 1)                                                                                                      \
        X(F16, 10, "float16", 2)                                                                                                   \
        X(F64, 11, "float64", 8)                                                                                                   \
        X(U32, 12, "uint32", 4)                                                                                                    \
        X(U64, 13, "uint64", 8)                                                                                                    \
        X(BF16, 16, "bfloat16", 2)                                                                                                 \
        X(F8E4M3FN, 17, "float8e4m3fn", 1)                                                                                         \
        X(F8E4M3FNUZ, 18, "float8e4m3fnuz", 1)                                                                                     \
        X(F8E5M2, 19, "float8e5m2", 1)                                                                                             \
        X(F8E5M2FNUZ, 20, "float8e5m2fnuz", 1)                                                                                     \
        X(U4, 21, "uint4", 1)                                                                                                      \
        X(I4, 22, "int4", 1)                                                                                                       \
        X(F4E2M1, 23, "float4e2m1", 1)                                                                                             \
        X(F8E8M0, 24, "float8e8m0", 1)                                                                                             \
        X(U2, 25, "uint2", 1)                                                                                                      \
        X(I2, 26, "int2", 1)

enum sl_dtype {
        SL_DTYPE_NONE = 0,
#define X(id, number, name, bytes) SL_DTYPE_##id = number,
        SL_DTYPES(X)
#undef X
                SL_DTYPE_LIMIT = 27,
};

/* Bytes of one element; 0 for a number that is no type. */
size_t sl_dtype_bytes(uint32_t dtype);

/* Bits of one element that count; 0 for a number that is no type. */
uint32_t sl_dtype_bits(uint32_t dtype);

/* True for the types from float8e4m3fn on, of 8 bits and fewer: what is stored and converted, and computes nowhere but in `ref`. */
int sl_dtype_is_small(uint32_t dtype);

/* "float32"; "unknown" for a number that is no type. Never NULL. */
const char *sl_dtype_name(uint32_t dtype);

/* True for the floating types, whose bits may be anything. The others are copied before an operator that indexes by them. */
int sl_dtype_is_float(uint32_t dtype);
