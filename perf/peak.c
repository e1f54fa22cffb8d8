/* SPDX-License-Identifier: Apache-2.0 */
#include "peak.h"

#include "base/clock.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define SUMS  12
#define STEPS 20000
#define RUNS  15

__attribute__((target("avx512f"))) static void multiply_avx512(float *ret_sum)
{
        __m512 sums[SUMS], factor = _mm512_set1_ps(0.999f), all = _mm512_setzero_ps();

        for (int i = 0; i < SUMS; i++)
                sums[i] = _mm512_set1_ps((float)i);
        for (int step = 0; step < STEPS; step++)
#pragma GCC unroll 12
                for (int i = 0; i < SUMS; i++)
                        sums[i] = _mm512_fmadd_ps(sums[i], factor, factor);
        for (int i = 0; i < SUMS; i++)
                all = _mm512_add_ps(all, sums[i]);
        *ret_sum = _mm512_reduce_add_ps(all);
}

__attribute__((target("avx2,fma"))) static void multiply_avx2(float *ret_sum)
{
        __m256 sums[SUMS], factor = _mm256_set1_ps(0.999f), all = _mm256_setzero_ps();

        for (int i = 0; i < SUMS; i++)
                sums[i] = _mm256_set1_ps((float)i);
        for (int step = 0; step < STEPS; step++)
#pragma GCC unroll 12
                for (int i = 0; i < SUMS; i++)
                        sums[i] = _mm256_fmadd_ps(sums[i], factor, factor);
        for (int i = 0; i < SUMS; i++)
                all = _mm256_add_ps(all, sums[i]);
        *ret_sum = _mm_cvtss_f32(_mm256_castps256_ps128(all));
}

/* The sum goes where it is read, so that it is computed. */
double sl_peak_flops(void)
{
        bool wide = __builtin_cpu_supports("avx512f");
        uint64_t least = UINT64_MAX;
        volatile float all;
        float sum;

        for (int i = 0; i <= RUNS; i++) {
                uint64_t start = sl_clock_ns(), taken;

                (wide ? multiply_avx512 : multiply_avx2)(&sum);
                taken = sl_clock_ns() - start;
                all = sum;
                (void)all;
                least = taken < least ? taken : least;
        }
        return 2.0 * (wide ? 16 : 8) * SUMS * STEPS / ((double)least * 1e-9);
}
