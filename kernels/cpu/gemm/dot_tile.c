/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/gemm/dot_store.h"

#include <string.h>

/* Rows that hide the fetch of the next panel, at least: with fewer, panels are a stream that the processor fetches by itself. */
#define FETCHING_ROWS 4

/* Sums of @n rows by @v vectors of columns. */
SL_DOT_INLINE void sum_rows(const struct sl_dot_depth *d, const struct sl_dot_tile *t, const int n, const int v, __m512i *sums)
{
        const int64_t panel_bytes = sl_dot_panel_bytes(d);
        const int8_t *w = t->panel + SL_DOT_PANEL * sizeof(int32_t);
        const uint8_t *a[SL_DOT_ROWS];

#pragma GCC unroll 28
        for (int i = 0; i < n * v; i++)
                sums[i] = _mm512_loadu_si512(t->columns->starts + i % v * SL_DOT_LANES);
        for (int64_t scanline = 0; scanline < d->scanlines; scanline++)
                for (int64_t tap = 0; tap < d->taps; tap++) {
                        int64_t at = t->offset + scanline * d->scanline_stride + tap * d->tap_stride;

#pragma GCC unroll 14
                        for (int i = 0; i < n; i++)
                                a[i] = t->rows[i < t->n_rows ? i : t->n_rows - 1] + at;
                        for (int64_t k = 0; k < d->steps; k++, w += 4 * SL_DOT_PANEL) {
                                __m512i low = _mm512_loadu_si512(w), high = v > 1 ? _mm512_loadu_si512(w + 64) : low;

                                /* The next panel, for whoever comes then. */
                                if (n >= FETCHING_ROWS)
                                        _mm_prefetch(w + panel_bytes, _MM_HINT_T1);
                                if (n >= FETCHING_ROWS && v > 1)
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
                        w += (d->room - d->steps) * 4 * SL_DOT_PANEL;
                }
}

SL_DOT_INLINE void run_tile(
        const struct sl_dot_depth *d, const struct sl_dot_result *r, const struct sl_dot_tile *t, const int n, const int v)
{
        __m512i sums[2 * SL_DOT_ROWS];

        sum_rows(d, t, n, v, sums);
        sl_dot_store(r, t, n, v, sums);
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

        tiles[tile->n_columns > SL_DOT_LANES][tile->n_rows / 2 + (tile->n_rows > 1 && tile->n_rows % 2)](depth, result, tile);
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
                        steps[i] = i < 2 || both ? round_reals(factor, reals + i * SL_DOT_LANES) : _mm512_setzero_si512();
                bytes = sl_dot_bytes_of(result, result->saturates, steps);
                _mm256_mask_storeu_epi8(y, there, _mm512_castsi512_si256(bytes));
                if (both)
                        _mm256_mask_storeu_epi8(y + y_stride, there, _mm512_extracti64x4_epi64(bytes, 1));
        }
}
