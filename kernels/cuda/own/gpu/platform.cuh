/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernels take from the compiler for GPUs. The tests have a header of the same name, with which the same sources run on the
 * host.
 */
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <stdint.h>

/* A kernel, as the list of kernels.h names it. */
#define SL_KERNEL(name, type) extern "C" __global__ void __launch_bounds__(256) sl_##name(const __grid_constant__ type a)

/* The shared memory that the launch asks for. */
#define SL_DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]

/* Of the multiprocessor that runs this block. */
__device__ inline uint32_t multiprocessor_id()
{
        uint32_t id;

        asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
        return id;
}

/* Keeps the multiprocessor busy for so many cycles. */
__device__ inline void stay_for(int64_t cycles)
{
        int64_t begin = clock64();

        while (clock64() - begin < cycles)
                ;
}

__device__ inline float half_to_float(uint16_t bits)
{
        return __half2float(__ushort_as_half(bits));
}

__device__ inline uint16_t float_to_half(float value)
{
        return __half_as_ushort(__float2half_rn(value));
}

__device__ inline float bfloat_to_float(uint16_t bits)
{
        return __uint_as_float((uint32_t)bits << 16);
}

__device__ inline uint16_t float_to_bfloat(float value)
{
        return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

/*
 * Products of a warp's tensor core: sums [16, 8] += left [16, 16] * right [16, 8]. Thread t has rows t / 4 and t / 4 + 8 of sums
 * and left, and column t / 4 of right; of sums columns t % 4 * 2 and the next one, of the factors those two elements and the two
 * that are 8 behind them, with the rows in turn (PTX: mma.m16n8k16).
 */
__device__ inline void multiply_tile_f16(float *sums, const uint32_t *left, const uint32_t *right)
{
        asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

__device__ inline void multiply_tile_bf16(float *sums, const uint32_t *left, const uint32_t *right)
{
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
                     "%2, %3};"
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                     : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

/*
 * Four tiles of 8 rows of 8 halves in shared memory, turned: thread t says where row t % 8 of tile t / 8 lies, and gets of each
 * tile column t / 4 of rows t % 4 * 2 and the next one (PTX: ldmatrix.x4.trans).
 */
__device__ inline void turn_tiles(uint32_t *tiles, const void *row)
{
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
                     : "r"((uint32_t)__cvta_generic_to_shared(row))
                     : "memory");
}
