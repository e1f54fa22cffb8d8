/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/gemm/dot_store.h"

#include <string.h>

/* Rows that hide the fetch of the next panel, at least: with fewer, panels are a stream that the processor fetches by itself. */
#define FETCHING_ROWS 4

/* Sums of @n rows by @v vectors of columns. */
SL_DOT_INLINE void sum_rows(const struct sl_dot_depth *d, const struct sl_dot_tile *t, const int n, const int v, __m512i *sums)
{
        const int64_t panel_bytes = sl_dot_panel_bytes(d), half = panel_bytes / 128 * 64;
        const int8_t *w = t->panel + SL_DOT_PANEL * sizeof(int32_t);
        const int8_t *next = w + panel_bytes;
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
                                        _mm_prefetch(next, _MM_HINT_T1);
                                if (n >= FETCHING_ROWS && v > 1)
                                        _mm_prefetch(next + half, _MM_HINT_T1);
                                next += 64;
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

typedef void tile_function(const struct sl_dot_depth *d, const struct sl_dot_result *r, const struct sl_dot_tile *t);

/* A function each, so that sums stay in registers on a way with few branches. A last row stands in for those that are missed. */
#define DEFINE_TILE(name, n, v, last)                                                                                              \
        static void name##_##n(const struct sl_dot_depth *d, const struct sl_dot_result *r, const struct sl_dot_tile *t)           \
        {                                                                                                                          \
                __m512i sums[(n) * (v)];                                                                                           \
                                                                                                                                   \
                sum_rows(d, t, n, v, sums);                                                                                        \
                sl_dot_store(r, t, n, v, sums, last);                                                                              \
        }

#define DEFINE_TILES(name, v, last)                                                                                                \
        DEFINE_TILE(name, 1, v, last)                                                                                              \
        DEFINE_TILE(name, 2, v, last)                                                                                              \
        DEFINE_TILE(name, 4, v, last)                                                                                              \
        DEFINE_TILE(name, 6, v, last)                                                                                              \
        DEFINE_TILE(name, 8, v, last)                                                                                              \
        DEFINE_TILE(name, 10, v, last)                                                                                             \
        DEFINE_TILE(name, 12, v, last)                                                                                             \
        DEFINE_TILE(name, 14, v, last)                                                                                             \
        static tile_function *const name[] = {name##_1, name##_2, name##_4, name##_6, name##_8, name##_10, name##_12, name##_14};

DEFINE_TILES(plain, 2, SL_DOT_NOTHING)
DEFINE_TILES(narrow, 1, SL_DOT_NOTHING)
DEFINE_TILES(added, 2, SL_DOT_ADDEND)
DEFINE_TILES(narrow_added, 1, SL_DOT_ADDEND)
DEFINE_TILES(swished, 2, SL_DOT_HARD_SWISH)
DEFINE_TILES(narrow_swished, 1, SL_DOT_HARD_SWISH)

void sl_dot_tile(const struct sl_dot_depth *depth, const struct sl_dot_result *result, const struct sl_dot_tile *tile)
{
        static tile_function *const *const tiles[][2] = {[SL_DOT_NOTHING] = {narrow, plain},
                [SL_DOT_ADDEND] = {narrow_added, added},
                [SL_DOT_HARD_SWISH] = {narrow_swished, swished}};

        tiles[sl_dot_last_of(result)][tile->n_columns > SL_DOT_LANES][tile->n_rows / 2 + (tile->n_rows > 1 && tile->n_rows % 2)](
                depth, result, tile);
}

void sl_dot_round(const struct sl_dot_result *result, float factor, const float *reals, int64_t rows, int64_t columns, uint8_t *y,
        int64_t y_stride)
{
        __m512i steps[4], bytes;

        for (int64_t row = 0; row < rows; row += 2, reals += 2 * SL_DOT_PANEL, y += 2 * y_stride) {
                bool both = row + 1 < rows;

                for (int i = 0; i < 4; i++)
                        steps[i] = i < 2 || both ? sl_dot_round_reals(_mm512_loadu_ps(reals + i * SL_DOT_LANES), factor)
                                                 : _mm512_setzero_si512();
                bytes = sl_dot_bytes_of(result, result->saturates, steps);
                for (int i = 0; i < 2 + 2 * both; i++)
                        sl_dot_store_row(y + i / 2 * y_stride + i % 2 * SL_DOT_LANES, sl_dot_part_of(bytes, i),
                                columns - i % 2 * SL_DOT_LANES);
        }
}
