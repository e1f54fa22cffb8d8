/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows are cut into blocks of at most 14, the columns into panels; a block times a panel (or two, or four, when there are few
 * rows) is summed in registers, and what is written and added at the end is fetched meanwhile. Where the packed matrix is large,
 * many rows pass by one panel after the other, and the next panel is fetched into the second-level cache meanwhile; the depth is
 * cut where rows and panels would not stay there. Sums wait in c between two parts of the depth, which changes no bit of them.
 */
#include "cpu/gemm.h"

#include "cpu/finish.h"
#include "cpu/vector.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define ROWS_MAX 14
#define SUMS_MAX 28
#define UNROLLED 4

#define LINE_BYTES 64

/* Floats of one operand that may stay in the second-level cache: 512 KiB. */
#define RESIDENT_FLOATS (128 << 10)

/* Of a few rows and what they become, to stay in the first-level cache with a part of a panel: 64 KiB. */
#define NEAR_FLOATS (16 << 10)

/* The part of the rows that stays in the second-level cache while all panels pass: 1.1 MiB. */
#define FAR_DEPTH  1152
#define FAR_BLOCKS 18

#define HIDE(p) __asm__("" : "+r"(p))

struct block {
        const float *a, *b;
        float *c;
        const float *bias, *residual; /* or NULL */
        int64_t depth, a_bytes, c_stride, residual_stride;
        int64_t b_bytes;     /* from panel to panel */
        const char *ahead;   /* what is fetched into the second-level cache meanwhile */
        int64_t ahead_lines; /* for every UNROLLED of depth */
        bool starts;         /* with the bias, else with what c holds */
        bool floors, caps;   /* in the end: at least, at most */
        __mmask16 last;      /* of the last vector of columns */
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

        /* Else a register is spent on every sum of row_bytes and a step. */
        HIDE(row_bytes);
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

INLINE __mmask16 lanes_of(const struct block *k, int n_vectors, int v)
{
        return v + 1 < n_vectors ? (__mmask16)0xffff : k->last;
}

INLINE void start_sums(const struct block *k, int n_rows, int n_vectors, __m512 sums[SUMS_MAX])
{
        if (!k->starts) {
#pragma GCC unroll 28
                for (int i = 0; i < n_rows * n_vectors; i++)
                        sums[i] = _mm512_maskz_loadu_ps(lanes_of(k, n_vectors, i % n_vectors),
                                k->c + i / n_vectors * k->c_stride + i % n_vectors * SL_VECTOR_FLOATS);
                return;
        }
#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; v++)
                sums[v] = k->bias ? _mm512_maskz_loadu_ps(lanes_of(k, n_vectors, v), k->bias + v * SL_VECTOR_FLOATS)
                                  : _mm512_setzero_ps();
#pragma GCC unroll 28
        for (int i = n_vectors; i < n_rows * n_vectors; i++)
                sums[i] = sums[i % n_vectors];
}

INLINE void end_sums(const struct block *k, int n_rows, int n_vectors, __m512 sums[SUMS_MAX])
{
        if (k->residual)
#pragma GCC unroll 28
                for (int i = 0; i < n_rows * n_vectors; i++)
                        sums[i] = _mm512_add_ps(sums[i],
                                _mm512_maskz_loadu_ps(lanes_of(k, n_vectors, i % n_vectors),
                                        k->residual + i / n_vectors * k->residual_stride + i % n_vectors * SL_VECTOR_FLOATS));
        if (k->floors)
#pragma GCC unroll 28
                for (int i = 0; i < n_rows * n_vectors; i++)
                        sums[i] = _mm512_max_ps(k->least, sums[i]);
        if (k->caps)
#pragma GCC unroll 28
                for (int i = 0; i < n_rows * n_vectors; i++)
                        sums[i] = _mm512_min_ps(k->most, sums[i]);
#pragma GCC unroll 28
        for (int i = 0; i < n_rows * n_vectors; i++)
                _mm512_mask_storeu_ps(k->c + i / n_vectors * k->c_stride + i % n_vectors * SL_VECTOR_FLOATS,
                        lanes_of(k, n_vectors, i % n_vectors), sums[i]);
}

INLINE void run_block(const struct block *k, const int n_rows, const int n_vectors)
{
        const int per_panel = n_vectors == 1 ? 1 : 2, n_panels = (n_vectors + 1) / 2;
        const int64_t row_bytes = k->a_bytes, residual_bytes = k->residual_stride * (int64_t)sizeof(float);
        const int64_t c_bytes = k->c_stride * (int64_t)sizeof(float);
        const float *bases[5], *b[4];
        __m512 sums[SUMS_MAX];
        const int64_t ahead_lines = k->ahead_lines;
        const char *ahead = k->ahead, *residual = (const char *)k->residual;
        const char *c = (const char *)k->c, *c_end = c + n_rows * c_bytes;
        int64_t depth = k->depth;

#pragma GCC unroll 5
        for (int i = 0; i < 5; i++)
                bases[i] = (const float *)((const char *)k->a + (i * 3 < n_rows ? i * 3 * row_bytes : 0));
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
                b[i] = (const float *)((const char *)k->b + (i < n_panels ? i * k->b_bytes : 0));
        start_sums(k, n_rows, n_vectors, sums);
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
                /* A row of c, and of the residual, at a time: all at once they would keep the operands waiting. */
                if (c != c_end) {
#pragma GCC unroll 8
                        for (int v = 0; v < n_vectors; v++)
                                __builtin_prefetch(c + v * LINE_BYTES, 1);
                        c += c_bytes;
                        if (residual) {
#pragma GCC unroll 8
                                for (int v = 0; v < n_vectors; v++)
                                        _mm_prefetch(residual + v * LINE_BYTES, _MM_HINT_T0);
                                residual += residual_bytes;
                        }
                }
                for (int64_t line = 0; line < ahead_lines; line++, ahead += LINE_BYTES)
                        _mm_prefetch(ahead, _MM_HINT_T1);
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
        end_sums(k, n_rows, n_vectors, sums);
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
        X(5, vectors)                                                                                                              \
        X(6, vectors)                                                                                                              \
        X(7, vectors) X(8, vectors) X(9, vectors) X(10, vectors) X(11, vectors) X(12, vectors) X(13, vectors) X(14, vectors)

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

/* All rows, cut into blocks that differ by one row at most. */
struct rows {
        int64_t blocks, least, longer; /* so many of them have one row more than the least */
};

static struct rows cut_rows(int64_t rows)
{
        int64_t blocks = (rows + ROWS_MAX - 1) / ROWS_MAX;

        return (struct rows){.blocks = blocks, .least = rows / blocks, .longer = rows % blocks};
}

static int64_t first_row(const struct rows *rows, int64_t block)
{
        return block * rows->least + (block < rows->longer ? block : rows->longer);
}

/* Blocks of rows, columns and depth of one turn of the loops. */
struct piece {
        const struct rows *rows;
        int64_t block, end;
        int64_t first, width;
        int vectors; /* of columns */
        int64_t depth_first, depth;
        const float *ahead; /* what comes next, if it is to be fetched; else NULL */
        int64_t ahead_lines;
};

static const float *packed_at(const struct sl_gemm *g, int64_t first, int64_t depth_first, int vectors)
{
        int64_t panel_stride = g->panel_stride ? g->panel_stride : g->depth * SL_GEMM_PANEL;
        int64_t step = vectors == 1 ? SL_VECTOR_FLOATS : SL_GEMM_PANEL;

        return g->b + first / SL_GEMM_PANEL * panel_stride + depth_first * step;
}

static void run_piece(const struct sl_gemm *g, const struct piece *p)
{
        const float least = g->finish ? g->finish->least : -INFINITY, most = g->finish ? g->finish->most : INFINITY;
        int64_t panel_stride = g->panel_stride ? g->panel_stride : g->depth * SL_GEMM_PANEL, turns = p->depth / UNROLLED;
        bool ends = p->depth_first + p->depth == g->depth;
        struct block k = {.b = packed_at(g, p->first, p->depth_first, p->vectors),
                .bias = g->bias ? g->bias + p->first : NULL,
                .depth = p->depth,
                .a_bytes = g->a_stride * (int64_t)sizeof(float),
                .b_bytes = panel_stride * (int64_t)sizeof(float),
                .c_stride = g->c_stride,
                .residual_stride = g->residual_stride,
                .ahead = (const char *)p->ahead,
                .starts = p->depth_first == 0,
                .floors = ends && least > -INFINITY,
                .caps = ends && most < INFINITY,
                .last = sl_vector_mask(p->width - (p->vectors - 1) * SL_VECTOR_FLOATS),
                .least = sl_vector_set(least),
                .most = sl_vector_set(most)};

        if (p->ahead && turns)
                k.ahead_lines = (p->ahead_lines + turns * (p->end - p->block) - 1) / (turns * (p->end - p->block));
        for (int64_t block = p->block, row = first_row(p->rows, block); block < p->end; block++) {
                int64_t rows = p->rows->least + (block < p->rows->longer);

                k.a = g->a + row * g->a_stride + p->depth_first;
                k.c = g->c + row * g->c_stride + p->first;
                k.residual = g->residual && ends ? g->residual + row * g->residual_stride + p->first : NULL;
                find_block(rows, p->vectors)(&k);
                if (ends && g->finish && g->finish->activation)
                        sl_finish_activate(g->finish, k.c, g->c_stride, rows, p->width);
                k.ahead += k.ahead_lines * turns * LINE_BYTES;
                row += rows;
        }
}

/* How the loops are cut: so many blocks of rows, so much of the depth. */
struct cut {
        int64_t blocks, depth;
        bool fetches; /* the panel that comes next */
};

/* What follows: the next panel, or a share of the rows that are next to pass by all panels. */
static void look_ahead(const struct sl_gemm *g, const struct cut *cut, struct piece *p)
{
        int64_t left = g->columns - p->first;

        p->ahead = NULL;
        if (cut->fetches) {
                p->ahead_lines = p->depth * p->vectors;
                if (p->width < left)
                        p->ahead = packed_at(g, p->first + p->width, p->depth_first, p->vectors);
                else
                        p->ahead = g->next ? g->next : packed_at(g, 0, p->depth_first, p->vectors);
        } else if (p->end < p->rows->blocks && g->a_stride == g->depth) {
                int64_t row = first_row(p->rows, p->end), end = 2 * p->end - p->block;
                int64_t floats = (first_row(p->rows, end < p->rows->blocks ? end : p->rows->blocks) - row) * g->depth;

                p->ahead = g->a + row * g->depth + floats * p->first / g->columns;
                p->ahead_lines = floats * p->width / g->columns / SL_VECTOR_FLOATS;
        }
}

/* All panels under one part of the depth. */
static void run_part(const struct sl_gemm *g, const struct cut *cut, struct piece p)
{
        for (p.first = 0; p.first < g->columns; p.first += p.width) {
                int64_t left = g->columns - p.first;

                p.vectors = choose_vectors(p.rows->least + (p.rows->longer > 0), left);
                p.width = left < p.vectors * SL_VECTOR_FLOATS ? left : p.vectors * SL_VECTOR_FLOATS;
                look_ahead(g, cut, &p);
                run_piece(g, &p);
        }
}

static bool overlaps(const struct sl_gemm *g)
{
        const float *c_end = g->c + g->rows * g->c_stride, *end = g->residual + g->rows * g->residual_stride;

        return g->residual && g->residual < c_end && g->c < end;
}

/*
 * Panels that stay in the second-level cache, and are there: few blocks of rows at a time pass by all of them, and stay in the
 * first one with their part of c. Else many rows pass by one panel, and share in fetching the next. The sums of a part of the depth
 * may not wait in c while a residual lies there; and one block of rows has nothing to gain.
 */
static struct cut choose_cut(const struct sl_gemm *g)
{
        bool near = g->depth * g->columns <= RESIDENT_FLOATS;
        struct cut cut = {.blocks = FAR_BLOCKS, .depth = g->depth, .fetches = g->streams || !near};

        if (g->rows <= ROWS_MAX) {
                cut.fetches = g->streams;
        } else if (near && !g->streams) {
                cut.blocks = NEAR_FLOATS / ((g->depth + g->columns) * ROWS_MAX);
        } else if (g->depth > FAR_DEPTH && overlaps(g)) {
                cut.blocks = RESIDENT_FLOATS / (g->depth * ROWS_MAX);
                cut.fetches = g->streams;
        } else {
                cut.depth = FAR_DEPTH;
        }
        cut.blocks = cut.blocks > 1 ? cut.blocks : 1;
        return cut;
}

/* Blocks of rows by all panels, part after part of the depth. */
static void run_chunk(const struct sl_gemm *g, const struct cut *cut, const struct rows *rows, int64_t block, int64_t end)
{
        int64_t parts = g->depth > cut->depth ? (g->depth + cut->depth - 1) / cut->depth : 1;
        struct piece p = {.rows = rows, .block = block, .end = end};

        for (; parts > 0; parts--, p.depth_first += p.depth) {
                p.depth = (g->depth - p.depth_first) / parts;
                run_part(g, cut, p);
        }
}

void sl_gemm_run(const struct sl_gemm *g)
{
        struct cut cut = choose_cut(g);
        struct rows rows;
        int64_t chunks, block = 0;

        if (g->rows <= 0)
                return;
        rows = cut_rows(g->rows);
        chunks = (rows.blocks + cut.blocks - 1) / cut.blocks;
        for (; chunks > 0; chunks--) {
                int64_t end = block + (rows.blocks - block) / chunks;

                run_chunk(g, &cut, &rows, block, end);
                block = end;
        }
}
