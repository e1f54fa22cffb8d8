/*
 * The rows are cut into blocks of at most 14, the columns into panels; a block times a panel (or two, or four, when there are few
 * rows) is summed in registers. A panel stays in the first or second cache while the rows pass by it.
 */
#include "cpu/gemm.h"

#include "cpu/finish.h"
#include "cpu/vector.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define ROWS_MAX 14
#define SUMS_MAX 28
#define UNROLLED 4

/* Floats of one operand that may stay in the second-level cache: 512 KiB. */
#define RESIDENT_FLOATS (128 << 10)

#define HIDE(p) __asm__("" : "+r"(p))

struct block {
        const float *a, *b;
        float *c;
        const float *bias, *residual;
        int64_t depth, a_bytes, c_stride, residual_stride;
        int64_t b_bytes; /* from panel to panel */
        __mmask16 last;  /* of the last vector of columns */
        __m512 least, most;
};

#define INLINE static inline __attribute__((always_inline))

INLINE const float *at_row(const float *const bases[5], int64_t row_bytes, int row)
{
        return (const float *)((const char *)bases[row / 3] + row % 3 * row_bytes);
}

INLINE void add_step(int n_rows, int n_vectors, __m512 sums[SUMS_MAX], const float *const bases[5], int64_t row_bytes,
        const float *const b[4], int per_panel, int step)
{
        __m512 factors[8];

#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; v++)
                factors[v] = _mm512_loadu_ps(b[v / 2] + step * per_panel * SL_VECTOR_FLOATS + v % 2 * SL_VECTOR_FLOATS);
#pragma GCC unroll 14
        for (int row = 0; row < n_rows; row++) {
                __m512 a = _mm512_set1_ps(at_row(bases, row_bytes, row)[step]);

#pragma GCC unroll 8
                for (int v = 0; v < n_vectors; v++)
                        sums[row * n_vectors + v] = _mm512_fmadd_ps(a, factors[v], sums[row * n_vectors + v]);
        }
}

INLINE void run_block(const struct block *k, const int n_rows, const int n_vectors)
{
        const int per_panel = n_vectors == 1 ? 1 : 2, n_panels = (n_vectors + 1) / 2;
        const int64_t row_bytes = k->a_bytes;
        const float *bases[5], *b[4];
        __m512 sums[SUMS_MAX];
        int64_t depth = k->depth;

#pragma GCC unroll 5
        for (int i = 0; i < 5; i++)
                bases[i] = (const float *)((const char *)k->a + (i * 3 < n_rows ? i * 3 * row_bytes : 0));
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
                b[i] = (const float *)((const char *)k->b + (i < n_panels ? i * k->b_bytes : 0));
#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; v++) {
                __m512 start = _mm512_setzero_ps();

                if (k->bias)
                        start = _mm512_maskz_loadu_ps(
                                v + 1 < n_vectors ? (__mmask16)0xffff : k->last, k->bias + v * SL_VECTOR_FLOATS);
#pragma GCC unroll 14
                for (int row = 0; row < n_rows; row++)
                        sums[row * n_vectors + v] = start;
        }
        for (; depth >= UNROLLED; depth -= UNROLLED) {
#pragma GCC unroll 5
                for (int i = 0; i * 3 < n_rows; i++)
                        HIDE(bases[i]);
#pragma GCC unroll 4
                for (int i = 0; i < n_panels; i++)
                        HIDE(b[i]);
#pragma GCC unroll 4
                for (int step = 0; step < UNROLLED; step++)
                        add_step(n_rows, n_vectors, sums, bases, row_bytes, b, per_panel, step);
#pragma GCC unroll 5
                for (int i = 0; i < 5; i++)
                        bases[i] += UNROLLED;
#pragma GCC unroll 4
                for (int i = 0; i < 4; i++)
                        b[i] += UNROLLED * per_panel * SL_VECTOR_FLOATS;
        }
        for (; depth > 0; depth--) {
#pragma GCC unroll 5
                for (int i = 0; i * 3 < n_rows; i++)
                        HIDE(bases[i]);
                add_step(n_rows, n_vectors, sums, bases, row_bytes, b, per_panel, 0);
#pragma GCC unroll 5
                for (int i = 0; i < 5; i++)
                        bases[i]++;
#pragma GCC unroll 4
                for (int i = 0; i < 4; i++)
                        b[i] += per_panel * SL_VECTOR_FLOATS;
        }
#pragma GCC unroll 14
        for (int row = 0; row < n_rows; row++)
#pragma GCC unroll 8
                for (int v = 0; v < n_vectors; v++) {
                        __mmask16 mask = v + 1 < n_vectors ? (__mmask16)0xffff : k->last;
                        __m512 sum = sums[row * n_vectors + v];

                        if (k->residual)
                                sum = _mm512_add_ps(sum,
                                        _mm512_maskz_loadu_ps(mask, k->residual + row * k->residual_stride + v * SL_VECTOR_FLOATS));
                        _mm512_mask_storeu_ps(
                                k->c + row * k->c_stride + v * SL_VECTOR_FLOATS, mask, sl_vector_clip(sum, k->least, k->most));
                }
}

typedef void block_function(const struct block *block);

#define BLOCK(rows, vectors)                                                                                                       \
        static __attribute__((noinline)) void block_##rows##_##vectors(const struct block *block)                                  \
        {                                                                                                                          \
                run_block(block, rows, vectors);                                                                                   \
        }
#define ALL_ROWS(X, vectors)                                                                                                       \
        X(1, vectors)                                                                                                              \
        X(2, vectors)                                                                                                              \
        X(3, vectors)                                                                                                              \
        X(4, vectors)                                                                                                              \
        X(5, vectors) X(6, vectors) X(7, vectors) X(8, vectors) X(9, vectors) X(10, vectors) X(11, vectors) X(12, vectors)         \
                X(13, vectors) X(14, vectors)

ALL_ROWS(BLOCK, 1)
ALL_ROWS(BLOCK, 2)
BLOCK(1, 4)
BLOCK(2, 4)
BLOCK(3, 4)
BLOCK(4, 4)
BLOCK(5, 4)
BLOCK(6, 4)
BLOCK(1, 8)
BLOCK(2, 8)

/* By rows and vectors of columns. */
#define ENTRY(rows, vectors) [rows] = block_##rows##_##vectors,
static block_function *const one_vector[] = {ALL_ROWS(ENTRY, 1)};
static block_function *const two_vectors[] = {ALL_ROWS(ENTRY, 2)};
static block_function *const four_vectors[] = {ENTRY(1, 4) ENTRY(2, 4) ENTRY(3, 4) ENTRY(4, 4) ENTRY(5, 4) ENTRY(6, 4)};
static block_function *const eight_vectors[] = {ENTRY(1, 8) ENTRY(2, 8)};

int64_t sl_gemm_packed_floats(int64_t depth, int64_t columns)
{
        int64_t tail = columns % SL_GEMM_PANEL;

        return depth * (columns - tail + (tail > SL_VECTOR_FLOATS ? SL_GEMM_PANEL : tail ? SL_VECTOR_FLOATS : 0));
}

void sl_gemm_pack(const float *b, int64_t depth, int64_t columns, int64_t depth_stride, int64_t column_stride, float *ret_packed)
{
        for (int64_t first = 0; first < columns; first += SL_GEMM_PANEL) {
                int64_t own = columns - first < SL_GEMM_PANEL ? columns - first : SL_GEMM_PANEL;
                int64_t width = own > SL_VECTOR_FLOATS ? SL_GEMM_PANEL : SL_VECTOR_FLOATS;

                for (int64_t k = 0; k < depth; k++, ret_packed += width)
                        for (int64_t n = 0; n < width; n++)
                                ret_packed[n] = n < own ? b[k * depth_stride + (first + n) * column_stride] : 0.0f;
        }
}

/* Vectors of columns that one call takes on, of @left columns: few rows take wide blocks, to have enough sums under way. */
static int choose_vectors(int64_t rows, int64_t left)
{
        if (rows <= 2 && left >= 4 * SL_GEMM_PANEL)
                return 8;
        if (rows <= 6 && left >= 2 * SL_GEMM_PANEL)
                return 4;
        return left > SL_VECTOR_FLOATS ? 2 : 1;
}

static block_function *find_block(int64_t rows, int vectors)
{
        switch (vectors) {
        case 1:
                return one_vector[rows];
        case 2:
                return two_vectors[rows];
        case 4:
                return four_vectors[rows];
        default:
                return eight_vectors[rows];
        }
}

/* Rows [row, end) under @vectors vectors of columns from @first on, cut into blocks that differ by one row at most. */
static void run_columns(const struct sl_gemm *g, int64_t row, int64_t end, int64_t first, int64_t width, int vectors)
{
        int64_t blocks = (end - row + ROWS_MAX - 1) / ROWS_MAX;
        int64_t panel_stride = g->panel_stride ? g->panel_stride : g->depth * SL_GEMM_PANEL;
        struct block k = {.b = g->b + first / SL_GEMM_PANEL * panel_stride,
                .bias = g->bias ? g->bias + first : NULL,
                .depth = g->depth,
                .a_bytes = g->a_stride * (int64_t)sizeof(float),
                .b_bytes = panel_stride * (int64_t)sizeof(float),
                .c_stride = g->c_stride,
                .residual_stride = g->residual_stride,
                .last = sl_vector_mask(width - (vectors - 1) * SL_VECTOR_FLOATS),
                .least = sl_vector_set(g->finish ? g->finish->least : -INFINITY),
                .most = sl_vector_set(g->finish ? g->finish->most : INFINITY)};

        for (; blocks > 0; blocks--) {
                int64_t rows = (end - row) / blocks;

                k.a = g->a + row * g->a_stride;
                k.c = g->c + row * g->c_stride + first;
                k.residual = g->residual ? g->residual + row * g->residual_stride + first : NULL;
                find_block(rows, vectors)(&k);
                if (g->finish && g->finish->activation)
                        sl_finish_activate(g->finish, k.c, g->c_stride, rows, width);
                row += rows;
        }
}

static void run_rows(const struct sl_gemm *g, int64_t row, int64_t end)
{
        int64_t width;

        for (int64_t first = 0; first < g->columns; first += width) {
                int64_t left = g->columns - first;
                int vectors = choose_vectors(end - row, left);

                width = left < vectors * SL_VECTOR_FLOATS ? left : vectors * SL_VECTOR_FLOATS;
                run_columns(g, row, end, first, width, vectors);
        }
}

/*
 * How many rows pass by all panels before the next ones do. While all panels stay in the second cache, one block: it stays in the
 * first cache and its part of c is written at once. Else as many rows as stay in the second cache.
 */
static int64_t choose_rows(const struct sl_gemm *g)
{
        int64_t row_floats = g->depth > 0 ? g->depth : 1, rows;

        if (row_floats * g->columns <= RESIDENT_FLOATS)
                return ROWS_MAX;
        rows = RESIDENT_FLOATS / row_floats / ROWS_MAX * ROWS_MAX;
        return rows > ROWS_MAX ? rows : ROWS_MAX;
}

void sl_gemm_run(const struct sl_gemm *g)
{
        int64_t chunks = (g->rows + choose_rows(g) - 1) / choose_rows(g), row = 0;

        for (; chunks > 0; chunks--) {
                int64_t rows = (g->rows - row) / chunks;

                run_rows(g, row, row + rows);
                row += rows;
        }
}
