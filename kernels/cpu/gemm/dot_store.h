/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From sums in registers to what is stored: for files that are compiled for AVX-512 and hold sums of bytes, row by row in vectors
 * of sixteen columns. @n rows of @v vectors; what is none of the tile's rows and columns is left alone.
 */
#pragma once

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

SL_DOT_INLINE void sl_dot_store_reals(
        const struct sl_dot_result *r, const struct sl_dot_tile *t, const int n, const int v, const __m512i *sums, const bool adds)
{
        const __m512 least = _mm512_set1_ps(r->least), most = _mm512_set1_ps(r->most);

#pragma GCC unroll 28
        for (int i = 0; i < n * v; i++) {
                int64_t at = i / v * t->y_stride + i % v * SL_DOT_LANES;
                __m512 value =
                        _mm512_mul_ps(_mm512_cvtepi32_ps(sums[i]), _mm512_loadu_ps(t->columns->factors + i % v * SL_DOT_LANES));

                if (i / v >= t->n_rows)
                        continue;
                if (adds)
                        value = _mm512_add_ps(
                                value, _mm512_maskz_loadu_ps(sl_dot_lanes_of(t, v, i), (const float *)t->addend + at));
                /* A value that is none stays one: the second operand is returned. */
                value = _mm512_min_ps(most, _mm512_max_ps(least, value));
                _mm512_mask_storeu_ps((float *)t->y + at, sl_dot_lanes_of(t, v, i), value);
        }
}

/* In whole steps of the result, from its zero point on. */
SL_DOT_INLINE __m512i sl_dot_steps_of(
        const struct sl_dot_result *r, const struct sl_dot_tile *t, const int v, const __m512i *sums, int i, bool adds)
{
        __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[i]), _mm512_loadu_ps(t->columns->factors + i % v * SL_DOT_LANES));

        if (adds && i / v < t->n_rows) {
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

/* Two rows at a time, without a question: all rows, and all columns. What is stored is nothing of the tile's description. */
SL_DOT_INLINE void sl_dot_store_whole(const struct sl_dot_result *result, const struct sl_dot_tile *tile, const int n,
        const __m512i *sums, const bool adds, const bool saturates)
{
        const struct sl_dot_result own_result = *result, *r = &own_result;
        struct sl_dot_tile own_tile = *tile, *t = &own_tile;
        uint8_t *y = t->y;

        own_tile.n_rows = n;
        own_tile.n_columns = SL_DOT_PANEL;

#pragma GCC unroll 7
        for (int i = 0; i < n; i += 2, y += 2 * t->y_stride) {
                __m512i steps[4], bytes;

#pragma GCC unroll 4
                for (int k = 0; k < 4; k++)
                        steps[k] = i + k / 2 < n ? sl_dot_steps_of(r, t, 2, sums, 2 * i + k, adds) : _mm512_setzero_si512();
                bytes = sl_dot_bytes_of(r, saturates, steps);
                _mm256_storeu_si256((__m256i *)y, _mm512_castsi512_si256(bytes));
                if (i + 1 < n)
                        _mm256_storeu_si256((__m256i *)(y + t->y_stride), _mm512_extracti64x4_epi64(bytes, 1));
        }
}

SL_DOT_INLINE void sl_dot_store_bytes(
        const struct sl_dot_result *r, const struct sl_dot_tile *t, const int n, const int v, const __m512i *sums, const bool adds)
{
        const bool whole = t->n_columns == SL_DOT_PANEL;

        if (v > 1 && whole && t->n_rows == n && r->saturates) {
                sl_dot_store_whole(r, t, n, sums, adds, true);
                return;
        }
        if (v > 1 && whole && t->n_rows == n) {
                sl_dot_store_whole(r, t, n, sums, adds, false);
                return;
        }
#pragma GCC unroll 7
        for (int first = 0; first < n * v; first += 4) {
                __m512i steps[4], bytes;
                uint8_t *y = (uint8_t *)t->y + first / v * t->y_stride;

#pragma GCC unroll 4
                for (int i = 0; i < 4; i++)
                        steps[i] = first + i < n * v ? sl_dot_steps_of(r, t, v, sums, first + i, adds) : _mm512_setzero_si512();
                bytes = sl_dot_bytes_of(r, r->saturates, steps);
                if (v > 1 && whole) {
                        if (first / v < t->n_rows)
                                _mm256_storeu_si256((__m256i *)y, _mm512_castsi512_si256(bytes));
                        if (first / v + 1 < t->n_rows && first + 2 < n * v)
                                _mm256_storeu_si256((__m256i *)(y + t->y_stride), _mm512_extracti64x4_epi64(bytes, 1));
                        continue;
                }
#pragma GCC unroll 4
                for (int i = 0; i < 4; i++)
                        if ((first + i) / v < t->n_rows && first + i < n * v)
                                _mm_mask_storeu_epi8(y + i / v * t->y_stride + i % v * SL_DOT_LANES, sl_dot_lanes_of(t, v, i),
                                        sl_dot_part_of(bytes, i));
        }
}

SL_DOT_INLINE void sl_dot_store(
        const struct sl_dot_result *r, const struct sl_dot_tile *t, const int n, const int v, const __m512i *sums)
{
        if (r->kind == SL_DOT_SUMS)
                sl_dot_store_sums(t, n, v, sums);
        else if (r->kind == SL_DOT_REALS && r->has_addend)
                sl_dot_store_reals(r, t, n, v, sums, true);
        else if (r->kind == SL_DOT_REALS)
                sl_dot_store_reals(r, t, n, v, sums, false);
        else if (r->has_addend)
                sl_dot_store_bytes(r, t, n, v, sums, true);
        else
                sl_dot_store_bytes(r, t, n, v, sums, false);
}
