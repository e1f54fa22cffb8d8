/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of floats, for files that are compiled once for AVX-512 and once for AVX2 (isa.h): sixteen lanes, or eight. What is done
 * lane by lane gives the same bits with both. Functions of one float are in vector_math.h.
 */
#pragma once

#include "cpu/base/vector_math.h"

#include <immintrin.h>
#include <stdint.h>

#define SL_VECTOR_INLINE static inline __attribute__((always_inline))

#ifdef __AVX512F__

#define SL_VECTOR_FLOATS 16

typedef __m512 sl_vector;
typedef __mmask16 sl_lanes; /* some of them */

#define sl_vector_set(x)        _mm512_set1_ps(x)
#define sl_vector_zero()        _mm512_setzero_ps()
#define sl_vector_load(p)       _mm512_loadu_ps(p)
#define sl_vector_store(p, x)   _mm512_storeu_ps(p, x)
#define sl_vector_add(a, b)     _mm512_add_ps(a, b)
#define sl_vector_sub(a, b)     _mm512_sub_ps(a, b)
#define sl_vector_mul(a, b)     _mm512_mul_ps(a, b)
#define sl_vector_div(a, b)     _mm512_div_ps(a, b)
#define sl_vector_min(a, b)     _mm512_min_ps(a, b) /* of min and max the second operand comes out when one is NaN */
#define sl_vector_max(a, b)     _mm512_max_ps(a, b)
#define sl_vector_fma(a, b, c)  _mm512_fmadd_ps(a, b, c)
#define sl_vector_fnma(a, b, c) _mm512_fnmadd_ps(a, b, c) /* c - a * b */
#define sl_vector_abs(x)        _mm512_abs_ps(x)
#define sl_vector_sum(x)        _mm512_reduce_add_ps(x)

/* Lanes that are not there are 0, and are not read or written. */
#define sl_vector_load_lanes(lanes, p)     _mm512_maskz_loadu_ps(lanes, p)
#define sl_vector_store_lanes(p, lanes, x) _mm512_mask_storeu_ps(p, lanes, x)

#define sl_vector_where(lanes, a, b) _mm512_mask_mov_ps(b, lanes, a) /* a in @lanes, b elsewhere */
#define sl_vector_less(a, b)         _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)
#define sl_vector_equal(a, b)        _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ)

#define sl_lanes_all() ((__mmask16)0xffff)

/* The first @n; all of them where there are fewer; n is not negative. */
SL_VECTOR_INLINE sl_lanes sl_lanes_first(int64_t n)
{
        return (__mmask16)(n >= SL_VECTOR_FLOATS ? 0xffffu : (1u << n) - 1u);
}

/* Where each lane takes its value from. */
typedef __m512i sl_order;

#define sl_vector_order(x, order) _mm512_permutexvar_ps(order, x)
#define sl_order_next(order)      _mm512_add_epi32(order, _mm512_set1_epi32(1))

/* All from the first lane of their group; @size is a power of two. */
SL_VECTOR_INLINE sl_order sl_order_groups(int size)
{
        return _mm512_andnot_si512(
                _mm512_set1_epi32(size - 1), _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

/* The first @n over and over; a power of two. */
SL_VECTOR_INLINE sl_order sl_order_repeat(int n)
{
        return _mm512_and_si512(_mm512_set1_epi32(n - 1), _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

/* Each of the first lanes for @n lanes; a power of two. */
SL_VECTOR_INLINE sl_order sl_order_spread(int n)
{
        return _mm512_srlv_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                _mm512_set1_epi32(__builtin_ctz((unsigned)n)));
}

/* What lies above the integer below. 0 for an infinity. */
#define sl_vector_fraction(x) _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)

/* x * 2^(the integer below y) */
#define sl_vector_scale(x, y) _mm512_scalef_ps(x, y)

/* 1 / x for finite x that are not subnormal: a step of Newton's over the processor's guess, within 2 ulp; a division takes twice as
 * long. */
SL_VECTOR_INLINE sl_vector sl_vector_reciprocal(sl_vector x)
{
        sl_vector guess = _mm512_rcp14_ps(x);

        return sl_vector_fma(guess, sl_vector_fnma(x, guess, sl_vector_set(1.0f)), guess);
}

/* Of sixteen halves, at any address. */
#define sl_vector_load_f16(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define sl_vector_load_bf16(p)                                                                                                     \
        _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(p))), 16))

#define sl_vector_exp(x)        sl_exp_16(x)
#define sl_vector_hard_swish(x) sl_hard_swish_16(x)

#else

#define SL_VECTOR_FLOATS 8

typedef __m256 sl_vector;
typedef __m256i sl_lanes; /* the highest bit of each */

#define sl_vector_set(x)        _mm256_set1_ps(x)
#define sl_vector_zero()        _mm256_setzero_ps()
#define sl_vector_load(p)       _mm256_loadu_ps(p)
#define sl_vector_store(p, x)   _mm256_storeu_ps(p, x)
#define sl_vector_add(a, b)     _mm256_add_ps(a, b)
#define sl_vector_sub(a, b)     _mm256_sub_ps(a, b)
#define sl_vector_mul(a, b)     _mm256_mul_ps(a, b)
#define sl_vector_div(a, b)     _mm256_div_ps(a, b)
#define sl_vector_min(a, b)     _mm256_min_ps(a, b)
#define sl_vector_max(a, b)     _mm256_max_ps(a, b)
#define sl_vector_fma(a, b, c)  _mm256_fmadd_ps(a, b, c)
#define sl_vector_fnma(a, b, c) _mm256_fnmadd_ps(a, b, c)
#define sl_vector_abs(x)        _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x)

SL_VECTOR_INLINE float sl_vector_sum(sl_vector x)
{
        __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1)),
               two = _mm_add_ps(four, _mm_movehl_ps(four, four));

        return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* All of them, as the compiler knows. */
SL_VECTOR_INLINE bool sl_lanes_are_whole(sl_lanes lanes)
{
        const long long all = lanes[0] & lanes[1] & lanes[2] & lanes[3];

        return __builtin_constant_p(all) && all == -1;
}

SL_VECTOR_INLINE sl_vector sl_vector_load_lanes(sl_lanes lanes, const float *p)
{
        return sl_lanes_are_whole(lanes) ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, lanes);
}

/* Some processors take as long for a masked store as for a dozen of whole vectors (AMD, family 25). */
SL_VECTOR_INLINE void sl_vector_store_lanes(float *p, sl_lanes lanes, sl_vector x)
{
        if (sl_lanes_are_whole(lanes) || _mm256_movemask_ps(_mm256_castsi256_ps(lanes)) == 0xff)
                _mm256_storeu_ps(p, x);
        else
                _mm256_maskstore_ps(p, lanes, x);
}

#define sl_vector_where(lanes, a, b) _mm256_blendv_ps(b, a, _mm256_castsi256_ps(lanes))
#define sl_vector_less(a, b)         _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_LT_OQ))
#define sl_vector_equal(a, b)        _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_EQ_OQ))

#define sl_lanes_all() _mm256_set1_epi32(-1)

SL_VECTOR_INLINE sl_lanes sl_lanes_first(int64_t n)
{
        return _mm256_cmpgt_epi32(
                _mm256_set1_epi32((int)(n < SL_VECTOR_FLOATS ? n : SL_VECTOR_FLOATS)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

typedef __m256i sl_order;

#define sl_vector_order(x, order) _mm256_permutevar8x32_ps(x, order)
#define sl_order_next(order)      _mm256_add_epi32(order, _mm256_set1_epi32(1))

SL_VECTOR_INLINE sl_order sl_order_groups(int size)
{
        return _mm256_andnot_si256(_mm256_set1_epi32(size - 1), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

SL_VECTOR_INLINE sl_order sl_order_repeat(int n)
{
        return _mm256_and_si256(_mm256_set1_epi32(n - 1), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

SL_VECTOR_INLINE sl_order sl_order_spread(int n)
{
        return _mm256_srlv_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(__builtin_ctz((unsigned)n)));
}

/* The bounds of an infinity make its fraction 0, too. */
SL_VECTOR_INLINE sl_vector sl_vector_fraction(sl_vector x)
{
        sl_vector bounded = _mm256_min_ps(_mm256_set1_ps(0x1p24f), _mm256_max_ps(_mm256_set1_ps(-0x1p24f), x));

        return _mm256_sub_ps(bounded, _mm256_floor_ps(bounded));
}

/* From the power that is made 0 to that which is infinite. */
SL_VECTOR_INLINE sl_vector sl_vector_scale(sl_vector x, sl_vector y)
{
        sl_vector bounded = _mm256_min_ps(_mm256_set1_ps(128.0f), _mm256_max_ps(_mm256_set1_ps(-127.0f), y));
        __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(_mm256_floor_ps(bounded)), _mm256_set1_epi32(127));

        return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
}

SL_VECTOR_INLINE sl_vector sl_vector_reciprocal(sl_vector x)
{
        return _mm256_div_ps(_mm256_set1_ps(1.0f), x);
}

/* Of eight; those of float16 where isa.h says so. */
#define sl_vector_load_f16(p)     _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define sl_vector_load_bf16(p)                                                                                                     \
        _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p))), 16))

#define sl_vector_exp(x)        sl_exp_8(x)
#define sl_vector_hard_swish(x) sl_hard_swish_8(x)

#endif

SL_VECTOR_INLINE sl_vector sl_vector_clip(sl_vector x, sl_vector least, sl_vector most)
{
        return sl_vector_min(most, sl_vector_max(least, x));
}

/* 2^y, within 2 ulp: a polynomial for what y lies above an integer. Nothing for large numbers, so -infinity gives 0. */
SL_VECTOR_INLINE sl_vector sl_vector_power(sl_vector y)
{
        sl_vector r = sl_vector_fraction(y), p = sl_vector_set(0x1.e974fap-10f);

        p = sl_vector_fma(p, r, sl_vector_set(0x1.277856p-7f));
        p = sl_vector_fma(p, r, sl_vector_set(0x1.c91ce6p-5f));
        p = sl_vector_fma(p, r, sl_vector_set(0x1.ebdb56p-3f));
        p = sl_vector_fma(p, r, sl_vector_set(0x1.62e4bap-1f));
        p = sl_vector_fma(p, r, sl_vector_set(1.0f));
        return sl_vector_scale(p, y);
}

/* 1 / (1 + 2^y), within 3e-7 of the value; above 126 it is that at 126, about 1e-38. With y = -x / ln 2 it is the sigmoid of x. */
SL_VECTOR_INLINE sl_vector sl_vector_logistic(sl_vector y)
{
        sl_vector power = sl_vector_power(sl_vector_min(sl_vector_set(126.0f), y));

        return sl_vector_reciprocal(sl_vector_add(sl_vector_set(1.0f), power));
}

/* As sl_tanh() of vector_math.h, with a reciprocal instead of a quotient: the same error, in half the time. */
SL_VECTOR_INLINE sl_vector sl_vector_tanh(sl_vector x)
{
        sl_vector t = sl_vector_clip(x, sl_vector_set(-9.02f), sl_vector_set(9.02f)), u = sl_vector_mul(t, t);
        sl_vector p = sl_vector_set(-0x1.ad603ap-37f), q = sl_vector_set(0x1.59938ap-20f);

        p = sl_vector_fma(p, u, sl_vector_set(0x1.06b996p-25f));
        q = sl_vector_fma(q, u, sl_vector_set(0x1.9cff04p-12f));
        p = sl_vector_fma(p, u, sl_vector_set(0x1.d5e376p-16f));
        q = sl_vector_fma(q, u, sl_vector_set(0x1.be6564p-6f));
        p = sl_vector_fma(p, u, sl_vector_set(0x1.fb07acp-9f));
        q = sl_vector_fma(q, u, sl_vector_set(0x1.e16a6ap-2f));
        p = sl_vector_fma(p, u, sl_vector_set(0x1.182a2cp-3f));
        q = sl_vector_fma(q, u, sl_vector_set(1.0f));
        p = sl_vector_fma(p, u, sl_vector_set(1.0f));
        return sl_vector_clip(
                sl_vector_mul(sl_vector_mul(t, p), sl_vector_reciprocal(q)), sl_vector_set(-1.0f), sl_vector_set(1.0f));
}
