/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/conv/byte_depthwise_tile.h"

#include <immintrin.h>

#define INLINE  static inline __attribute__((always_inline))
#define VECTORS 4    /* of 16 places */
#define FAR     1e6f /* from any byte, in steps, and inside of what 32 bits hold */

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

INLINE __mmask64 lanes_of(const struct sl_depthwise_tile *t)
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

INLINE __m512i bytes_of(const struct sl_depthwise_tile *t, const __m512i steps[VECTORS])
{
        const __m512i zero = _mm512_set1_epi16(t->zero);
        __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(steps[0], steps[1]), zero);
        __m512i second = _mm512_adds_epi16(_mm512_packs_epi32(steps[2], steps[3]), zero);
        __m512i bytes = _mm512_packus_epi16(first, second);

        bytes = _mm512_max_epu8(_mm512_set1_epi8((char)t->low), _mm512_min_epu8(_mm512_set1_epi8((char)t->high), bytes));
        return _mm512_xor_si512(bytes, _mm512_set1_epi8((char)t->sign));
}

/* Sums as real numbers, or in steps of the result. */
INLINE void scale_sums(const struct sl_depthwise_tile *t, const int outputs, const __m512i *sums, __m512 *ret_values)
{
#pragma GCC unroll 4
        for (int q = 0; q < VECTORS; q++) {
                __m512 factor = _mm512_loadu_ps(t->factors + 16 * q), rest = _mm512_loadu_ps(t->rests + 16 * q);

#pragma GCC unroll 4
                for (int j = 0; j < outputs; j++)
                        ret_values[j * VECTORS + q] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[j * VECTORS + q]), factor, rest);
        }
}

INLINE void store_bytes(const struct sl_depthwise_tile *t, const int output, const __m512 *values)
{
        __m512i steps[VECTORS];

        /* What is less than 32 bits hold, and NaN, becomes the least that they do. */
#pragma GCC unroll 4
        for (int q = 0; q < VECTORS; q++)
                steps[q] = _mm512_cvtps_epi32(_mm512_min_ps(_mm512_set1_ps(FAR), values[q]));
        _mm512_mask_storeu_epi8(t->y + output * t->y_stride, lanes_of(t), bytes_of(t, steps));
}

/* Quarters of four vectors change places; a value that is none stays one. */
INLINE void store_reals(const struct sl_depthwise_tile *t, const int output, const __m512 *v)
{
        const __m512 least = _mm512_set1_ps(t->least), most = _mm512_set1_ps(t->most);
        __m512 a = _mm512_shuffle_f32x4(v[0], v[1], 0x44), b = _mm512_shuffle_f32x4(v[2], v[3], 0x44);
        __m512 c = _mm512_shuffle_f32x4(v[0], v[1], 0xee), d = _mm512_shuffle_f32x4(v[2], v[3], 0xee);
        __m512 natural[VECTORS] = {_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd),
                _mm512_shuffle_f32x4(c, d, 0x88), _mm512_shuffle_f32x4(c, d, 0xdd)};
        float *y = t->reals + output * t->y_stride;

#pragma GCC unroll 4
        for (int i = 0; i < VECTORS; i++)
                _mm512_mask_storeu_ps(
                        y + 16 * i, (__mmask16)(lanes_of(t) >> 16 * i), _mm512_min_ps(most, _mm512_max_ps(least, natural[i])));
}

/* Has the window of output @j a tap in block @b? */
#define MEETS(j, b) ((j)*stride < 4 * (b) + 4 && (j)*stride + kernel > 4 * (b))

INLINE void run_group(const struct sl_depthwise_tile *t, const int outputs, const int blocks, const int kernel, const int stride)
{
        const int span = (outputs - 1) * stride + kernel;
        const __mmask64 lanes = lanes_of(t);
        const int8_t *w = t->weights + SL_DEPTHWISE_CHANNELS * sizeof(int32_t);
        __m512i sums[SL_DEPTHWISE_GROUP * VECTORS];
        __m512 values[SL_DEPTHWISE_GROUP * VECTORS];

#pragma GCC unroll 16
        for (int i = 0; i < outputs * VECTORS; i++)
                sums[i] = _mm512_loadu_si512(t->starts + i % VECTORS * 16);
        for (int64_t row = 0; row < t->kernel[0]; row++)
#pragma GCC unroll 2
                for (int b = 0; b < blocks; b++, w += outputs * VECTORS * 64) {
                        const uint8_t *from = t->pixels + row * t->scanline_stride;
                        __m512i pixels[4], quads[VECTORS];

#pragma GCC unroll 4
                        for (int p = 0; p < 4; p++)
                                pixels[p] = _mm512_maskz_loadu_epi8(
                                        lanes, from + (4 * b + p < span ? 4 * b + p : span - 1) * t->pixel_stride);
                        interleave(pixels, quads);
#pragma GCC unroll 4
                        for (int j = 0; j < outputs; j++)
#pragma GCC unroll 4
                                for (int q = 0; q < VECTORS; q++)
                                        if (MEETS(j, b))
                                                sums[j * VECTORS + q] = _mm512_dpbusd_epi32(sums[j * VECTORS + q], quads[q],
                                                        _mm512_loadu_si512(w + (j * VECTORS + q) * 64));
                }
        scale_sums(t, outputs, sums, values);
#pragma GCC unroll 4
        for (int j = 0; j < outputs; j++) {
                if (j < t->outputs && t->reals)
                        store_reals(t, j, values + j * VECTORS);
                else if (j < t->outputs)
                        store_bytes(t, j, values + j * VECTORS);
        }
}

void sl_depthwise_tile(const struct sl_depthwise_tile *t)
{
        if (t->kernel[1] == 3 && t->stride == 1)
                run_group(t, 2, 1, 3, 1);
        else if (t->kernel[1] == 3)
                run_group(t, 3, 2, 3, 2);
        else if (t->stride == 1)
                run_group(t, 4, 2, 5, 1);
        else
                run_group(t, 2, 2, 5, 2);
}

/* NaN becomes the least. */
void sl_depthwise_round(const struct sl_depthwise_tile *t, float factor, const float *reals, uint8_t *y)
{
        const __m512 far = _mm512_set1_ps(FAR), least = _mm512_set1_ps(-FAR);
        __m512i steps[VECTORS];

        /* Each lane of a vector of places takes four channels from where they are. */
        for (int q = 0; q < VECTORS; q++) {
                const __m512i from = _mm512_add_epi32(
                        _mm512_set1_epi32(4 * q), _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 32, 33, 34, 35, 48, 49, 50, 51));
                __m512 value = _mm512_mul_ps(_mm512_i32gather_ps(from, reals, sizeof(float)), _mm512_set1_ps(factor));

                steps[q] = _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(value, least), far));
        }
        _mm512_mask_storeu_epi8(y, lanes_of(t), bytes_of(t, steps));
}
