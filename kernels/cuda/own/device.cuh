/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels share: elements of any type, and the index arithmetic of their arguments. */
#pragma once

#include "platform.cuh"

#include "arguments.h"
#include "base/dtype.h"

struct half_t {
        uint16_t bits;
};
struct bfloat_t {
        uint16_t bits;
};

/* Elements that one load or store of a thread moves: 16 bytes of them. */
template <typename T, int N> struct alignas(sizeof(T) * N) pack {
        T at[N];
};

__device__ inline float widen(float x)
{
        return x;
}

__device__ inline float widen(half_t x)
{
        return half_to_float(x.bits);
}

__device__ inline float widen(bfloat_t x)
{
        return bfloat_to_float(x.bits);
}

__device__ inline void narrow(float x, float *to)
{
        *to = x;
}

__device__ inline void narrow(float x, half_t *to)
{
        to->bits = float_to_half(x);
}

__device__ inline void narrow(float x, bfloat_t *to)
{
        to->bits = float_to_bfloat(x);
}

__device__ inline bool is_aligned(const void *p, uint32_t bytes)
{
        return !(reinterpret_cast<uintptr_t>(p) & (bytes - 1));
}

__device__ inline bool is_float(uint32_t dtype)
{
        return dtype == SL_DTYPE_F32 || dtype == SL_DTYPE_F16 || dtype == SL_DTYPE_BF16 || dtype == SL_DTYPE_F64;
}

__device__ inline bool is_unsigned(uint32_t dtype)
{
        return dtype == SL_DTYPE_U8 || dtype == SL_DTYPE_U16 || dtype == SL_DTYPE_U32 || dtype == SL_DTYPE_U64 ||
               dtype == SL_DTYPE_BOOL;
}

/* An integer, extended by its sign if it has one. */
__device__ inline int64_t load_integer(const void *data, uint32_t i, uint32_t dtype)
{
        switch (dtype) {
        case SL_DTYPE_U8:
                return static_cast<const uint8_t *>(data)[i];
        case SL_DTYPE_I8:
                return static_cast<const int8_t *>(data)[i];
        case SL_DTYPE_U16:
                return static_cast<const uint16_t *>(data)[i];
        case SL_DTYPE_I16:
                return static_cast<const int16_t *>(data)[i];
        case SL_DTYPE_U32:
                return static_cast<const uint32_t *>(data)[i];
        case SL_DTYPE_I32:
                return static_cast<const int32_t *>(data)[i];
        case SL_DTYPE_BOOL:
                return static_cast<const uint8_t *>(data)[i] != 0;
        default:
                return static_cast<const int64_t *>(data)[i];
        }
}

/* Keeps the low bits; a boolean is whether any is set. */
__device__ inline void store_integer(void *data, uint32_t i, uint32_t dtype, int64_t value)
{
        switch (dtype) {
        case SL_DTYPE_U8:
        case SL_DTYPE_I8:
                static_cast<uint8_t *>(data)[i] = (uint8_t)value;
                break;
        case SL_DTYPE_U16:
        case SL_DTYPE_I16:
                static_cast<uint16_t *>(data)[i] = (uint16_t)value;
                break;
        case SL_DTYPE_U32:
        case SL_DTYPE_I32:
                static_cast<uint32_t *>(data)[i] = (uint32_t)value;
                break;
        case SL_DTYPE_BOOL:
                static_cast<uint8_t *>(data)[i] = value != 0;
                break;
        default:
                static_cast<int64_t *>(data)[i] = value;
                break;
        }
}

/* One element of any width. */
__device__ inline uint64_t load_bits(const void *data, uint64_t i, uint32_t bytes)
{
        switch (bytes) {
        case 1:
                return static_cast<const uint8_t *>(data)[i];
        case 2:
                return static_cast<const uint16_t *>(data)[i];
        case 4:
                return static_cast<const uint32_t *>(data)[i];
        default:
                return static_cast<const uint64_t *>(data)[i];
        }
}

__device__ inline void store_bits(void *data, uint64_t i, uint32_t bytes, uint64_t bits)
{
        switch (bytes) {
        case 1:
                static_cast<uint8_t *>(data)[i] = (uint8_t)bits;
                break;
        case 2:
                static_cast<uint16_t *>(data)[i] = (uint16_t)bits;
                break;
        case 4:
                static_cast<uint32_t *>(data)[i] = (uint32_t)bits;
                break;
        default:
                static_cast<uint64_t *>(data)[i] = bits;
                break;
        }
}

/* A float of up to 32 bits. */
__device__ inline float load_float(const void *data, uint32_t i, uint32_t dtype)
{
        if (dtype == SL_DTYPE_F32)
                return static_cast<const float *>(data)[i];
        if (dtype == SL_DTYPE_F16)
                return widen(static_cast<const half_t *>(data)[i]);
        return widen(static_cast<const bfloat_t *>(data)[i]);
}

__device__ inline void store_float(void *data, uint32_t i, uint32_t dtype, float value)
{
        if (dtype == SL_DTYPE_F32)
                static_cast<float *>(data)[i] = value;
        else if (dtype == SL_DTYPE_F16)
                narrow(value, static_cast<half_t *>(data) + i);
        else
                narrow(value, static_cast<bfloat_t *>(data) + i);
}

/* The quotient; *n becomes the rest. */
__device__ inline uint32_t divide(uint32_t *n, const sl_own_divisor &by)
{
        uint32_t quotient = (__umulhi(*n, by.multiplier) + *n) >> by.shift;

        *n -= quotient * by.divisor;
        return quotient;
}

__device__ inline uint32_t thread_first()
{
        return blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ inline uint32_t thread_step()
{
        return gridDim.x * blockDim.x;
}
