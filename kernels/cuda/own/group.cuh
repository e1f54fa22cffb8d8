/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share a line: one, a warp, or a block of 256. All threads of a group come here together. */
#pragma once

#include "device.cuh"

#define WARPS_MAX 8

struct add_up {
        template <typename T> __device__ T operator()(T x, T y) const
        {
                return x + y;
        }
};

struct multiply {
        template <typename T> __device__ T operator()(T x, T y) const
        {
                return x * y;
        }
};

/* Of a NaN and a number the number. */
struct larger {
        __device__ float operator()(float x, float y) const
        {
                return fmaxf(x, y);
        }
};

/* The values of all threads of the group, combined; each thread gets the result, in the same order. */
template <int G, typename T, typename F> __device__ T combine(T x, F with)
{
        if constexpr (G > 1)
                for (int mask = warpSize / 2; mask; mask /= 2)
                        x = with(x, __shfl_xor_sync(0xffffffffu, x, mask));
        if constexpr (G > 32) {
                __shared__ T held[WARPS_MAX];

                __syncthreads();
                if (threadIdx.x % 32 == 0)
                        held[threadIdx.x / 32] = x;
                __syncthreads();
                x = held[0];
                for (int i = 1; i < G / 32; i++)
                        x = with(x, held[i]);
        }
        return x;
}

/* The line that this thread's group begins with, how many groups there are, and its place in the group. */
template <int G> __device__ uint32_t group_first()
{
        return thread_first() / G;
}

template <int G> __device__ uint32_t group_step()
{
        return thread_step() / G;
}

template <int G> __device__ uint32_t group_lane()
{
        return threadIdx.x % G;
}
