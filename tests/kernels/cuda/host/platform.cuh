/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the place of gpu/platform.cuh: CUDA sources as C++ for the host. The threads of a block are fibers (block.h), so that barriers
 * and shuffles mean what they do on a GPU; one thread runs at a time, so that atomic operations are plain ones.
 */
#pragma once

#include "block.h"
#include "cpu/base/bfloat16.h"
#include "cpu/base/float16.h"

#include <cmath>
#include <cstdint>
#include <cstring>

using std::isinf;
using std::isnan;

#define __device__
#define __shared__    static
#define __noinline__  __attribute__((noinline))
#define __syncthreads host_block_barrier
#define __syncwarp    host_warp_barrier

#define SL_KERNEL(name, type)                                                                                                      \
        static void host_body_##name(const type &a);                                                                               \
        extern "C" void host_thread_##name(const void *argument);                                                                  \
        extern "C" void host_thread_##name(const void *argument)                                                                   \
        {                                                                                                                          \
                host_body_##name(*static_cast<const type *>(argument));                                                            \
        }                                                                                                                          \
        static void host_body_##name(const type &a)

#define SL_DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(host_shared)

static const int warpSize = 32;

static inline uint32_t multiprocessor_id()
{
        return blockIdx.x % 132;
}

static inline void stay_for(int64_t)
{
}

static inline uint32_t __umulhi(uint32_t a, uint32_t b)
{
        return (uint32_t)((uint64_t)a * b >> 32);
}

template <typename T> static inline T __shfl_xor_sync(unsigned, T value, int mask)
{
        uint64_t bits = 0;
        T other;

        memcpy(&bits, &value, sizeof(value));
        bits = host_shuffle(bits, (threadIdx.x % 32) ^ (uint32_t)mask);
        memcpy(&other, &bits, sizeof(other));
        return other;
}

template <typename T> static inline T __shfl_sync(unsigned, T value, int lane)
{
        uint64_t bits = 0;
        T other;

        memcpy(&bits, &value, sizeof(value));
        bits = host_shuffle(bits, (uint32_t)lane);
        memcpy(&other, &bits, sizeof(other));
        return other;
}

static inline uint32_t atomicExch(uint32_t *at, uint32_t value)
{
        uint32_t before = *at;

        *at = value;
        return before;
}

template <typename T> static inline T atomicAdd(T *at, T value)
{
        T before = *at;

        *at = (T)(before + value);
        return before;
}

static inline float half_to_float(uint16_t bits)
{
        return sl_widen_f16(bits);
}

static inline uint16_t float_to_half(float value)
{
        return sl_narrow_f16(value);
}

static inline float bfloat_to_float(uint16_t bits)
{
        return sl_widen_bf16(bits);
}

static inline uint16_t float_to_bfloat(float value)
{
        return sl_narrow_bf16(value);
}
