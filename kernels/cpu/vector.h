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
