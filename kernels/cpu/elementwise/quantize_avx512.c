/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A division costs as much as all the rest. A number is multiplied by the reciprocal, which is within two units of the quotient;
 * the rest times the reciprocal brings it within one, and the rest of that to the quotient as a division rounds it. What is far
 * outside of any byte is cut before; where a reciprocal or a rest could leave the range of normal numbers, numbers are divided
 * after all.
 *
 * Sources: P. Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", IBM Journal of Research and
 * Development 34(1), 1990: a quotient within one unit, and the reciprocal as a division rounds it, give the quotient so.
 */
#include "cpu/elementwise/quantize_avx512.h"

#include <immintrin.h>
#include <math.h>

#define FAR     1024.0f  /* steps: outside of any byte, whatever the zero point */
#define LEAST   0x1p-60f /* of scales whose reciprocals do: numbers that count are 2^-10 of them, and rests 2^-24 of those */
#define VECTORS 4        /* of 16 numbers, that are stored together */
#define INLINE  static inline __attribute__((always_inline))

struct scale {
        __m512 value, reciprocal, least, most; /* the latter of numbers; of quotients, where numbers are divided */
};

/* NaN stays one. */
INLINE __m512 divide(const struct scale *s, const bool divides, __m512 x)
{
        __m512 number = divides ? _mm512_div_ps(x, s->value) : x, quotient;

        number = _mm512_max_ps(s->least, _mm512_min_ps(s->most, number));
        if (divides)
                return number;
        quotient = _mm512_mul_ps(number, s->reciprocal);
        quotient = _mm512_fmadd_ps(_mm512_fnmadd_ps(quotient, s->value, number), s->reciprocal, quotient);
        return _mm512_fmadd_ps(_mm512_fnmadd_ps(quotient, s->value, number), s->reciprocal, quotient);
}

/* Up to 64 numbers. @shift: the zero point, and 128 more for int8, whose bytes are in the end turned by @sign. A NaN becomes the
 * least. */
INLINE void quantize(const struct scale *s, const bool divides, __m512i shift, __m512i sign, int64_t n, uint8_t *y, const float *x)
{
        const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        __mmask64 there = n < 64 ? (1ull << n) - 1 : ~0ull, numbers = 0;
        __m512i steps[VECTORS], bytes;

#pragma GCC unroll 4
        for (int i = 0; i < VECTORS; i++) {
                __m512 quotient = divide(s, divides, _mm512_maskz_loadu_ps((__mmask16)(there >> 16 * i), x + 16 * i));

                numbers |= (__mmask64)_mm512_cmp_ps_mask(quotient, quotient, _CMP_ORD_Q) << 16 * i;
                steps[i] = _mm512_cvtps_epi32(quotient);
        }
        bytes = _mm512_packus_epi16(_mm512_adds_epi16(_mm512_packs_epi32(steps[0], steps[1]), shift),
                _mm512_adds_epi16(_mm512_packs_epi32(steps[2], steps[3]), shift));
        bytes = _mm512_mask_mov_epi8(sign, numbers, _mm512_xor_si512(_mm512_permutexvar_epi32(order, bytes), sign));
        if (n >= 64)
                _mm512_storeu_si512(y, bytes);
        else
                _mm512_mask_storeu_epi8(y, there, bytes);
}

INLINE void quantize_all(
        const struct scale *scale, const bool divides, int32_t zero, bool is_signed, int64_t n, uint8_t *y, const float *x)
{
        const __m512i shift = _mm512_set1_epi16((int16_t)(zero + (is_signed ? 128 : 0)));
        const __m512i sign = _mm512_set1_epi8(is_signed ? (char)0x80 : 0);

        for (int64_t i = 0; i < n; i += 64)
                quantize(scale, divides, shift, sign, n - i < 64 ? n - i : 64, y + i, x + i);
}

void sl_quantize_avx512(int64_t n, uint8_t *restrict y, const float *restrict x, float scale, int32_t zero, int32_t low)
{
        float size = fabsf(scale);
        bool divides = !(size >= LEAST && size <= 1 / LEAST);
        const struct scale s = {.value = _mm512_set1_ps(scale),
                .reciprocal = _mm512_set1_ps(1.0f / scale),
                .least = _mm512_set1_ps(divides ? -FAR : -FAR * size),
                .most = _mm512_set1_ps(divides ? FAR : FAR * size)};

        if (divides)
                quantize_all(&s, true, zero, low < 0, n, y, x);
        else
                quantize_all(&s, false, zero, low < 0, n, y, x);
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
        const __m512 zero = _mm512_set1_ps(s.x_zero), addend_zero = _mm512_set1_ps(s.addend_zero),
                     y_zero = _mm512_set1_ps(s.y_zero);
        const __m512 low = _mm512_set1_ps(s.low), high = _mm512_set1_ps(s.high);

        for (int64_t i = 0; i < n; i += 16) {
                __mmask16 there = (__mmask16)(n - i < 16 ? (1u << (n - i)) - 1 : 0xffffu);
                __m512 value = _mm512_mul_ps(_mm512_sub_ps(load_bytes(s.x, i, there, s.x_signed), zero), factor), addend;

                if (s.addend) {
                        addend = _mm512_sub_ps(load_bytes(s.addend, i, there, s.addend_signed), addend_zero);
                        value = _mm512_add_ps(value, _mm512_mul_ps(addend, addend_factor));
                }
                value = _mm512_add_ps(_mm512_roundscale_ps(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), y_zero);
                value = _mm512_min_ps(_mm512_max_ps(value, low), high);
                _mm_mask_storeu_epi8(s.y + i, there, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(value)));
        }
}
