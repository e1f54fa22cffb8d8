/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From sums in registers to what is stored: for files that are compiled for AVX-512 and hold sums of bytes, row by row in vectors
 * of sixteen columns. @n rows of @v vectors; what is none of the tile's rows and columns is left alone.
 */
#pragma once

#include "cpu/base/vector_math.h"
#include "cpu/gemm/dot_tile.h"

#include <immintrin.h>

#define SL_DOT_INLINE static inline __attribute__((always_inline))
#define SL_DOT_LANES  16

/* The lanes of vector @i % @v that are columns. */
SL_DOT_INLINE __mmask16 sl_dot_lanes_of(const struct sl_dot_tile *t, const int v, int i)
{
        int64_t left = t->n_columns - i % v * SL_DOT_LANES;

        return (__mmask16)(left >= SL_DOT_LANES ? 0xffff : (1u << (left > 0 ? left : 0)) - 1);
}

SL_DOT_INLINE void sl_dot_store_sums(const struct sl_dot_tile *t, const int n, const int v, const __m512i *sums)
{
#pragma GCC unroll 28
        for (int i = 0; i < n * v; i++)
                if (i / v < t->n_rows)
                        _mm512_mask_storeu_epi32(
                                (int32_t *)t->y + i / v * t->y_stride + i % v * SL_DOT_LANES, sl_dot_lanes_of(t, v, i), sums[i]);
}

/* What happens to sums beside their factors. */
enum sl_dot_last { SL_DOT_NOTHING, SL_DOT_ADDEND, SL_DOT_HARD_SWISH };

/* @whole: all rows and columns of the tile are wanted. */
SL_DOT_INLINE void sl_dot_store_reals(const struct sl_dot_result *r, const struct sl_dot_tile *tile, const int n, const int v,
        const __m512i *sums, const enum sl_dot_last last, const bool whole)
{
        const __m512 least = _mm512_set1_ps(r->least), most = _mm512_set1_ps(r->most);
        const struct sl_dot_tile own = *tile, *t = &own;

#pragma GCC unroll 28
        for (int i = 0; i < n * v; i++) {
                const __mmask16 lanes = whole ? 0xffff : sl_dot_lanes_of(t, v, i);
                int64_t at = i / v * t->y_stride + i % v * SL_DOT_LANES;
                __m512 value =
                        _mm512_mul_ps(_mm512_cvtepi32_ps(sums[i]), _mm512_loadu_ps(t->columns->factors + i % v * SL_DOT_LANES));

                if (!whole && i / v >= t->n_rows)
                        continue;
                if (last == SL_DOT_ADDEND)
                        value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(lanes, (const float *)t->addend + at));
                if (last == SL_DOT_HARD_SWISH)
                        value = sl_hard_swish_16(value);
                /* A value that is none stays one: the second operand is returned. */
                value = _mm512_min_ps(most, _mm512_max_ps(least, value));
                if (whole)
                        _mm512_storeu_ps((float *)t->y + at, value);
                else
                        _mm512_mask_storeu_ps((float *)t->y + at, lanes, value);
        }
}

#define SL_DOT_FAR 1e6f /* from any byte, in steps, and inside of what 32 bits hold */

/* Real numbers in whole steps. NaN becomes the least. */
SL_DOT_INLINE __m512i sl_dot_round_reals(__m512 value, float unit)
{
        value = _mm512_max_ps(_mm512_mul_ps(value, _mm512_set1_ps(unit)), _mm512_set1_ps(-SL_DOT_FAR));
        return _mm512_cvtps_epi32(_mm512_min_ps(value, _mm512_set1_ps(SL_DOT_FAR)));
}

/* In whole steps of the result, from its zero point on. */
SL_DOT_INLINE __m512i sl_dot_steps_of(const struct sl_dot_result *r, const struct sl_dot_tile *t, const int v, const __m512i *sums,
        int i, const enum sl_dot_last last)
{
        __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[i]), _mm512_loadu_ps(t->columns->factors + i % v * SL_DOT_LANES));

        if (last == SL_DOT_HARD_SWISH)
                return sl_dot_round_reals(sl_hard_swish_16(value), r->unit);

        if (last == SL_DOT_ADDEND && i / v < t->n_rows) {
                const uint8_t *from = (const uint8_t *)t->addend + i / v * t->y_stride + i % v * SL_DOT_LANES;
                __m128i bytes =
                        _mm_xor_si128(_mm_maskz_loadu_epi8(sl_dot_lanes_of(t, v, i), from), _mm_set1_epi8((char)r->addend_sign));
                __m512 addend = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));

                value = _mm512_add_ps(
                        value, _mm512_fmadd_ps(addend, _mm512_set1_ps(r->addend_scale), _mm512_set1_ps(r->addend_constant)));
        }
        return _mm512_cvtps_epi32(value);
}

/* Four vectors of steps to 64 bytes, in order. What saturates on the way is what a byte would cut. */
SL_DOT_INLINE __m512i sl_dot_bytes_of(const struct sl_dot_result *r, const bool saturates, const __m512i steps[4])
{
        const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        const __m512i zero = _mm512_set1_epi16(r->zero);
        __m512i first = _mm512_packs_epi32(steps[0], steps[1]), second = _mm512_packs_epi32(steps[2], steps[3]), bytes;

        if (saturates)
                return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(first, second));
        bytes = _mm512_packus_epi16(_mm512_adds_epi16(first, zero), _mm512_adds_epi16(second, zero));
        bytes = _mm512_permutexvar_epi32(order, bytes);
        bytes = _mm512_max_epu8(_mm512_set1_epi8((char)r->low), _mm512_min_epu8(_mm512_set1_epi8((char)r->high), bytes));
        return _mm512_xor_si512(bytes, _mm512_set1_epi8((char)r->sign));
}

SL_DOT_INLINE __m128i sl_dot_part_of(__m512i bytes, const int part)
{
        return part == 0   ? _mm512_castsi512_si128(bytes)
               : part == 1 ? _mm512_extracti32x4_epi32(bytes, 1)
               : part == 2 ? _mm512_extracti32x4_epi32(bytes, 2)
                           : _mm512_extracti32x4_epi32(bytes, 3);
}

/* So many of a row's bytes, 16 at most. What a mask leaves out costs more than a question. */
SL_DOT_INLINE void sl_dot_store_row(uint8_t *y, __m128i bytes, int64_t n)
{
        if (n >= SL_DOT_LANES)
                _mm_storeu_si128((__m128i *)y, bytes);
        else if (n == SL_DOT_LANES / 2)
                _mm_storel_epi64((__m128i *)y, bytes);
        else if (n > 0)
                _mm_mask_storeu_epi8(y, (__mmask16)((1u << n) - 1), bytes);
}

/* The vectors from @first on, four at a time, to their places. @whole: of a tile all of whose rows and columns are wanted. */
SL_DOT_INLINE void sl_dot_store_four(
        const struct sl_dot_tile *t, const int n, const int v, const int first, const bool whole, __m512i bytes)
{
        uint8_t *y = (uint8_t *)t->y + first / v * t->y_stride;

        if (whole && v > 1) {
                _mm256_storeu_si256((__m256i *)y, _mm512_castsi512_si256(bytes));
                if (first + 2 < n * v)
                        _mm256_storeu_si256((__m256i *)(y + t->y_stride), _mm512_extracti64x4_epi64(bytes, 1));
                return;
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
                if (first + i < n * v && (whole || (first + i) / v < t->n_rows))
                        sl_dot_store_row(y + i / v * t->y_stride + i % v * SL_DOT_LANES, sl_dot_part_of(bytes, i),
                                whole ? SL_DOT_LANES : t->n_columns - i % v * SL_DOT_LANES);
}

/* What is stored is nothing of the tile's description. */
SL_DOT_INLINE void sl_dot_store_tile(const struct sl_dot_result *result, const struct sl_dot_tile *tile, const int n, const int v,
        const __m512i *sums, const enum sl_dot_last last, const bool saturates, const bool whole)
{
        const struct sl_dot_result own_result = *result, *r = &own_result;
        struct sl_dot_tile own = *tile, *t = &own;

        if (whole) {
                own.n_rows = n;
                own.n_columns = v * SL_DOT_LANES;
        }
#pragma GCC unroll 7
        for (int first = 0; first < n * v; first += 4) {
                __m512i steps[4];

#pragma GCC unroll 4
                for (int i = 0; i < 4; i++)
                        steps[i] = first + i < n * v ? sl_dot_steps_of(r, t, v, sums, first + i, last) : _mm512_setzero_si512();
                sl_dot_store_four(t, n, v, first, whole, sl_dot_bytes_of(r, saturates, steps));
        }
}

SL_DOT_INLINE enum sl_dot_last sl_dot_last_of(const struct sl_dot_result *r)
{
        return r->has_addend ? SL_DOT_ADDEND : r->hard_swish ? SL_DOT_HARD_SWISH : SL_DOT_NOTHING;
}

SL_DOT_INLINE void sl_dot_store(const struct sl_dot_result *r, const struct sl_dot_tile *t, const int n, const int v,
        const __m512i *sums, const enum sl_dot_last last)
{
        const bool whole = t->n_columns == v * SL_DOT_LANES && (t->n_rows == n || (n == 2 && t->n_rows > 2));

        if (r->kind == SL_DOT_BYTES && whole && r->saturates)
                sl_dot_store_tile(r, t, n, v, sums, last, true, true);
        else if (r->kind == SL_DOT_BYTES && whole)
                sl_dot_store_tile(r, t, n, v, sums, last, false, true);
        else if (r->kind == SL_DOT_BYTES)
                sl_dot_store_tile(r, t, n, v, sums, last, r->saturates, false);
        else if (r->kind == SL_DOT_SUMS)
                sl_dot_store_sums(t, n, v, sums);
        else if (whole)
                sl_dot_store_reals(r, t, n, v, sums, last, true);
        else
                sl_dot_store_reals(r, t, n, v, sums, last, false);
}
