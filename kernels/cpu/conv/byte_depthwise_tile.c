/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/conv/byte_depthwise_tile.h"

#include "cpu/gemm/dot_store.h"

#include <immintrin.h>

#define INLINE  static inline __attribute__((always_inline))
#define VECTORS 4    /* of 16 places */
#define GROUP   4    /* outputs, at most */

struct sl_depthwise_group sl_depthwise_group(int64_t kernel, int64_t stride)
{
        if (kernel == 3 && stride == 1)
                return (struct sl_depthwise_group){2, 1};
        if (kernel == 3 && stride == 2)
                return (struct sl_depthwise_group){3, 2};
        if (kernel == 5 && stride == 1)
                return (struct sl_depthwise_group){4, 2};
        if (kernel == 5 && stride == 2)
                return (struct sl_depthwise_group){2, 2};
        return (struct sl_depthwise_group){0, 0};
}

INLINE __mmask64 lanes_of(const struct sl_depthwise_line *t)
{
        return t->channels < SL_DEPTHWISE_CHANNELS ? (1ull << t->channels) - 1 : ~0ull;
}

/* Lane by lane the bytes of four pixels. */
INLINE void interleave(const __m512i pixels[4], __m512i ret_quads[VECTORS])
{
        __m512i low = _mm512_unpacklo_epi8(pixels[0], pixels[1]), high = _mm512_unpackhi_epi8(pixels[0], pixels[1]);
        __m512i low_2 = _mm512_unpacklo_epi8(pixels[2], pixels[3]), high_2 = _mm512_unpackhi_epi8(pixels[2], pixels[3]);

        ret_quads[0] = _mm512_unpacklo_epi16(low, low_2);
        ret_quads[1] = _mm512_unpackhi_epi16(low, low_2);
        ret_quads[2] = _mm512_unpacklo_epi16(high, high_2);
        ret_quads[3] = _mm512_unpackhi_epi16(high, high_2);
}

/* What a line is computed by: constants of the code. */
struct shape {
        int outputs, blocks, kernel, stride; /* of a group */
        bool half;                           /* two groups side by side */
        bool whole;                          /* all channels of the block, or of half of it */
        bool fits;                           /* bytes of what fits */
};

INLINE __m512i bytes_of(const struct sl_depthwise_line *t, const __m512i steps[VECTORS])
{
        const __m512i zero = _mm512_set1_epi16(t->zero);
        __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(steps[0], steps[1]), zero);
        __m512i second = _mm512_adds_epi16(_mm512_packs_epi32(steps[2], steps[3]), zero);
        __m512i bytes = _mm512_packus_epi16(first, second);

        bytes = _mm512_max_epu8(_mm512_set1_epi8((char)t->low), _mm512_min_epu8(_mm512_set1_epi8((char)t->high), bytes));
        return _mm512_xor_si512(bytes, _mm512_set1_epi8((char)t->sign));
}

INLINE __m512 scale_sum(const struct sl_depthwise_line *t, const bool fits, const int q, __m512i sum)
{
        __m512 factor = _mm512_loadu_ps(t->factors + 16 * q);

        return fits ? _mm512_mul_ps(_mm512_cvtepi32_ps(sum), factor)
                    : _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), factor, _mm512_loadu_ps(t->rests + 16 * q));
}

INLINE __m512i round_sums(const struct sl_depthwise_line *t, const bool fits, const __m512i *sums)
{
        __m512i steps[VECTORS];

        /* What is less than 32 bits hold, and NaN, becomes the least that they do. */
#pragma GCC unroll 4
        for (int q = 0; q < VECTORS; q++) {
                __m512 value = scale_sum(t, fits, q, sums[q]);

                if (!fits && t->hard_swish)
                        steps[q] = sl_dot_round_reals(sl_hard_swish_16(value), t->unit);
                else
                        steps[q] = _mm512_cvtps_epi32(fits ? value : _mm512_min_ps(_mm512_set1_ps(SL_DOT_FAR), value));
        }
        return bytes_of(t, steps);
}

/* @more: of the second group, if there is one. */
INLINE void store_bytes(const struct sl_depthwise_line *t, const struct shape s, const __m512i *sums, uint8_t *y, uint8_t *more)
{
        __m512i bytes = round_sums(t, s.fits, sums);

        if (!s.half && s.whole) {
                _mm512_storeu_si512(y, bytes);
        } else if (!s.half) {
                _mm512_mask_storeu_epi8(y, lanes_of(t), bytes);
        } else if (s.whole) {
                _mm256_storeu_si256((__m256i *)y, _mm512_castsi512_si256(bytes));
                if (more)
                        _mm256_storeu_si256((__m256i *)more, _mm512_extracti64x4_epi64(bytes, 1));
        } else {
                _mm256_mask_storeu_epi8(y, (__mmask32)lanes_of(t), _mm512_castsi512_si256(bytes));
                if (more)
                        _mm256_mask_storeu_epi8(more, (__mmask32)lanes_of(t), _mm512_extracti64x4_epi64(bytes, 1));
        }
}

/* Quarters of four vectors change places; a value that is none stays one. */
INLINE void store_reals(const struct sl_depthwise_line *t, const struct shape s, const __m512i *sums, float *y, float *more)
{
        const __m512 least = _mm512_set1_ps(t->least), most = _mm512_set1_ps(t->most);
        __m512 v[VECTORS];

#pragma GCC unroll 4
        for (int q = 0; q < VECTORS; q++) {
                v[q] = scale_sum(t, false, q, sums[q]);
                v[q] = t->hard_swish ? sl_hard_swish_16(v[q]) : v[q];
        }
        __m512 a = _mm512_shuffle_f32x4(v[0], v[1], 0x44), b = _mm512_shuffle_f32x4(v[2], v[3], 0x44);
        __m512 c = _mm512_shuffle_f32x4(v[0], v[1], 0xee), d = _mm512_shuffle_f32x4(v[2], v[3], 0xee);
        __m512 natural[VECTORS] = {_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd),
                _mm512_shuffle_f32x4(c, d, 0x88), _mm512_shuffle_f32x4(c, d, 0xdd)};

#pragma GCC unroll 4
        for (int i = 0; i < VECTORS; i++) {
                int at = s.half ? i % 2 * 16 : i * 16;
                float *to = s.half && i / 2 ? more : y;

                if (to)
                        _mm512_mask_storeu_ps(
                                to + at, (__mmask16)(lanes_of(t) >> at), _mm512_min_ps(most, _mm512_max_ps(least, natural[i])));
        }
}

/* Has the window of output @j a tap in block @b? */
#define MEETS(s, j, b) ((j) * (s).stride < 4 * (b) + 4 && (j) * (s).stride + (s).kernel > 4 * (b))

INLINE __m512i load_pixel(const struct shape s, __mmask64 lanes, const uint8_t *pixel, const uint8_t *second)
{
        if (!s.half)
                return s.whole ? _mm512_loadu_si512(pixel) : _mm512_maskz_loadu_epi8(lanes, pixel);
        if (s.whole)
                return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)pixel)),
                        _mm256_loadu_si256((const __m256i *)second), 1);
        return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_maskz_loadu_epi8((__mmask32)lanes, pixel)),
                _mm256_maskz_loadu_epi8((__mmask32)lanes, second), 1);
}

/* The sums of one group, or of two, the first pixel of which is @left. @inside: so are all others. */
INLINE void sum_group(const struct sl_depthwise_line *t, const struct shape s, const bool inside, int64_t left,
        const uint8_t *beside, __m512i *sums)
{
        const int span = (s.outputs - 1) * s.stride + s.kernel, second = s.outputs * s.stride;
        const __mmask64 lanes = lanes_of(t);
        const int8_t *w = t->weights + SL_DEPTHWISE_CHANNELS * sizeof(int32_t);

#pragma GCC unroll 16
        for (int i = 0; i < s.outputs * VECTORS; i++)
                sums[i] = _mm512_loadu_si512(t->starts + i % VECTORS * 16);
        for (int64_t row = 0; row < t->kernel[0]; row++) {
                int64_t step = t->scanlines[row] ? t->pixel_stride : 0;
                const uint8_t *from = t->scanlines[row] ? t->scanlines[row] + left * step : beside;

#pragma GCC unroll 2
                for (int b = 0; b < s.blocks; b++, w += s.outputs * VECTORS * 64) {
                        __m512i pixels[4], quads[VECTORS];

#pragma GCC unroll 4
                        for (int p = 0; p < 4; p++) {
                                const int at = 4 * b + p < span ? 4 * b + p : span - 1;
                                bool there = inside || (left + at >= 0 && left + at < t->width);
                                bool follows = inside || (left + second + at >= 0 && left + second + at < t->width);

                                pixels[p] = load_pixel(s, lanes, there ? from + at * step : beside,
                                        follows ? from + (second + at) * step : beside);
                        }
                        interleave(pixels, quads);
#pragma GCC unroll 4
                        for (int j = 0; j < s.outputs; j++)
#pragma GCC unroll 4
                                for (int q = 0; q < VECTORS; q++)
                                        if (MEETS(s, j, b))
                                                sums[j * VECTORS + q] = _mm512_dpbusd_epi32(sums[j * VECTORS + q], quads[q],
                                                        _mm512_loadu_si512(w + (j * VECTORS + q) * 64));
                }
        }
}

/* What is stored is nothing of the line's description. */
INLINE void run_groups(const struct sl_depthwise_line *line, const struct shape s)
{
        const struct sl_depthwise_line own = *line, *t = &own;
        const int width = s.half ? 2 * s.outputs : s.outputs, span = (width - 1) * s.stride + s.kernel;
        __m512i sums[GROUP * VECTORS];
        uint8_t beside[SL_DEPTHWISE_CHANNELS];

        _mm512_storeu_si512(beside, _mm512_set1_epi8((char)t->x_zero));
        for (int64_t x = 0; x < t->outputs; x += width) {
                int64_t left = x * s.stride - t->pad;

                if (left >= 0 && left + span <= t->width)
                        sum_group(t, s, true, left, beside, sums);
                else
                        sum_group(t, s, false, left, beside, sums);
#pragma GCC unroll 4
                for (int j = 0; j < s.outputs; j++) {
                        int64_t at = (x + j) * t->y_stride, more = at + s.outputs * t->y_stride;
                        bool follows = s.half && x + s.outputs + j < t->outputs;

                        if (x + j >= t->outputs)
                                break;
                        if (!s.fits && t->reals)
                                store_reals(t, s, sums + j * VECTORS, t->reals + at, follows ? t->reals + more : NULL);
                        else
                                store_bytes(t, s, sums + j * VECTORS, t->y + at, follows ? t->y + more : NULL);
                }
        }
}

INLINE void run_line(const struct sl_depthwise_line *t, const int outputs, const int blocks, const int kernel, const int stride)
{
        const bool half = t->channels <= SL_DEPTHWISE_HALF, fits = t->fits && !t->reals;
        const bool whole = t->channels == SL_DEPTHWISE_CHANNELS || t->channels == SL_DEPTHWISE_HALF;

        if (!half && whole && fits)
                run_groups(t, (struct shape){outputs, blocks, kernel, stride, false, true, true});
        else if (!half && fits)
                run_groups(t, (struct shape){outputs, blocks, kernel, stride, false, false, true});
        else if (!half)
                run_groups(t, (struct shape){outputs, blocks, kernel, stride, false, false, false});
        else if (whole && fits)
                run_groups(t, (struct shape){outputs, blocks, kernel, stride, true, true, true});
        else if (fits)
                run_groups(t, (struct shape){outputs, blocks, kernel, stride, true, false, true});
        else
                run_groups(t, (struct shape){outputs, blocks, kernel, stride, true, false, false});
}

void sl_depthwise_line(const struct sl_depthwise_line *t)
{
        if (t->kernel[1] == 3 && t->stride == 1)
                run_line(t, 2, 1, 3, 1);
        else if (t->kernel[1] == 3)
                run_line(t, 3, 2, 3, 2);
        else if (t->stride == 1)
                run_line(t, 4, 2, 5, 1);
        else
                run_line(t, 2, 2, 5, 2);
}

void sl_depthwise_round(const struct sl_depthwise_line *line, float factor, uint8_t *y, int64_t y_stride)
{
        const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        const struct sl_depthwise_line own = *line, *t = &own;
        const float *reals = t->reals;

        for (int64_t x = 0; x < t->outputs; x++, reals += SL_DEPTHWISE_CHANNELS, y += y_stride) {
                __m512i steps[VECTORS];

#pragma GCC unroll 4
                for (int q = 0; q < VECTORS; q++)
                        steps[q] = sl_dot_round_reals(_mm512_loadu_ps(reals + 16 * q), factor);
                _mm512_mask_storeu_epi8(y, lanes_of(t), _mm512_permutexvar_epi32(order, bytes_of(t, steps)));
        }
}
