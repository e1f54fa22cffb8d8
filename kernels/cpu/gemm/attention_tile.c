/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block of rows times a panel of two vectors of columns is summed in registers; keys and values lie packed for that,
 * [panel][depth] [column], the last panel one vector wide when that suffices. What is done to a sum before it is stored comes with
 * it: scores are scaled, masked and looked over for the largest; the sums of values are divided by the sum of their weights, so
 * that the weights need no pass of their own.
 *
 * Scores are in powers of 2 (scale and mask are divided by ln 2), and those behind the last key are -infinity.
 */
#include "cpu/gemm/attention.h"

#include "cpu/base/square.h"
#include "cpu/base/vector.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define LANES      SL_VECTOR_FLOATS
#define PANEL      (2 * LANES)
#define BLOCK_ROWS (LANES == 16 ? SL_ATTENTION_BLOCK : 6) /* as there are registers for */
#define UNROLLED   4
#define SUMS_MAX   (2 * BLOCK_ROWS)
#define LOG2_E     0x1.715476p+0f

#define INLINE  static inline __attribute__((always_inline))
#define HIDE(p) __asm__("" : "+r"(p))

/* A square of rows of @depth floats becomes @depth rows, @step floats apart. Rows from @rows on are zero. */
static void transpose(const float *in, int64_t stride, int64_t rows, int64_t depth, float *out, int64_t step)
{
        sl_lanes mask = sl_lanes_first(depth);
        sl_vector square[LANES];

#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
                square[i] = i < rows ? sl_vector_load_lanes(mask, in + i * stride) : sl_vector_zero();
        sl_square_transpose(square);
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
                if (i < depth)
                        sl_vector_store(out + i * step, square[i]);
}

static int64_t panel_width(int64_t left)
{
        return left > LANES ? PANEL : LANES;
}

/* The keys, transposed. */
static void pack_keys(const struct sl_cpu_attention *s, const float *keys, float *packed)
{
        int64_t stride = s->strides[SL_ATTENTION_KEYS];

        for (int64_t first = 0; first < s->a.keys; first += PANEL) {
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
        for (int64_t first = 0; first < s->a.width; first += PANEL) {
                int64_t left = s->a.width - first, width = panel_width(left);

                for (int64_t key = 0; key < s->a.keys; key++)
                        for (int64_t column = 0; column < width; column += LANES, packed += LANES)
                                sl_vector_store(packed, sl_vector_load_lanes(sl_lanes_first(left > column ? left - column : 0),
                                                                values + key * s->strides[SL_ATTENTION_VALUES] + first + column));
        }
}

/* A block of rows times a panel of @depth. */
struct block {
        const float *a, *panel;
        float *c;
        int64_t depth, a_bytes, c_stride;
        const float *factors; /* of the rows, or NULL: what follows holds instead */
        sl_lanes last;        /* of the last vector of columns */
        float scale;
        sl_vector shifts[2]; /* in front of the scores, alike in all rows */
        sl_vector *largest;  /* of each row */
};

INLINE const float *at_row(const float *const bases[5], int64_t row_bytes, int row)
{
        return (const float *)((const char *)bases[row / 3] + row % 3 * row_bytes);
}

INLINE void add_step(
        int n_rows, int n_vectors, sl_vector *sums, const float *const bases[5], int64_t row_bytes, const float *panel, int step)
{
        sl_vector factors[2];

#pragma GCC unroll 2
        for (int v = 0; v < n_vectors; v++)
                factors[v] = sl_vector_load(panel + (step * n_vectors + v) * LANES);
#pragma GCC unroll 14
        for (int row = 0; row < n_rows; row++) {
                sl_vector a = sl_vector_set(at_row(bases, row_bytes, row)[step]);

#pragma GCC unroll 2
                for (int v = 0; v < n_vectors; v++)
                        sums[row * n_vectors + v] = sl_vector_fma(a, factors[v], sums[row * n_vectors + v]);
        }
}

/* Three rows share a pointer, hidden from the compiler, so that there are registers for all of them. */
INLINE const float *add_steps(
        int n_rows, int n_vectors, sl_vector *sums, const float *bases[5], int64_t row_bytes, const float *panel, int steps)
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

INLINE void multiply(const struct block *k, const int n_rows, const int n_vectors, sl_vector *ret_sums)
{
        const float *bases[5], *panel = k->panel;
        int64_t depth = k->depth;

#pragma GCC unroll 5
        for (int i = 0; i < 5; i++)
                bases[i] = (const float *)((const char *)k->a + (i * 3 < n_rows ? i * 3 * k->a_bytes : 0));
#pragma GCC unroll 28
        for (int i = 0; i < n_rows * n_vectors; i++) {
                ret_sums[i] = sl_vector_zero();
                __asm__("" : "+v"(ret_sums[i]));
        }
        for (; depth >= UNROLLED; depth -= UNROLLED)
                panel = add_steps(n_rows, n_vectors, ret_sums, bases, k->a_bytes, panel, UNROLLED);
        for (; depth > 0; depth--)
                panel = add_steps(n_rows, n_vectors, ret_sums, bases, k->a_bytes, panel, 1);
}

/* In powers of 2. What is finite stays finite: a row of which everything is masked away has equal weights, not NaNs. */
INLINE sl_vector mask_of(const float *mask, int64_t step, sl_lanes lanes)
{
        sl_vector x = step ? sl_vector_load_lanes(lanes, mask) : sl_vector_where(lanes, sl_vector_set(*mask), sl_vector_zero()),
                  power = sl_vector_mul(x, sl_vector_set(LOG2_E));
        sl_lanes infinite = sl_vector_equal(sl_vector_abs(x), sl_vector_set(INFINITY));

        return sl_vector_where(infinite, x, sl_vector_clip(power, sl_vector_set(-FLT_MAX), sl_vector_set(FLT_MAX)));
}

/* scale * sum + shift, and the largest of each row so far. */
INLINE void finish_scores(const struct block *k, const int n_rows, const int n_vectors, const sl_vector *sums)
{
        const sl_vector scale = sl_vector_set(k->scale);
        sl_vector shifts[2] = {k->shifts[0], k->shifts[1]};

#pragma GCC unroll 14
        for (int row = 0; row < n_rows; row++) {
                sl_vector largest = k->largest[row];

#pragma GCC unroll 2
                for (int v = 0; v < n_vectors; v++) {
                        sl_vector score = sl_vector_fma(sums[row * n_vectors + v], scale, shifts[v]);

                        sl_vector_store(k->c + row * k->c_stride + v * LANES, score);
                        largest = sl_vector_max(largest, score);
                }
                k->largest[row] = largest;
        }
}

INLINE void finish_values(const struct block *k, const int n_rows, const int n_vectors, const sl_vector *sums)
{
#pragma GCC unroll 14
        for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 2
                for (int v = 0; v < n_vectors; v++)
                        sl_vector_store_lanes(k->c + row * k->c_stride + v * LANES, v + 1 < n_vectors ? sl_lanes_all() : k->last,
                                sl_vector_mul(sums[row * n_vectors + v], sl_vector_set(k->factors[row])));
}

INLINE void run_block(const struct block *k, const int n_rows, const int n_vectors)
{
        sl_vector sums[SUMS_MAX];

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
#if SL_VECTOR_FLOATS == 16
#define ALL_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#else
#define ALL_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif

ALL_ROWS(BLOCK)

static block_function *const block_functions[][2] = {ALL_ROWS(ENTRY)};
static_assert(sizeof(block_functions) / sizeof(block_functions[0]) == BLOCK_ROWS + 1, "a function for each number of rows");

/* Scores of @n keys become weights, in place; returns the sums of the lanes. */
static sl_vector soften(int64_t n, float *scores, sl_vector top)
{
        sl_vector sum = sl_vector_zero();

        for (int64_t i = 0; i < n; i += LANES) {
                sl_vector e = sl_vector_power(sl_vector_sub(sl_vector_load(scores + i), top));

                sl_vector_store(scores + i, e);
                sum = sl_vector_add(sum, e);
        }
        return sum;
}

/* What makes the weights of each row add up to 1 goes to @ret_factors. */
static void soften_rows(const struct sl_cpu_attention *s, int64_t rows, float *scores, const sl_vector *largest, float *ret_factors)
{
        sl_vector sums[LANES];
        float tops[LANES];

        sl_vector_store(tops, sl_square_largest(largest));
        for (int64_t i = 0; i < rows; i++)
                sums[i] = soften(s->a.keys, scores + i * s->stride, sl_vector_set(tops[i]));
        for (int64_t i = rows; i < LANES; i++)
                sums[i] = sl_vector_set(1.0f);
        sl_vector_store(ret_factors, sl_vector_div(sl_vector_set(1.0f), sl_square_sum(sums)));
}

/* Before and behind the last key; and the mask, where all rows have the same one. */
static sl_vector shift_of(const struct sl_cpu_attention *s, const struct sl_cpu_head *head, int64_t key)
{
        sl_lanes lanes = sl_lanes_first(s->a.keys > key ? s->a.keys - key : 0);
        sl_vector shift = sl_vector_zero();

        if (head->mask && !s->mask_strides[2])
                shift = mask_of(head->mask + key * s->mask_strides[3], s->mask_strides[3], lanes);
        return sl_vector_where(lanes, shift, sl_vector_set(-INFINITY));
}

static void score_rows(
        const struct sl_cpu_attention *s, const struct sl_cpu_head *head, int64_t row, int64_t rows, sl_vector *largest)
{
        struct block k = {.a = head->queries + row * s->strides[SL_ATTENTION_QUERIES],
                .panel = head->scratch,
                .depth = s->a.depth,
                .a_bytes = s->strides[SL_ATTENTION_QUERIES] * (int64_t)sizeof(float),
                .c_stride = s->stride,
                .scale = s->scale * LOG2_E,
                .largest = largest};

        for (int64_t key = 0; key < s->a.keys; key += PANEL) {
                int64_t width = panel_width(s->a.keys - key);

                k.c = head->scratch + s->scores_offset + key;
                k.last = sl_lanes_first(s->a.keys - key - (width - LANES));
                k.shifts[0] = shift_of(s, head, key);
                k.shifts[1] = shift_of(s, head, key + LANES);
                block_functions[rows][width / LANES - 1](&k);
                k.panel += s->a.depth * width;
        }
}

/* The mask of a row; returns the largest of its scores. */
static sl_vector mask_row(const struct sl_cpu_attention *s, const float *mask, float *scores)
{
        sl_vector largest = sl_vector_set(-INFINITY);

        for (int64_t key = 0; key < s->a.keys; key += LANES) {
                sl_vector shift = mask_of(mask + key * s->mask_strides[3], s->mask_strides[3], sl_lanes_first(s->a.keys - key));
                sl_vector score = sl_vector_add(sl_vector_load(scores + key), shift);

                sl_vector_store(scores + key, score);
                largest = sl_vector_max(largest, score);
        }
        return largest;
}

/* Rows whose weights are not numbers weigh nothing. */
static void guard_rows(const struct sl_cpu_attention *s, int64_t rows, float *scores, float *factors)
{
        for (int64_t i = 0; i < rows; i++) {
                if (!isnan(factors[i]))
                        continue;
                memset(scores + i * s->stride, 0, (size_t)s->a.keys * sizeof(*scores));
                factors[i] = 0.0f;
        }
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

        for (int64_t column = 0; column < s->a.width; column += PANEL) {
                int64_t width = panel_width(s->a.width - column);

                k.c = head->output + row * c_stride + column;
                k.last = sl_lanes_first(s->a.width - column - (width - LANES));
                block_functions[rows][width / LANES - 1](&k);
                k.panel += s->a.keys * width;
        }
}

static void attend_rows(const struct sl_cpu_attention *s, const struct sl_cpu_head *head, int64_t row, int64_t rows)
{
        float *scores = head->scratch + s->scores_offset, factors[LANES];
        sl_vector largest[LANES];

        for (int i = 0; i < LANES; i++)
                largest[i] = sl_vector_set(-INFINITY);
        score_rows(s, head, row, rows, largest);
        if (head->mask && s->mask_strides[2])
                for (int64_t i = 0; i < rows; i++)
                        largest[i] = mask_row(s, head->mask + (row + i) * s->mask_strides[2], scores + i * s->stride);
        soften_rows(s, rows, scores, largest, factors);
        if (s->a.guard)
                guard_rows(s, rows, scores, factors);
        sum_values(s, head, row, rows, factors);
}

/* Blocks differ by one row at most. */
void SL_TILE(sl_cpu_attend)(const struct sl_cpu_attention *s, const struct sl_cpu_head *head)
{
        int64_t blocks = (s->a.rows + BLOCK_ROWS - 1) / BLOCK_ROWS, row = 0;

        pack_keys(s, head->keys, head->scratch);
        pack_values(s, head->values, head->scratch + s->values_offset);
        for (; blocks > 0; blocks--) {
                int64_t rows = (s->a.rows - row) / blocks;

                attend_rows(s, head, row, rows);
                row += rows;
        }
}
