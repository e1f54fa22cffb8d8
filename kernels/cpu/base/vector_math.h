/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transcendental functions of float32, without branches, so that a loop over them becomes vector code. Each exists three times from
 * one text (vector_functions.h): sl_exp() and its kin on one float, for loops that the compiler vectorises (SL_CPU_CLONES), and
 * sl_exp_16() and sl_exp_8() and their kin on vectors of AVX-512 and AVX2. All give the same bits: every product that is added to
 * is a fused one, on any processor. Pure; any thread.
 *
 *     largest error, measured over all floats in range by tests/kernels/cpu/vector_math.c
 *     exp                  2 ulp from -87 to 88.7, exactly 0 below -104, infinite above 88.73
 *     erf, tanh            4e-7 of 1, and 1e-6 of the value
 *     sigmoid              2e-7 of 1, and 5e-7 of the value
 *     gelu, swish          4e-7 of the larger of 1 and |x|
 *     log                  of one float alone: 2e-7 of the larger of 1 and the value
 *     exp less one         of one float alone: 3e-7 of the larger of 1 and the value
 *
 * A NaN stays a NaN.
 */
#pragma once

#include "node.h"

#include <stdint.h>
#include <string.h>

static inline float sl_float_min(float a, float b)
{
        return a < b ? a : b;
}

static inline float sl_float_max(float a, float b)
{
        return a > b ? a : b;
}

/* x * 2^(n of the low bits of magic): in two steps, so that the result may be subnormal or infinite. */
static inline float sl_float_scale(float x, float magic)
{
        int32_t bits, half;
        uint32_t upper, lower;
        float first, second;

        memcpy(&bits, &magic, sizeof(bits));
        bits -= 0x4b400000;
        half = bits >> 1;
        /* Of a NaN these are any bits at all, and the product a NaN. */
        upper = (uint32_t)(bits - half + 127) << 23;
        lower = (uint32_t)(half + 127) << 23;
        memcpy(&first, &lower, sizeof(first));
        memcpy(&second, &upper, sizeof(second));
        return x * first * second;
}

/*
 * The natural logarithm of one float, of subnormals too: x is 2^n * (1 + f) with 1 + f around 1, whose logarithm is the series of
 * 2 * artanh(f / (2 + f)).
 */
static inline float sl_log(float x)
{
        float lifted = x < 0x1p-126f ? x * 0x1p23f : x, f, s, z, p, n;
        uint32_t bits, above;

        memcpy(&bits, &lifted, sizeof(bits));
        above = (bits - 0x3f3504f3u) & 0xff800000u; /* from the root of 1/2 on */
        n = (float)((int32_t)above >> 23) - (x < 0x1p-126f ? 23.0f : 0.0f);
        bits -= above;
        memcpy(&f, &bits, sizeof(f));
        f -= 1.0f;
        s = f / (2.0f + f);
        z = s * s;
        p = __builtin_fmaf(z, 0x1.c71c72p-4f, 0x1.24924ap-3f); /* 1/9, 1/7 */
        p = __builtin_fmaf(p, z, 0.2f);
        p = __builtin_fmaf(p, z, 0x1.555556p-2f);
        /* ln 2 in two parts, of which the first times n is exact. */
        p = __builtin_fmaf(n, 0x1.62e4p-1f, 2.0f * s) + __builtin_fmaf(n, 0x1.7f7d1cp-20f, 2.0f * s * z * p);
        p = x > 0.0f ? p : x < 0.0f ? __builtin_nanf("") : -__builtin_inff();
        return x <= 0x1.fffffep127f ? p : x; /* infinity, and NaN, of which no comparison holds */
}

#define V            float
#define V_NAME(name) sl_##name
#define V_SET(c)     (c)
#define V_FMA        __builtin_fmaf
#define V_MIN        sl_float_min
#define V_MAX        sl_float_max
#define V_SCALE      sl_float_scale
#define V_TARGET
#include "cpu/base/vector_functions.h"

/* e^x - 1 of one float. Numbers so small that 1 swallows them are it themselves; so is -0. */
static inline float sl_exp_less_one(float x)
{
        return __builtin_fabsf(x) < 0x1p-24f ? x : sl_exp(x) - 1.0f;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define SL_AVX512 __attribute__((target("avx512f")))

SL_AVX512 static inline __m512 sl_scale_16(__m512 x, __m512 magic)
{
        return _mm512_scalef_ps(x, _mm512_sub_ps(magic, _mm512_set1_ps(0x1.8p23f)));
}

#define V            __m512
#define V_NAME(name) sl_##name##_16
#define V_SET        _mm512_set1_ps
#define V_FMA        _mm512_fmadd_ps
#define V_MIN        _mm512_min_ps
#define V_MAX        _mm512_max_ps
#define V_SCALE      sl_scale_16
#define V_TARGET     SL_AVX512
#include "cpu/base/vector_functions.h"

#define SL_AVX2 __attribute__((target("avx2,fma")))

/* As sl_float_scale(). */
SL_AVX2 static inline __m256 sl_scale_8(__m256 x, __m256 magic)
{
        __m256i bits = _mm256_sub_epi32(_mm256_castps_si256(magic), _mm256_set1_epi32(0x4b400000)),
                half = _mm256_srai_epi32(bits, 1);
        __m256i bias = _mm256_set1_epi32(127), upper = _mm256_add_epi32(_mm256_sub_epi32(bits, half), bias);
        __m256 first = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));

        return x * first * _mm256_castsi256_ps(_mm256_slli_epi32(upper, 23));
}

#define V            __m256
#define V_NAME(name) sl_##name##_8
#define V_SET        _mm256_set1_ps
#define V_FMA        _mm256_fmadd_ps
#define V_MIN        _mm256_min_ps
#define V_MAX        _mm256_max_ps
#define V_SCALE      sl_scale_8
#define V_TARGET     SL_AVX2
#include "cpu/base/vector_functions.h"
#endif
