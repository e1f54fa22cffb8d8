/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A division costs as much as all the rest, so sixteen numbers are multiplied by the reciprocal first. Where that could round to
 * another number than the quotient does (one lies within a few units of a tie), they are divided after all.
 */
#include "cpu/elementwise/quantize_avx512.h"

#include <immintrin.h>

#define UNCERTAIN 4e-7f /* of a quotient: more than both roundings of the product and the one of the quotient */
#define LIMIT     1e6f  /* far outside of any byte, and inside of what an int32 holds */

static inline __m512 divide(__m512 x, __m512 scale, __m512 reciprocal)
{
        __m512 product = _mm512_mul_ps(x, reciprocal);
        __m512 rest = _mm512_abs_ps(_mm512_sub_ps(product, _mm512_roundscale_ps(product, _MM_FROUND_TO_NEAREST_INT)));
        __m512 from_tie = _mm512_abs_ps(_mm512_sub_ps(rest, _mm512_set1_ps(0.5f)));
        __m512 room = _mm512_mul_ps(_mm512_abs_ps(product), _mm512_set1_ps(UNCERTAIN));

        return _mm512_cmp_ps_mask(from_tie, room, _CMP_LE_OQ) ? _mm512_div_ps(x, scale) : product;
}

void sl_quantize_avx512(int64_t n, uint8_t *restrict y, const float *restrict x, float scale, int32_t zero, int32_t low)
{
        const __m512 divisor = _mm512_set1_ps(scale), reciprocal = _mm512_set1_ps(1.0f / scale);
        const __m512 most = _mm512_set1_ps(LIMIT), least = _mm512_set1_ps(-LIMIT);
        const __m512i shift = _mm512_set1_epi32(zero), lowest = _mm512_set1_epi32(low), highest = _mm512_set1_epi32(low + 255);

        for (int64_t i = 0; i < n; i += 16) {
                __mmask16 there = (__mmask16)(n - i < 16 ? (1u << (n - i)) - 1 : 0xffffu);
                __m512 value = _mm512_maskz_loadu_ps(there, x + i);
                __mmask16 numbers = (__mmask16)_mm512_cmp_ps_mask(value, value, _CMP_ORD_Q);
                __m512 quotient = _mm512_max_ps(_mm512_min_ps(divide(value, divisor, reciprocal), most), least);
                __m512i bytes = _mm512_add_epi32(_mm512_cvtps_epi32(quotient), shift);

                bytes = _mm512_maskz_max_epi32(numbers, bytes, lowest);
                _mm512_mask_cvtepi32_storeu_epi8(y + i, there, _mm512_min_epi32(bytes, highest));
        }
}

#define CHAINS 8 /* of minima that do not wait for each other */

void sl_range_avx512(int64_t n, const float *x, float *ret_least, float *ret_most)
{
        __m512 least[CHAINS], most[CHAINS];
        int64_t i = 0;

#pragma GCC unroll 8
        for (int k = 0; k < CHAINS; k++)
                least[k] = most[k] = _mm512_setzero_ps();
        for (; i + 16 * CHAINS <= n; i += 16 * CHAINS)
#pragma GCC unroll 8
                for (int k = 0; k < CHAINS; k++) {
                        __m512 value = _mm512_loadu_ps(x + i + 16 * k);

                        /* The second operand is what comes out when the first is NaN. */
                        least[k] = _mm512_min_ps(value, least[k]);
                        most[k] = _mm512_max_ps(value, most[k]);
                }
        for (; i < n; i += 16) {
                __m512 value = _mm512_maskz_loadu_ps((__mmask16)(n - i < 16 ? (1u << (n - i)) - 1 : 0xffffu), x + i);

                least[0] = _mm512_min_ps(value, least[0]);
                most[0] = _mm512_max_ps(value, most[0]);
        }
#pragma GCC unroll 8
        for (int k = 1; k < CHAINS; k++) {
                least[0] = _mm512_min_ps(least[k], least[0]);
                most[0] = _mm512_max_ps(most[k], most[0]);
        }
        *ret_least = _mm512_reduce_min_ps(least[0]);
        *ret_most = _mm512_reduce_max_ps(most[0]);
}

static inline __m512 load_bytes(const void *from, int64_t at, __mmask16 there, bool is_signed)
{
        __m128i bytes = _mm_maskz_loadu_epi8(there, (const uint8_t *)from + at);

        return _mm512_cvtepi32_ps(is_signed ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes));
}

void sl_sum_bytes_avx512(int64_t n, const struct sl_byte_sum *sum)
{
        const struct sl_byte_sum s = *sum; /* a byte that is stored might lie in it */
        const __m512 factor = _mm512_set1_ps(s.x_factor), addend_factor = _mm512_set1_ps(s.addend_factor);
        const __m512 constant = _mm512_set1_ps(s.constant), low = _mm512_set1_ps(s.low), high = _mm512_set1_ps(s.high);

        for (int64_t i = 0; i < n; i += 16) {
                __mmask16 there = (__mmask16)(n - i < 16 ? (1u << (n - i)) - 1 : 0xffffu);
                __m512 value = _mm512_mul_ps(load_bytes(s.x, i, there, s.x_signed), factor);

                if (s.addend)
                        value = _mm512_add_ps(value, _mm512_mul_ps(load_bytes(s.addend, i, there, s.addend_signed), addend_factor));
                value = _mm512_min_ps(_mm512_max_ps(_mm512_add_ps(value, constant), low), high);
                _mm_mask_storeu_epi8(s.y + i, there, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(value)));
        }
}
