/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/gemm/byte_tile.h"

#include "cpu/base/isa.h"
#include "cpu/base/operator.h"

#include <immintrin.h>
#include <string.h>

#define AVX2   __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline))

#define VECTORS 2 /* of 8 sums in a panel */

int64_t sl_byte_panel_bytes(const struct sl_byte_depth *d)
{
        return d->scanlines * d->taps * (d->channels ? 1 : (d->piece + 1) / 2 * 2) * SL_BYTE_PANEL;
}

#define DEFINE_WIDEN(name, type)                                                                                                   \
        SL_CPU_CLONES static void name(int64_t n, int16_t *restrict to, const type *restrict from, int16_t zero)                   \
        {                                                                                                                          \
                for (int64_t i = 0; i < n; i++)                                                                                    \
                        to[i] = (int16_t)(from[i] - zero);                                                                         \
        }

DEFINE_WIDEN(widen_u8, uint8_t)
DEFINE_WIDEN(widen_i8, int8_t)

void sl_byte_widen(int64_t n, int16_t *to, const void *from, uint32_t dtype, int32_t zero)
{
        if (dtype == SL_DTYPE_I8)
                widen_i8(n, to, from, (int16_t)zero);
        else
                widen_u8(n, to, from, (int16_t)zero);
}

AVX2 INLINE __m256i broadcast_pair(const int16_t *from)
{
        int32_t pair;

        memcpy(&pair, from, sizeof(pair));
        return _mm256_set1_epi32(pair);
}

/* One piece of @n rows; @a is where it begins in each. */
AVX2 INLINE const int8_t *add_pairs(int64_t pairs, const int16_t *const *a, const int n, const int8_t *w, __m256i (*sums)[VECTORS])
{
        for (int64_t k = 0; k < pairs; k++, w += 2 * SL_BYTE_PANEL) {
                __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)w));
                __m256i high = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)w + 1));

#pragma GCC unroll 6
                for (int i = 0; i < n; i++) {
                        __m256i x = broadcast_pair(a[i] + 2 * k);

                        sums[i][0] = _mm256_add_epi32(sums[i][0], _mm256_madd_epi16(x, low));
                        sums[i][1] = _mm256_add_epi32(sums[i][1], _mm256_madd_epi16(x, high));
                }
        }
        return w;
}

/* One tap of @n rows: an element is a pair with a zero, so that the sign of the weight's upper half does not count. */
AVX2 INLINE const int8_t *add_channels(const int16_t *const *a, const int n, const int8_t *w, __m256i (*sums)[VECTORS])
{
        __m256i low = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)w));
        __m256i high = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(w + 8)));

#pragma GCC unroll 6
        for (int i = 0; i < n; i++) {
                __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)a[i]));
                __m256i y = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)a[i] + 1));

                sums[i][0] = _mm256_add_epi32(sums[i][0], _mm256_madd_epi16(x, low));
                sums[i][1] = _mm256_add_epi32(sums[i][1], _mm256_madd_epi16(y, high));
        }
        return w + SL_BYTE_PANEL;
}

AVX2 INLINE void sum_rows(const struct sl_byte_depth *d, const int16_t *const *rows, const int n, int64_t offset, const int8_t *w,
        int32_t *ret_sums, int64_t sums_stride, const bool channels)
{
        __m256i sums[SL_BYTE_ROWS][VECTORS];
        const int16_t *a[SL_BYTE_ROWS];

#pragma GCC unroll 6
        for (int i = 0; i < n; i++)
                sums[i][0] = sums[i][1] = _mm256_setzero_si256();
        for (int64_t scanline = 0; scanline < d->scanlines; scanline++)
                for (int64_t tap = 0; tap < d->taps; tap++) {
#pragma GCC unroll 6
                        for (int i = 0; i < n; i++)
                                a[i] = rows[i] + offset + scanline * d->scanline_stride + tap * d->tap_stride;
                        w = channels ? add_channels(a, n, w, sums) : add_pairs((d->piece + 1) / 2, a, n, w, sums);
                }
#pragma GCC unroll 6
        for (int i = 0; i < n; i++)
                for (int v = 0; v < VECTORS; v++)
                        _mm256_storeu_si256((__m256i *)(ret_sums + i * sums_stride) + v, sums[i][v]);
}

#define DEFINE_TILE(n)                                                                                                             \
        AVX2 static void tile_##n(const struct sl_byte_depth *d, const int16_t *const *rows, int64_t offset, const int8_t *panel,  \
                int32_t *sums, int64_t sums_stride)                                                                                \
        {                                                                                                                          \
                if (d->channels)                                                                                                   \
                        sum_rows(d, rows, n, offset, panel, sums, sums_stride, true);                                              \
                else                                                                                                               \
                        sum_rows(d, rows, n, offset, panel, sums, sums_stride, false);                                             \
        }

DEFINE_TILE(1)
DEFINE_TILE(2)
DEFINE_TILE(3)
DEFINE_TILE(4)
DEFINE_TILE(5)
DEFINE_TILE(6)

/* One row, for processors without AVX2. */
static void sum_row(const struct sl_byte_depth *d, const int16_t *row, const int8_t *w, int32_t *sums)
{
        memset(sums, 0, SL_BYTE_PANEL * sizeof(*sums));
        for (int64_t scanline = 0; scanline < d->scanlines; scanline++)
                for (int64_t tap = 0; tap < d->taps; tap++) {
                        const int16_t *a = row + scanline * d->scanline_stride + tap * d->tap_stride;

                        for (int64_t i = 0; d->channels && i < SL_BYTE_PANEL; i++)
                                sums[i] += a[i] * w[i];
                        w += d->channels ? SL_BYTE_PANEL : 0;
                        for (int64_t k = 0; !d->channels && k < d->piece; k += 2, w += 2 * SL_BYTE_PANEL)
                                for (int64_t i = 0; i < SL_BYTE_PANEL; i++)
                                        sums[i] += a[k] * w[2 * i] + a[k + 1] * w[2 * i + 1];
                }
}

void sl_byte_tile(const struct sl_byte_depth *depth, const int16_t *const *rows, int64_t n_rows, int64_t offset,
        const int8_t *panel, int32_t *sums, int64_t sums_stride)
{
        static void (*const tiles[])(const struct sl_byte_depth *, const int16_t *const *, int64_t, const int8_t *, int32_t *,
                int64_t) = {tile_1, tile_2, tile_3, tile_4, tile_5, tile_6};

        if (sl_cpu_has_avx2()) {
                tiles[n_rows - 1](depth, rows, offset, panel, sums, sums_stride);
                return;
        }
        for (int64_t i = 0; i < n_rows; i++)
                sum_row(depth, rows[i] + offset, panel, sums + i * sums_stride);
}
