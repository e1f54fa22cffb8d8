#include "cpu/attention.h"

#include "cpu/gemm.h"
#include "cpu/vector.h"

#include <math.h>

#define LANES SL_VECTOR_FLOATS

/* Sixteen rows of @depth (at most 16) floats become @depth rows of sixteen, @step floats apart. Rows from @rows on are zero. */
static void transpose(const float *in, int64_t stride, int64_t rows, int64_t depth, float *out, int64_t step)
{
        __mmask16 mask = sl_vector_mask(depth);
        __m512 a[16], b[16];

#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
                a[i] = i < rows ? _mm512_maskz_loadu_ps(mask, in + i * stride) : _mm512_setzero_ps();
                /* In four lanes of four: pairs, then squares of four by four, then the squares are moved to their places. */
#pragma GCC unroll 8
        for (int i = 0; i < 16; i += 2) {
                b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
                b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
        }
#pragma GCC unroll 4
        for (int i = 0; i < 16; i += 4) {
                a[i] = _mm512_shuffle_ps(b[i], b[i + 2], 0x44);
                a[i + 1] = _mm512_shuffle_ps(b[i], b[i + 2], 0xee);
                a[i + 2] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0x44);
                a[i + 3] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0xee);
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
                b[i] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0x88);
                b[i + 4] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0xdd);
                b[i + 8] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0x88);
                b[i + 12] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0xdd);
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
                a[i] = _mm512_shuffle_f32x4(b[i], b[i + 8], 0x88);
                a[i + 8] = _mm512_shuffle_f32x4(b[i], b[i + 8], 0xdd);
                a[i + 4] = _mm512_shuffle_f32x4(b[i + 4], b[i + 12], 0x88);
                a[i + 12] = _mm512_shuffle_f32x4(b[i + 4], b[i + 12], 0xdd);
        }
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
                if (i < depth)
                        _mm512_storeu_ps(out + i * step, a[i]);
}

static int64_t panel_width(int64_t left)
{
        return left > LANES ? SL_GEMM_PANEL : LANES;
}

/* The keys, transposed, in the packed form of gemm.h. */
static void pack_keys(const struct sl_cpu_attention *s, const float *keys, float *packed)
{
        int64_t stride = s->strides[SL_ATTENTION_KEYS];

        for (int64_t first = 0; first < s->a.keys; first += SL_GEMM_PANEL) {
                int64_t left = s->a.keys - first, width = panel_width(left);

                for (int64_t column = 0; column < width; column += LANES)
                        for (int64_t d = 0; d < s->a.depth; d += LANES)
                                transpose(keys + (first + column) * stride + d, stride, left - column,
                                        s->a.depth - d < LANES ? s->a.depth - d : LANES, packed + d * width + column, width);
                packed += s->a.depth * width;
        }
}

static void pack_values(const struct sl_cpu_attention *s, const float *values, float *packed)
{
        for (int64_t first = 0; first < s->a.width; first += SL_GEMM_PANEL) {
                int64_t left = s->a.width - first, width = panel_width(left);

                for (int64_t key = 0; key < s->a.keys; key++)
                        for (int64_t column = 0; column < width; column += LANES, packed += LANES)
                                _mm512_storeu_ps(packed, _mm512_maskz_loadu_ps(left > column ? sl_vector_mask(left - column) : 0,
                                                                 values + key * s->strides[SL_ATTENTION_VALUES] + first + column));
        }
}

/* scale * score + mask; returns the largest. */
static inline __attribute__((always_inline)) float mask_row(
        int64_t n, float *scores, float scale, const float *mask, int64_t mask_stride)
{
        __m512 largest = sl_vector_set(-INFINITY), factor = sl_vector_set(scale);
        __m512 shift = sl_vector_set(mask && !mask_stride ? *mask : 0.0f);

        for (int64_t i = 0; i < n; i += LANES) {
                __mmask16 lanes = sl_vector_mask(n - i);
                __m512 x;

                if (mask && mask_stride)
                        shift = _mm512_maskz_loadu_ps(lanes, mask + i);
                x = _mm512_fmadd_ps(_mm512_loadu_ps(scores + i), factor, shift);
                _mm512_storeu_ps(scores + i, x);
                largest = _mm512_mask_max_ps(largest, lanes, largest, x);
        }
        return _mm512_reduce_max_ps(largest);
}

/* Weights that add up to 1, in place; what lies behind the @n scores, to the next sixteen, is junk before and after. */
static void soften(int64_t n, float *scores, float largest)
{
        __m512 sum = _mm512_setzero_ps(), top = sl_vector_set(largest);

        for (int64_t i = 0; i < n; i += LANES) {
                __m512 e = sl_exp_16(_mm512_sub_ps(_mm512_loadu_ps(scores + i), top));

                _mm512_storeu_ps(scores + i, e);
                sum = _mm512_mask_add_ps(sum, sl_vector_mask(n - i), sum, e);
        }
        __m512 factor = sl_vector_set(1.0f / _mm512_reduce_add_ps(sum));

        for (int64_t i = 0; i < n; i += LANES)
                _mm512_storeu_ps(scores + i, _mm512_mul_ps(_mm512_loadu_ps(scores + i), factor));
}

static void attend_rows(const struct sl_cpu_attention *s, const struct sl_cpu_head *head, int64_t row, int64_t rows)
{
        float *scores = head->scratch + s->scores_offset;
        struct sl_gemm products = {.a = head->queries + row * s->strides[SL_ATTENTION_QUERIES],
                .b = head->scratch,
                .c = scores,
                .rows = rows,
                .depth = s->a.depth,
                .columns = s->a.keys,
                .a_stride = s->strides[SL_ATTENTION_QUERIES],
                .c_stride = s->stride};
        struct sl_gemm sums = {.a = scores,
                .b = head->scratch + s->values_offset,
                .c = head->output + row * s->a.heads * s->a.width,
                .rows = rows,
                .depth = s->a.keys,
                .columns = s->a.width,
                .a_stride = s->stride,
                .c_stride = s->a.heads * s->a.width};

        sl_gemm_run(&products);
        for (int64_t i = 0; i < rows; i++) {
                const float *mask = head->mask ? head->mask + (row + i) * s->mask_strides[2] : NULL;
                float largest = mask_row(s->a.keys, scores + i * s->stride, s->scale, mask, s->mask_strides[3]);

                soften(s->a.keys, scores + i * s->stride, largest);
        }
        sl_gemm_run(&sums);
}

void sl_cpu_attend_512(const struct sl_cpu_attention *s, const struct sl_cpu_head *head)
{
        pack_keys(s, head->keys, head->scratch);
        pack_values(s, head->values, head->scratch + s->values_offset);
        for (int64_t row = 0; row < s->a.rows; row += s->block_rows) {
                int64_t left = s->a.rows - row;

                attend_rows(s, head, row, left < s->block_rows ? left : s->block_rows);
        }
}
