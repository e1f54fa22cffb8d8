/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of sixteen floats, for files that are compiled for AVX-512 only. Functions of them are in vector_math.h.
 */
#pragma once

#include "cpu/vector_math.h"

#include <immintrin.h>
#include <stdint.h>

#define SL_VECTOR_FLOATS 16

static inline __m512 sl_vector_set(float x)
{
        return _mm512_set1_ps(x);
}

/* The first @n of sixteen lanes; all of them from 16 on. */
static inline __mmask16 sl_vector_mask(int64_t n)
{
        return (__mmask16)(n >= SL_VECTOR_FLOATS ? 0xffffu : (1u << n) - 1u);
}

/* The second operand of min and max is what comes out when one is NaN. */
static inline __m512 sl_vector_clip(__m512 x, __m512 least, __m512 most)
{
        return _mm512_min_ps(most, _mm512_max_ps(least, x));
}

/* 1 / x for finite x that are not subnormal: a step of Newton's over the processor's guess, within 2 ulp; a division takes twice as
 * long. */
static inline __m512 sl_vector_reciprocal(__m512 x)
{
        __m512 guess = _mm512_rcp14_ps(x);

        return _mm512_fmadd_ps(guess, _mm512_fnmadd_ps(x, guess, _mm512_set1_ps(1.0f)), guess);
}

/* 2^y, within 2 ulp: a polynomial for what y lies above an integer. Nothing for large numbers, so -infinity gives 0. */
static inline __m512 sl_vector_power(__m512 y)
{
        __m512 r = _mm512_reduce_ps(y, _MM_FROUND_TO_NEG_INF), p = sl_vector_set(0x1.e974fap-10f);

        p = _mm512_fmadd_ps(p, r, sl_vector_set(0x1.277856p-7f));
        p = _mm512_fmadd_ps(p, r, sl_vector_set(0x1.c91ce6p-5f));
        p = _mm512_fmadd_ps(p, r, sl_vector_set(0x1.ebdb56p-3f));
        p = _mm512_fmadd_ps(p, r, sl_vector_set(0x1.62e4bap-1f));
        p = _mm512_fmadd_ps(p, r, sl_vector_set(1.0f));
        return _mm512_scalef_ps(p, y);
}

/* 1 / (1 + 2^y), within 3e-7 of the value; above 126 it is that at 126, about 1e-38. With y = -x / ln 2 it is the sigmoid of x. */
static inline __m512 sl_vector_logistic(__m512 y)
{
        __m512 power = sl_vector_power(_mm512_min_ps(sl_vector_set(126.0f), y));

        return sl_vector_reciprocal(_mm512_add_ps(sl_vector_set(1.0f), power));
}

/* As sl_tanh_16(), with a reciprocal instead of a quotient: the same error, in half the time. */
static inline __m512 sl_vector_tanh(__m512 x)
{
        __m512 t = sl_vector_clip(x, sl_vector_set(-9.02f), sl_vector_set(9.02f)), u = _mm512_mul_ps(t, t);
        __m512 p = sl_vector_set(-0x1.ad603ap-37f), q = sl_vector_set(0x1.59938ap-20f);

        p = _mm512_fmadd_ps(p, u, sl_vector_set(0x1.06b996p-25f));
        q = _mm512_fmadd_ps(q, u, sl_vector_set(0x1.9cff04p-12f));
        p = _mm512_fmadd_ps(p, u, sl_vector_set(0x1.d5e376p-16f));
        q = _mm512_fmadd_ps(q, u, sl_vector_set(0x1.be6564p-6f));
        p = _mm512_fmadd_ps(p, u, sl_vector_set(0x1.fb07acp-9f));
        q = _mm512_fmadd_ps(q, u, sl_vector_set(0x1.e16a6ap-2f));
        p = _mm512_fmadd_ps(p, u, sl_vector_set(0x1.182a2cp-3f));
        q = _mm512_fmadd_ps(q, u, sl_vector_set(1.0f));
        p = _mm512_fmadd_ps(p, u, sl_vector_set(1.0f));
        return sl_vector_clip(
                _mm512_mul_ps(_mm512_mul_ps(t, p), sl_vector_reciprocal(q)), sl_vector_set(-1.0f), sl_vector_set(1.0f));
}
