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
