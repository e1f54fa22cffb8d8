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
