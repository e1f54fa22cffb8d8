/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/gemm/dot_tile.h"

#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#define LANES 16

/* Bytes of a row that are fetched at a time, for the tile behind this one. */
#define LINE_BYTES 64

INLINE void fetch_next(const struct sl_dot_tile *t, const int n, int64_t at)
{
        const uint8_t *const *next = t->rows + t->n_rows;

        if (t->n_next >= n)
#pragma GCC unroll 14
                for (int i = 0; i < n; i++)
                        _mm_prefetch(next[i] + at, _MM_HINT_T0);
}

/* Sums of @n rows by @v vectors of columns. */
INLINE void sum_rows(const struct sl_dot_depth *d, const struct sl_dot_tile *t, const int n, const int v, __m512i *sums)
{
        const int64_t panel_bytes = sl_dot_panel_bytes(d);
        const int8_t *w = t->panel + SL_DOT_PANEL * sizeof(int32_t);
        const uint8_t *a[SL_DOT_ROWS];

#pragma GCC unroll 28
        for (int i = 0; i < n * v; i++)
                sums[i] = _mm512_loadu_si512(t->columns->starts + i % v * LANES);
        for (int64_t scanline = 0; scanline < d->scanlines; scanline++)
                for (int64_t tap = 0; tap < d->taps; tap++) {
                        int64_t at = t->offset + scanline * d->scanline_stride + tap * d->tap_stride;

#pragma GCC unroll 14
                        for (int i = 0; i < n; i++)
                                a[i] = t->rows[i < t->n_rows ? i : t->n_rows - 1] + at;
                        for (int64_t k = 0; k < d->steps; k++, w += 4 * SL_DOT_PANEL) {
                                __m512i low = _mm512_loadu_si512(w), high = v > 1 ? _mm512_loadu_si512(w + 64) : low;

                                if (k % (LINE_BYTES / 4) == 0)
                                        fetch_next(t, n, at + 4 * k);
                                /* The next panel, for whoever comes then. */
                                _mm_prefetch(w + panel_bytes, _MM_HINT_T1);
                                if (v > 1)
                                        _mm_prefetch(w + panel_bytes + 64, _MM_HINT_T1);
#pragma GCC unroll 14
                                for (int i = 0; i < n; i++) {
                                        int32_t four;
                                        __m512i x;

                                        memcpy(&four, a[i] + 4 * k, sizeof(four));
                                        x = _mm512_set1_epi32(four);
                                        sums[i * v] = _mm512_dpbusd_epi32(sums[i * v], x, low);
                                        if (v > 1)
                                                sums[i * v + 1] = _mm512_dpbusd_epi32(sums[i * v + 1], x, high);
                                }
                        }
                }
}

/* The lanes of vector @i % @v that are columns. */
INLINE __mmask16 lanes_of(const struct sl_dot_tile *t, const int v, int i)
{
        int64_t left = t->n_columns - i % v * LANES;

        return (__mmask16)(left >= LANES ? 0xffff : (1u << (left > 0 ? left : 0)) - 1);
}

INLINE void store_sums(const struct sl_dot_tile *t, const int n, const int v, const __m512i *sums)
{
#pragma GCC unroll 28
        for (int i = 0; i < n * v; i++)
                if (i / v < t->n_rows)
                        _mm512_mask_storeu_epi32((int32_t *)t->y + i / v * t->y_stride + i % v * LANES, lanes_of(t, v, i), sums[i]);
}

INLINE void store_reals(
        const struct sl_dot_result *r, const struct sl_dot_tile *t, const int n, const int v, const __m512i *sums, const bool adds)
{
        const __m512 least = _mm512_set1_ps(r->least), most = _mm512_set1_ps(r->most);

#pragma GCC unroll 28
        for (int i = 0; i < n * v; i++) {
                int64_t at = i / v * t->y_stride + i % v * LANES;
                __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[i]), _mm512_loadu_ps(t->columns->factors + i % v * LANES));

                if (i / v >= t->n_rows)
                        continue;
                if (adds)
                        value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(lanes_of(t, v, i), (const float *)t->addend + at));
                /* A value that is none stays one: the second operand is returned. */
                value = _mm512_min_ps(most, _mm512_max_ps(least, value));
                _mm512_mask_storeu_ps((float *)t->y + at, lanes_of(t, v, i), value);
        }
}

/* In whole steps of the result, from its zero point on. */
INLINE __m512i steps_of(
        const struct sl_dot_result *r, const struct sl_dot_tile *t, const int v, const __m512i *sums, int i, bool adds)
{
        __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[i]), _mm512_loadu_ps(t->columns->factors + i % v * LANES));

        if (adds && i / v < t->n_rows) {
                const uint8_t *from = (const uint8_t *)t->addend + i / v * t->y_stride + i % v * LANES;
                __m128i bytes = _mm_xor_si128(_mm_maskz_loadu_epi8(lanes_of(t, v, i), from), _mm_set1_epi8((char)r->addend_sign));
                __m512 addend = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));

                value = _mm512_add_ps(
                        value, _mm512_fmadd_ps(addend, _mm512_set1_ps(r->addend_scale), _mm512_set1_ps(r->addend_constant)));
        }
        return _mm512_cvtps_epi32(value);
}

/* Four vectors of steps to 64 bytes, in order. What saturates on the way is what a byte would cut. */
INLINE __m512i bytes_of(const struct sl_dot_result *r, const __m512i steps[4])
{
        const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        const __m512i zero = _mm512_set1_epi16(r->zero);
        __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(steps[0], steps[1]), zero);
        __m512i second = _mm512_adds_epi16(_mm512_packs_epi32(steps[2], steps[3]), zero);
        __m512i bytes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(first, second));

        bytes = _mm512_max_epu8(_mm512_set1_epi8((char)r->low), _mm512_min_epu8(_mm512_set1_epi8((char)r->high), bytes));
        return _mm512_xor_si512(bytes, _mm512_set1_epi8((char)r->sign));
}

INLINE __m128i part_of(__m512i bytes, const int part)
{
        return part == 0   ? _mm512_castsi512_si128(bytes)
               : part == 1 ? _mm512_extracti32x4_epi32(bytes, 1)
               : part == 2 ? _mm512_extracti32x4_epi32(bytes, 2)
                           : _mm512_extracti32x4_epi32(bytes, 3);
}

INLINE void store_bytes(
        const struct sl_dot_result *r, const struct sl_dot_tile *t, const int n, const int v, const __m512i *sums, const bool adds)
{
        const bool whole = t->n_columns == SL_DOT_PANEL;

#pragma GCC unroll 7
        for (int first = 0; first < n * v; first += 4) {
                __m512i steps[4], bytes;
                uint8_t *y = (uint8_t *)t->y + first / v * t->y_stride;

#pragma GCC unroll 4
                for (int i = 0; i < 4; i++)
                        steps[i] = first + i < n * v ? steps_of(r, t, v, sums, first + i, adds) : _mm512_setzero_si512();
                bytes = bytes_of(r, steps);
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
                                _mm_mask_storeu_epi8(y + i / v * t->y_stride + i % v * LANES, lanes_of(t, v, i), part_of(bytes, i));
        }
}

/* Where the results go, and what is added to them. */
INLINE void fetch_results(const struct sl_dot_result *r, const struct sl_dot_tile *t)
{
        const int64_t bytes = r->kind == SL_DOT_BYTES ? 1 : sizeof(float);

        for (int64_t i = 0; i < t->n_rows; i++) {
                if (r->has_addend)
                        _mm_prefetch((const char *)t->addend + i * t->y_stride * bytes, _MM_HINT_T0);
                __builtin_prefetch((const char *)t->y + i * t->y_stride * bytes, 1);
        }
}

INLINE void run_tile(
        const struct sl_dot_depth *d, const struct sl_dot_result *r, const struct sl_dot_tile *t, const int n, const int v)
{
        __m512i sums[2 * SL_DOT_ROWS];

        fetch_results(r, t);
        sum_rows(d, t, n, v, sums);
        if (r->kind == SL_DOT_SUMS)
                store_sums(t, n, v, sums);
        else if (r->kind == SL_DOT_REALS && r->has_addend)
                store_reals(r, t, n, v, sums, true);
        else if (r->kind == SL_DOT_REALS)
                store_reals(r, t, n, v, sums, false);
        else if (r->has_addend)
                store_bytes(r, t, n, v, sums, true);
        else
                store_bytes(r, t, n, v, sums, false);
}

/* A last row stands in for those that are missed. */
#define DEFINE_TILE(n)                                                                                                             \
        static void tile_##n(const struct sl_dot_depth *d, const struct sl_dot_result *r, const struct sl_dot_tile *t)             \
        {                                                                                                                          \
                run_tile(d, r, t, n, 2);                                                                                           \
        }                                                                                                                          \
        static void narrow_tile_##n(const struct sl_dot_depth *d, const struct sl_dot_result *r, const struct sl_dot_tile *t)      \
        {                                                                                                                          \
                run_tile(d, r, t, n, 1);                                                                                           \
        }

DEFINE_TILE(1)
DEFINE_TILE(2)
DEFINE_TILE(4)
DEFINE_TILE(6)
DEFINE_TILE(8)
DEFINE_TILE(10)
DEFINE_TILE(12)
DEFINE_TILE(14)

void sl_dot_tile(const struct sl_dot_depth *depth, const struct sl_dot_result *result, const struct sl_dot_tile *tile)
{
        static void (*const tiles[][8])(const struct sl_dot_depth *, const struct sl_dot_result *, const struct sl_dot_tile *) = {
                {narrow_tile_1, narrow_tile_2, narrow_tile_4, narrow_tile_6, narrow_tile_8, narrow_tile_10, narrow_tile_12,
                        narrow_tile_14},
                {tile_1, tile_2, tile_4, tile_6, tile_8, tile_10, tile_12, tile_14},
        };

        tiles[tile->n_columns > LANES][tile->n_rows / 2 + (tile->n_rows > 1 && tile->n_rows % 2)](depth, result, tile);
}

#define FAR 1e6f /* from any byte, in steps, and inside of what 32 bits hold */

/* NaN becomes the least. */
static __m512i round_reals(float factor, const float *reals)
{
        __m512 value = _mm512_mul_ps(_mm512_loadu_ps(reals), _mm512_set1_ps(factor));

        return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(value, _mm512_set1_ps(-FAR)), _mm512_set1_ps(FAR)));
}

void sl_dot_round(const struct sl_dot_result *result, float factor, const float *reals, int64_t rows, int64_t columns, uint8_t *y,
        int64_t y_stride)
{
        const __mmask32 there = (__mmask32)((1ull << columns) - 1);
        __m512i steps[4], bytes;

        for (int64_t row = 0; row < rows; row += 2, reals += 2 * SL_DOT_PANEL, y += 2 * y_stride) {
                bool both = row + 1 < rows;

                for (int i = 0; i < 4; i++)
                        steps[i] = i < 2 || both ? round_reals(factor, reals + i * LANES) : _mm512_setzero_si512();
                bytes = bytes_of(result, steps);
                _mm256_mask_storeu_epi8(y, there, _mm512_castsi512_si256(bytes));
                if (both)
                        _mm256_mask_storeu_epi8(y + y_stride, there, _mm512_extracti64x4_epi64(bytes, 1));
        }
}
