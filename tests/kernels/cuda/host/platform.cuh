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

/* Two elements of each of two registers, as the tiles of a tensor core have them. */
struct host_factor {
        float at[4];
};

template <typename F> static inline host_factor host_widen(uint64_t bits, F widen)
{
        host_factor factor;

        for (int i = 0; i < 4; i++)
                factor.at[i] = widen((uint16_t)(bits >> 16 * i));
        return factor;
}

static inline uint64_t host_pair(const uint32_t *registers, int low, int high)
{
        return (uint64_t)registers[high] << 32 | registers[low];
}

/* A thread's rows of the left factor lie with the four threads beside it, its columns of the right one with eight others. */
template <typename F> static inline void host_multiply_tile(float *sums, const uint32_t *left, const uint32_t *right, F widen)
{
        uint32_t lane = threadIdx.x % 32, row = lane / 4, column = lane % 4 * 2;

        for (uint32_t k = 0; k < 4; k++) {
                host_factor above = host_widen(host_shuffle(host_pair(left, 0, 2), row * 4 + k), widen);
                host_factor below = host_widen(host_shuffle(host_pair(left, 1, 3), row * 4 + k), widen);

                for (uint32_t i = 0; i < 2; i++) {
                        host_factor turned = host_widen(host_shuffle(host_pair(right, 0, 1), (column + i) * 4 + k), widen);

                        for (int e = 0; e < 4; e++) {
                                sums[i] += above.at[e] * turned.at[e];
                                sums[2 + i] += below.at[e] * turned.at[e];
                        }
                }
        }
}

static inline void multiply_tile_f16(float *sums, const uint32_t *left, const uint32_t *right)
{
        host_multiply_tile(sums, left, right, half_to_float);
}

static inline void multiply_tile_bf16(float *sums, const uint32_t *left, const uint32_t *right)
{
        host_multiply_tile(sums, left, right, bfloat_to_float);
}

static inline void turn_tiles(uint32_t *tiles, const void *row)
{
        uint32_t lane = threadIdx.x % 32;

        for (uint32_t tile = 0; tile < 4; tile++) {
                uint16_t elements[2];

                for (uint32_t i = 0; i < 2; i++) {
                        uint64_t at = host_shuffle(reinterpret_cast<uintptr_t>(row), tile * 8 + lane % 4 * 2 + i);

                        elements[i] = reinterpret_cast<const uint16_t *>((uintptr_t)at)[lane / 4];
                }
                tiles[tile] = (uint32_t)elements[1] << 16 | elements[0];
        }
}
