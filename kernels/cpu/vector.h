/*
 * Functions of sixteen floats, for files that are compiled for AVX-512 only. Errors are below 4 units in the last place unless a
 * comment says otherwise; NaN stays NaN, what is too large becomes infinite, what is too small 0.
 */
#pragma once

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
        return n >= SL_VECTOR_FLOATS ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1u);
}

/* The second operand of min and max is what comes out when one is NaN. */
static inline __m512 sl_vector_clip(__m512 x, __m512 least, __m512 most)
{
        return _mm512_min_ps(most, _mm512_max_ps(least, x));
}

/* 2^n * exp(r), where |r| <= ln 2 / 2: the series of exp to the seventh power. */
static inline __m512 sl_vector_exp(__m512 x)
{
        __m512 bounded = sl_vector_clip(x, sl_vector_set(-110.0f), sl_vector_set(100.0f));
        __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(bounded, sl_vector_set(1.44269504f)), _MM_FROUND_TO_NEAREST_INT);
        __m512 r = _mm512_fnmadd_ps(n, sl_vector_set(0x1.62e400p-1f), bounded);
        __m512 p = sl_vector_set(1.0f / 5040);

        r = _mm512_fnmadd_ps(n, sl_vector_set(0x1.7f7d1cp-20f), r);
        p = _mm512_fmadd_ps(p, r, sl_vector_set(1.0f / 720));
        p = _mm512_fmadd_ps(p, r, sl_vector_set(1.0f / 120));
        p = _mm512_fmadd_ps(p, r, sl_vector_set(1.0f / 24));
        p = _mm512_fmadd_ps(p, r, sl_vector_set(1.0f / 6));
        p = _mm512_fmadd_ps(p, r, sl_vector_set(0.5f));
        p = _mm512_fmadd_ps(p, r, sl_vector_set(1.0f));
        p = _mm512_fmadd_ps(p, r, sl_vector_set(1.0f));
        return _mm512_scalef_ps(p, n);
}

/* For finite x; a step of Newton's over the table: faster than a division. */
static inline __m512 sl_vector_reciprocal(__m512 x)
{
        __m512 y = _mm512_rcp14_ps(x);

        return _mm512_fmadd_ps(y, _mm512_fnmadd_ps(x, y, sl_vector_set(1.0f)), y);
}

/* 0 below -87. */
static inline __m512 sl_vector_sigmoid(__m512 x)
{
        __m512 bounded = sl_vector_clip(x, sl_vector_set(-87.0f), sl_vector_set(87.0f));
        __m512 e = sl_vector_exp(_mm512_sub_ps(_mm512_setzero_ps(), bounded));

        return sl_vector_reciprocal(_mm512_add_ps(e, sl_vector_set(1.0f)));
}

/* Odd series around 0, where the other form would cancel; 1 - 2 / (exp(2x) + 1) elsewhere. */
static inline __m512 sl_vector_tanh(__m512 x)
{
        __m512 square = _mm512_mul_ps(x, x), series = sl_vector_set(-1382.0f / 155925);
        __mmask16 small = _mm512_cmp_ps_mask(square, sl_vector_set(0.09f), _CMP_LT_OQ);
        __m512 twice = sl_vector_clip(_mm512_add_ps(x, x), sl_vector_set(-40.0f), sl_vector_set(40.0f));
        __m512 e = sl_vector_exp(twice);
        __m512 far = _mm512_fnmadd_ps(
                sl_vector_set(2.0f), sl_vector_reciprocal(_mm512_add_ps(e, sl_vector_set(1.0f))), sl_vector_set(1.0f));

        series = _mm512_fmadd_ps(series, square, sl_vector_set(62.0f / 2835));
        series = _mm512_fmadd_ps(series, square, sl_vector_set(-17.0f / 315));
        series = _mm512_fmadd_ps(series, square, sl_vector_set(2.0f / 15));
        series = _mm512_fmadd_ps(series, square, sl_vector_set(-1.0f / 3));
        series = _mm512_fmadd_ps(_mm512_mul_ps(series, square), x, x);
        return _mm512_mask_blend_ps(small, far, series);
}
