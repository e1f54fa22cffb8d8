/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block of at most 14 rows times a panel of two vectors of columns is summed in registers (gemm.h has the packed form). What is
 * done to a sum before it is stored comes with it: scores are scaled, masked and looked over for the largest; the sums of values
 * are divided by the sum of their weights, so that the weights need no pass of their own.
 *
 * Scores are in powers of 2 (scale and mask are divided by ln 2), and those behind the last key are -infinity.
 */
#include "cpu/attention.h"

#include "cpu/gemm.h"
#include "cpu/vector.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#define LANES    SL_VECTOR_FLOATS
#define UNROLLED 4
#define SUMS_MAX (2 * SL_ATTENTION_BLOCK)
#define LOG2_E   0x1.715476p+0f

#define INLINE  static inline __attribute__((always_inline))
#define HIDE(p) __asm__("" : "+r"(p))

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

/* A block of rows times a panel of @depth. */
struct block {
        const float *a, *panel;
        float *c;
        int64_t depth, a_bytes, c_stride;
        const float *factors; /* of the rows, or NULL: what follows holds instead */
        __mmask16 last;       /* of the last vector of columns */
        float scale;
        __m512 shifts[2]; /* in front of the scores, alike in all rows */
        __m512 *largest;  /* of each row */
};

INLINE const float *at_row(const float *const bases[5], int64_t row_bytes, int row)
{
        return (const float *)((const char *)bases[row / 3] + row % 3 * row_bytes);
}

INLINE void add_step(
        int n_rows, int n_vectors, __m512 *sums, const float *const bases[5], int64_t row_bytes, const float *panel, int step)
{
        __m512 factors[2];

#pragma GCC unroll 2
        for (int v = 0; v < n_vectors; v++)
                factors[v] = _mm512_loadu_ps(panel + (step * n_vectors + v) * LANES);
#pragma GCC unroll 14
        for (int row = 0; row < n_rows; row++) {
                __m512 a = sl_vector_set(at_row(bases, row_bytes, row)[step]);

#pragma GCC unroll 2
                for (int v = 0; v < n_vectors; v++)
                        sums[row * n_vectors + v] = _mm512_fmadd_ps(a, factors[v], sums[row * n_vectors + v]);
        }
}

/* Three rows share a pointer, hidden from the compiler, so that there are registers for all of them. */
INLINE const float *add_steps(
        int n_rows, int n_vectors, __m512 *sums, const float *bases[5], int64_t row_bytes, const float *panel, int steps)
{
        HIDE(panel);
#pragma GCC unroll 5
        for (int i = 0; i * 3 < n_rows; i++)
                HIDE(bases[i]);
#pragma GCC unroll 4
        for (int step = 0; step < steps; step++)
                add_step(n_rows, n_vectors, sums, bases, row_bytes, panel, step);
#pragma GCC unroll 5
        for (int i = 0; i * 3 < n_rows; i++)
                bases[i] += steps;
        return panel + steps * n_vectors * LANES;
}

INLINE void multiply(const struct block *k, const int n_rows, const int n_vectors, __m512 *ret_sums)
{
        const float *bases[5], *panel = k->panel;
        int64_t depth = k->depth;

#pragma GCC unroll 5
        for (int i = 0; i < 5; i++)
                bases[i] = (const float *)((const char *)k->a + (i * 3 < n_rows ? i * 3 * k->a_bytes : 0));
#pragma GCC unroll 28
        for (int i = 0; i < n_rows * n_vectors; i++) {
                ret_sums[i] = _mm512_setzero_ps();
                __asm__("" : "+v"(ret_sums[i]));
        }
        for (; depth >= UNROLLED; depth -= UNROLLED)
                panel = add_steps(n_rows, n_vectors, ret_sums, bases, k->a_bytes, panel, UNROLLED);
        for (; depth > 0; depth--)
                panel = add_steps(n_rows, n_vectors, ret_sums, bases, k->a_bytes, panel, 1);
}

/* In powers of 2. What is finite stays finite: a row of which everything is masked away has equal weights, not NaNs. */
INLINE __m512 mask_of(const float *mask, int64_t step, __mmask16 lanes)
{
        __m512 x = step ? _mm512_maskz_loadu_ps(lanes, mask) : _mm512_maskz_mov_ps(lanes, sl_vector_set(*mask)),
               power = _mm512_mul_ps(x, sl_vector_set(LOG2_E));
        __mmask16 infinite = _mm512_cmp_ps_mask(_mm512_abs_ps(x), sl_vector_set(INFINITY), _CMP_EQ_OQ);

        return _mm512_mask_mov_ps(sl_vector_clip(power, sl_vector_set(-FLT_MAX), sl_vector_set(FLT_MAX)), infinite, x);
}

/* scale * sum + shift, and the largest of each row so far. */
INLINE void finish_scores(const struct block *k, const int n_rows, const int n_vectors, const __m512 *sums)
{
        const __m512 scale = sl_vector_set(k->scale);
        __m512 shifts[2] = {k->shifts[0], k->shifts[1]};

#pragma GCC unroll 14
        for (int row = 0; row < n_rows; row++) {
                __m512 largest = k->largest[row];

#pragma GCC unroll 2
                for (int v = 0; v < n_vectors; v++) {
                        __m512 score = _mm512_fmadd_ps(sums[row * n_vectors + v], scale, shifts[v]);

                        _mm512_storeu_ps(k->c + row * k->c_stride + v * LANES, score);
                        largest = _mm512_max_ps(largest, score);
                }
                k->largest[row] = largest;
        }
}

INLINE void finish_values(const struct block *k, const int n_rows, const int n_vectors, const __m512 *sums)
{
#pragma GCC unroll 14
        for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 2
                for (int v = 0; v < n_vectors; v++)
                        _mm512_mask_storeu_ps(k->c + row * k->c_stride + v * LANES, v + 1 < n_vectors ? (__mmask16)0xffff : k->last,
                                _mm512_mul_ps(sums[row * n_vectors + v], sl_vector_set(k->factors[row])));
}

INLINE void run_block(const struct block *k, const int n_rows, const int n_vectors)
{
        __m512 sums[SUMS_MAX];

        multiply(k, n_rows, n_vectors, sums);
        if (k->factors)
                finish_values(k, n_rows, n_vectors, sums);
        else
                finish_scores(k, n_rows, n_vectors, sums);
}

typedef void block_function(const struct block *block);

#define BLOCK(rows)                                                                                                                \
        static __attribute__((noinline)) void block_##rows##_1(const struct block *block)                                          \
        {                                                                                                                          \
                run_block(block, rows, 1);                                                                                         \
        }                                                                                                                          \
        static __attribute__((noinline)) void block_##rows##_2(const struct block *block)                                          \
        {                                                                                                                          \
                run_block(block, rows, 2);                                                                                         \
        }
#define ENTRY(rows) [rows] = {block_##rows##_1, block_##rows##_2},
#define ALL_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)

ALL_ROWS(BLOCK)

static block_function *const block_functions[][2] = {ALL_ROWS(ENTRY)};
static_assert(sizeof(block_functions) / sizeof(block_functions[0]) == SL_ATTENTION_BLOCK + 1, "a function for each number of rows");

/* The lanes of sixteen vectors joined, a lane for each: pairs of rows, then four, eight and all of them share a vector. */
#define DEFINE_JOIN(name, join)                                                                                                    \
        static __m512 name(const __m512 *rows)                                                                                     \
        {                                                                                                                          \
                __m512 a[8];                                                                                                       \
                                                                                                                                   \
                _Pragma("GCC unroll 8") for (int i = 0; i < 8; i++) a[i] =                                                         \
                        join(_mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]), _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]));  \
                _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) a[i] =                                                         \
                        join(_mm512_shuffle_ps(a[2 * i], a[2 * i + 1], 0x44), _mm512_shuffle_ps(a[2 * i], a[2 * i + 1], 0xee));    \
                _Pragma("GCC unroll 2") for (int i = 0; i < 2; i++) a[i] = join(                                                   \
                        _mm512_shuffle_f32x4(a[2 * i], a[2 * i + 1], 0x88), _mm512_shuffle_f32x4(a[2 * i], a[2 * i + 1], 0xdd));   \
                return join(_mm512_shuffle_f32x4(a[0], a[1], 0x88), _mm512_shuffle_f32x4(a[0], a[1], 0xdd));                       \
        }

DEFINE_JOIN(largest_of_each, _mm512_max_ps)
DEFINE_JOIN(sum_of_each, _mm512_add_ps)

/* Scores become weights, in place; returns the sums of the lanes. */
static __m512 soften(int64_t n, float *scores, __m512 top)
{
        __m512 sum = _mm512_setzero_ps();

        for (int64_t i = 0; i < n; i += LANES) {
                __m512 e = sl_vector_power(_mm512_sub_ps(_mm512_loadu_ps(scores + i), top));

                _mm512_storeu_ps(scores + i, e);
                sum = _mm512_add_ps(sum, e);
        }
        return sum;
}

/* What makes the weights of each row add up to 1 goes to @ret_factors. */
static void soften_rows(const struct sl_cpu_attention *s, int64_t rows, float *scores, const __m512 *largest, float *ret_factors)
{
        __m512 sums[LANES];
        float tops[LANES];

        _mm512_storeu_ps(tops, largest_of_each(largest));
        for (int64_t i = 0; i < rows; i++)
                sums[i] = soften(s->stride, scores + i * s->stride, sl_vector_set(tops[i]));
        for (int64_t i = rows; i < LANES; i++)
                sums[i] = sl_vector_set(1.0f);
        _mm512_storeu_ps(ret_factors, _mm512_div_ps(sl_vector_set(1.0f), sum_of_each(sums)));
}

/* Before and behind the last key; and the mask, where all rows have the same one. */
static __m512 shift_of(const struct sl_cpu_attention *s, const struct sl_cpu_head *head, int64_t key)
{
        __mmask16 lanes = s->a.keys > key ? sl_vector_mask(s->a.keys - key) : 0;
        __m512 shift = _mm512_setzero_ps();

        if (head->mask && !s->mask_strides[2])
                shift = mask_of(head->mask + key * s->mask_strides[3], s->mask_strides[3], lanes);
        return _mm512_mask_mov_ps(sl_vector_set(-INFINITY), lanes, shift);
}

static void score_rows(const struct sl_cpu_attention *s, const struct sl_cpu_head *head, int64_t row, int64_t rows, __m512 *largest)
{
        struct block k = {.a = head->queries + row * s->strides[SL_ATTENTION_QUERIES],
                .panel = head->scratch,
                .depth = s->a.depth,
                .a_bytes = s->strides[SL_ATTENTION_QUERIES] * (int64_t)sizeof(float),
                .c_stride = s->stride,
                .scale = s->scale * LOG2_E,
                .largest = largest};

        for (int64_t key = 0; key < s->a.keys; key += SL_GEMM_PANEL) {
                int64_t width = panel_width(s->a.keys - key);

                k.c = head->scratch + s->scores_offset + key;
                k.last = sl_vector_mask(s->a.keys - key - (width - LANES));
                k.shifts[0] = shift_of(s, head, key);
                k.shifts[1] = shift_of(s, head, key + LANES);
                block_functions[rows][width / LANES - 1](&k);
                k.panel += s->a.depth * width;
        }
}

/* The mask of a row; returns the largest of its scores. */
static __m512 mask_row(const struct sl_cpu_attention *s, const float *mask, float *scores)
{
        __m512 largest = sl_vector_set(-INFINITY);

        for (int64_t key = 0; key < s->a.keys; key += LANES) {
                __m512 shift = mask_of(mask + key * s->mask_strides[3], s->mask_strides[3], sl_vector_mask(s->a.keys - key));
                __m512 score = _mm512_add_ps(_mm512_loadu_ps(scores + key), shift);

                _mm512_storeu_ps(scores + key, score);
                largest = _mm512_max_ps(largest, score);
        }
        return largest;
}

static void sum_values(
        const struct sl_cpu_attention *s, const struct sl_cpu_head *head, int64_t row, int64_t rows, const float *factors)
{
        int64_t c_stride = s->a.heads * s->a.width;
        struct block k = {.a = head->scratch + s->scores_offset,
                .panel = head->scratch + s->values_offset,
                .depth = s->a.keys,
                .a_bytes = s->stride * (int64_t)sizeof(float),
                .c_stride = c_stride,
                .factors = factors};

        for (int64_t column = 0; column < s->a.width; column += SL_GEMM_PANEL) {
                int64_t width = panel_width(s->a.width - column);

                k.c = head->output + row * c_stride + column;
                k.last = sl_vector_mask(s->a.width - column - (width - LANES));
                block_functions[rows][width / LANES - 1](&k);
                k.panel += s->a.keys * width;
        }
}

static void attend_rows(const struct sl_cpu_attention *s, const struct sl_cpu_head *head, int64_t row, int64_t rows)
{
        float *scores = head->scratch + s->scores_offset, factors[LANES];
        __m512 largest[LANES];

        for (int i = 0; i < LANES; i++)
                largest[i] = sl_vector_set(-INFINITY);
        score_rows(s, head, row, rows, largest);
        if (head->mask && s->mask_strides[2])
                for (int64_t i = 0; i < rows; i++)
                        largest[i] = mask_row(s, head->mask + (row + i) * s->mask_strides[2], scores + i * s->stride);
        soften_rows(s, rows, scores, largest, factors);
        sum_values(s, head, row, rows, factors);
}

/* Blocks differ by one row at most. */
void sl_cpu_attend_512(const struct sl_cpu_attention *s, const struct sl_cpu_head *head)
{
        int64_t blocks = (s->a.rows + SL_ATTENTION_BLOCK - 1) / SL_ATTENTION_BLOCK, row = 0;

        pack_keys(s, head->keys, head->scratch);
        pack_values(s, head->values, head->scratch + s->values_offset);
        for (; blocks > 0; blocks--) {
                int64_t rows = (s->a.rows - row) / blocks;

                attend_rows(s, head, row, rows);
                row += rows;
        }
}
