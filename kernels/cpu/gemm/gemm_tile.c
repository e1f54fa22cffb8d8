/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows (of a scanline each, where they lie in an image) are cut into blocks of at most 14, the columns into panels; a block
 * times a panel (or two, or four, when there are few rows) is summed in registers, and what is written and added at the end is
 * fetched meanwhile. Where the packed matrix is large, many rows pass by one panel after the other, and the next panel is fetched
 * into the L2 cache meanwhile, in as many places at once as it takes to have one line of each at a time: memory gives several
 * streams sooner than one; the depth is cut where rows and panels would not stay there. Sums wait in c between two parts of the
 * depth, which changes no bit of them.
 */
#include "cpu/gemm/gemm.h"

#include "base/dtype.h"
#include "cpu/base/vector.h"
#include "cpu/gemm/epilogue.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* What the registers hold: 14 rows by 2 vectors of 16, or 6 by 2 of 8. */
#ifdef __AVX512F__
#define ROWS_MAX 14
#define SUMS_MAX 28
#else
#define ROWS_MAX 6
#define SUMS_MAX 12
#endif
#define UNROLLED 4

/* Vectors of columns. */
#define OF_PANEL (SL_GEMM_PANEL / SL_VECTOR_FLOATS)
#define OF_HALF  (OF_PANEL / 2)

#define LINE_BYTES  64
#define LINE_FLOATS 16

/* Of a few rows and what they become, to stay near with a part of a panel: what the L1 cache has, twice. */
static int64_t near_floats(void)
{
        return 2 * sl_cpu_l1_bytes() / (int64_t)sizeof(float);
}

/* The part of the rows that passes by all panels, and how deep: a panel takes a seventh of the L2 cache then, the rows about all of
 * it. */
#define FAR_ROWS 252
static int64_t far_depth(void)
{
        return sl_cpu_l2_bytes() / 64 * 9 / (SL_GEMM_PANEL * (int64_t)sizeof(float));
}

/*
 * Where b passes once, one or two rows read it as it lies, panel behind panel: a single stream, which many processors fetch ahead
 * best themselves; on others it is four panels side by side (`abreast`). One row of float32 fetches so far ahead besides, into the
 * L2 cache, in case the processor does not. More rows have two panels side by side, to have enough sums under way; where that gains
 * (`fetched`) they fetch ahead, too, and so do halves.
 */
#define STREAM_ROWS   2
#define PASSING_BYTES 4096

#define HIDE(p) __asm__("" : "+r"(p))

/* What the elements of b are. */
enum element { ELEMENT_F32, ELEMENT_F16, ELEMENT_BF16, ELEMENT_COUNT };

struct block {
        const float *a;
        const char *b;
        float *c;
        const float *bias, *residual; /* or NULL */
        int64_t depth, a_bytes, c_stride, residual_stride;
        int64_t pieces, gap;    /* of depth floats each; from the end of one to the next, in floats */
        int64_t b_bytes;        /* from panel to panel */
        const char *ahead;      /* what is fetched into the L2 cache meanwhile, side by side in so many places: */
        int64_t ahead_places;   /* a line of each for every two times UNROLLED of depth: of every other place, in turn */
        int64_t ahead_bytes;    /* from one place to the next */
        bool passes;            /* b comes from memory and goes by once: each of its panels is fetched a little ahead, */
        bool fetched;           /* under several rows, and halves, where this is set */
        bool starts;            /* with the bias, else with what c holds */
        bool floors, caps;      /* in the end: at least, at most */
        bool whole;             /* all columns are there: no lanes are masked. Never with AVX-512, where a mask costs nothing */
        sl_lanes last[OF_HALF]; /* of the last vectors of columns */
        sl_vector least, most;
};

#define INLINE static inline __attribute__((always_inline))

INLINE const float *at_row(const float *const bases[5], int64_t row_bytes, int row)
{
        return (const float *)((const char *)bases[row / 3] + row % 3 * row_bytes);
}

INLINE int64_t bytes_of(const enum element element)
{
        return element == ELEMENT_F32 ? sizeof(float) : sizeof(uint16_t);
}

/* Vector @v of a step of a block's panels: @panel_floats for each of the depth. */
INLINE sl_vector load_factor(const char *const b[4], const int64_t panel_floats, int step, int v, const enum element element)
{
        const char *at = b[v / OF_PANEL] + (step * panel_floats + v % OF_PANEL * SL_VECTOR_FLOATS) * bytes_of(element);

        if (element == ELEMENT_F16)
                return sl_vector_load_f16(at);
        return element == ELEMENT_BF16 ? sl_vector_load_bf16(at) : sl_vector_load((const float *)at);
}

INLINE void add_step(int n_rows, int n_vectors, sl_vector sums[SUMS_MAX], const float *const bases[5], int64_t row_bytes,
        const char *const b[4], const int64_t panel_floats, int step, const enum element element)
{
        sl_vector factors[8];

        /* Else a register is spent on every sum of row_bytes and a step. */
        HIDE(row_bytes);
#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; v++)
                factors[v] = load_factor(b, panel_floats, step, v, element);
#pragma GCC unroll 14
        for (int row = 0; row < n_rows; row++) {
                sl_vector a = sl_vector_set(at_row(bases, row_bytes, row)[step]);

#pragma GCC unroll 8
                for (int v = 0; v < n_vectors; v++)
                        sums[row * n_vectors + v] = sl_vector_fma(a, factors[v], sums[row * n_vectors + v]);
        }
}

INLINE sl_vector load_columns(const struct block *k, const int n_vectors, const bool whole, const float *from, int v)
{
        if (whole || v + OF_HALF < n_vectors)
                return sl_vector_load_lanes(sl_lanes_all(), from + v * SL_VECTOR_FLOATS);
        return sl_vector_load_lanes(k->last[v + OF_HALF - n_vectors], from + v * SL_VECTOR_FLOATS);
}

INLINE void store_columns(const struct block *k, const int n_vectors, const bool whole, float *to, int v, sl_vector x)
{
        if (whole || v + OF_HALF < n_vectors)
                sl_vector_store(to + v * SL_VECTOR_FLOATS, x);
        else
                sl_vector_store_lanes(to + v * SL_VECTOR_FLOATS, k->last[v + OF_HALF - n_vectors], x);
}

INLINE void start_sums(const struct block *k, const int n_rows, const int n_vectors, const bool whole, sl_vector sums[SUMS_MAX])
{
        if (!k->starts) {
#pragma GCC unroll 28
                for (int i = 0; i < n_rows * n_vectors; i++)
                        sums[i] = load_columns(k, n_vectors, whole, k->c + i / n_vectors * k->c_stride, i % n_vectors);
                return;
        }
#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; v++)
                sums[v] = k->bias ? load_columns(k, n_vectors, whole, k->bias, v) : sl_vector_zero();
#pragma GCC unroll 28
        for (int i = n_vectors; i < n_rows * n_vectors; i++)
                sums[i] = sums[i % n_vectors];
}

INLINE void end_sums(const struct block *k, const int n_rows, const int n_vectors, const bool whole, sl_vector sums[SUMS_MAX])
{
        if (k->residual)
#pragma GCC unroll 28
                for (int i = 0; i < n_rows * n_vectors; i++)
                        sums[i] = sl_vector_add(sums[i],
                                load_columns(k, n_vectors, whole, k->residual + i / n_vectors * k->residual_stride, i % n_vectors));
        if (k->floors)
#pragma GCC unroll 28
                for (int i = 0; i < n_rows * n_vectors; i++)
                        sums[i] = sl_vector_max(k->least, sums[i]);
        if (k->caps)
#pragma GCC unroll 28
                for (int i = 0; i < n_rows * n_vectors; i++)
                        sums[i] = sl_vector_min(k->most, sums[i]);
#pragma GCC unroll 28
        for (int i = 0; i < n_rows * n_vectors; i++)
                store_columns(k, n_vectors, whole, k->c + i / n_vectors * k->c_stride, i % n_vectors, sums[i]);
}

INLINE void run_block(
        const struct block *k, const int n_rows, const int n_vectors, const int64_t panel_floats, const enum element element)
{
        const int64_t step_bytes = panel_floats * bytes_of(element);
        const int n_panels = (n_vectors + OF_PANEL - 1) / OF_PANEL;
        const int n_lines = (n_vectors * SL_VECTOR_FLOATS + LINE_FLOATS - 1) / LINE_FLOATS; /* of a row of c */
        const int64_t row_bytes = k->a_bytes, residual_bytes = k->residual_stride * (int64_t)sizeof(float);
        const int64_t c_bytes = k->c_stride * (int64_t)sizeof(float);
        const float *bases[5];
        const char *b[4];
        sl_vector sums[SUMS_MAX];
        const int64_t ahead_places = k->ahead_places, ahead_bytes = k->ahead_bytes;
        const bool fetches = k->passes && ((n_rows == 1 && element == ELEMENT_F32) || k->fetched);
        const char *ahead = k->ahead, *residual = (const char *)k->residual;
        const char *c = (const char *)k->c, *c_end = c + n_rows * c_bytes;

#pragma GCC unroll 5
        for (int i = 0; i < 5; i++)
                bases[i] = (const float *)((const char *)k->a + (i * 3 < n_rows ? i * 3 * row_bytes : 0));
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
                b[i] = k->b + (i < n_panels ? i * k->b_bytes : 0);
        if (OF_HALF > 1 && k->whole)
                start_sums(k, n_rows, n_vectors, true, sums);
        else
                start_sums(k, n_rows, n_vectors, false, sums);
        for (int64_t pieces = k->pieces; pieces > 0; pieces--) {
                int64_t depth = k->depth;

                for (; depth >= UNROLLED; depth -= UNROLLED) {
#pragma GCC unroll 5
                        for (int i = 0; i * 3 < n_rows; i++)
                                HIDE(bases[i]);
#pragma GCC unroll 4
                        for (int i = 0; i < n_panels; i++)
                                HIDE(b[i]);
#pragma GCC unroll 4
                        for (int step = 0; step < UNROLLED; step++)
                                add_step(n_rows, n_vectors, sums, bases, row_bytes, b, panel_floats, step, element);
                        /* A row of c, and of the residual, at a time: all at once they would keep the operands waiting. */
                        if (c != c_end) {
#pragma GCC unroll 8
                                for (int line = 0; line < n_lines; line++)
                                        __builtin_prefetch(c + line * LINE_BYTES, 1);
                                c += c_bytes;
                                if (residual) {
#pragma GCC unroll 8
                                        for (int line = 0; line < n_lines; line++)
                                                _mm_prefetch(residual + line * LINE_BYTES, _MM_HINT_T0);
                                        residual += residual_bytes;
                                }
                        }
                        for (int64_t place = depth & UNROLLED ? 1 : 0; place < ahead_places; place += 2)
                                _mm_prefetch(ahead + place * ahead_bytes, _MM_HINT_T1);
                        ahead += depth & UNROLLED ? LINE_BYTES : 0;
                        if (fetches)
#pragma GCC unroll 4
                                for (int i = 0; i < n_panels; i++)
#pragma GCC unroll 8
                                        for (int line = 0; line < UNROLLED * step_bytes / LINE_BYTES; line++)
                                                _mm_prefetch(b[i] + PASSING_BYTES + line * LINE_BYTES, _MM_HINT_T1);
#pragma GCC unroll 5
                        for (int i = 0; i < 5; i++)
                                bases[i] += UNROLLED;
#pragma GCC unroll 4
                        for (int i = 0; i < 4; i++)
                                b[i] += UNROLLED * step_bytes;
                }
                for (; depth > 0; depth--) {
#pragma GCC unroll 5
                        for (int i = 0; i * 3 < n_rows; i++)
                                HIDE(bases[i]);
                        add_step(n_rows, n_vectors, sums, bases, row_bytes, b, panel_floats, 0, element);
#pragma GCC unroll 5
                        for (int i = 0; i < 5; i++)
                                bases[i]++;
#pragma GCC unroll 4
                        for (int i = 0; i < 4; i++)
                                b[i] += step_bytes;
                }
#pragma GCC unroll 5
                for (int i = 0; i < 5; i++)
                        bases[i] += k->gap;
        }
        if (OF_HALF > 1 && k->whole)
                end_sums(k, n_rows, n_vectors, true, sums);
        else
                end_sums(k, n_rows, n_vectors, false, sums);
}

typedef void block_function(const struct block *block);

#define BLOCK_OF(rows, vectors, floats, element)                                                                                   \
        static __attribute__((noinline)) void block_##rows##_##vectors##_##floats##_##element(const struct block *block)           \
        {                                                                                                                          \
                run_block(block, rows, vectors, floats, ELEMENT_##element);                                                        \
        }
#define BLOCK(rows, vectors, floats)                                                                                               \
        BLOCK_OF(rows, vectors, floats, F32) BLOCK_OF(rows, vectors, floats, F16) BLOCK_OF(rows, vectors, floats, BF16)
#define ENTRY(rows, vectors, floats)                                                                                               \
        [rows] = {block_##rows##_##vectors##_##floats##_F32, block_##rows##_##vectors##_##floats##_F16,                            \
                block_##rows##_##vectors##_##floats##_BF16},
#define TO_3(X, ...) X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__)
#define TO_6(X, ...) TO_3(X, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)
#define TO_14(X, ...)                                                                                                              \
        TO_6(X, __VA_ARGS__)                                                                                                       \
        X(7, __VA_ARGS__)                                                                                                          \
        X(8, __VA_ARGS__)                                                                                                          \
        X(9, __VA_ARGS__) X(10, __VA_ARGS__) X(11, __VA_ARGS__) X(12, __VA_ARGS__) X(13, __VA_ARGS__) X(14, __VA_ARGS__)

/* By rows, vectors of columns and elements; those of a narrow panel apart. */
#ifdef __AVX512F__

TO_14(BLOCK, 1, 16)
TO_14(BLOCK, 2, 32)
TO_6(BLOCK, 4, 32)
BLOCK(1, 8, 32)
BLOCK(2, 8, 32)

static block_function *const narrow[][ELEMENT_COUNT] = {TO_14(ENTRY, 1, 16)};
static block_function *const two_vectors[][ELEMENT_COUNT] = {TO_14(ENTRY, 2, 32)};
static block_function *const four_vectors[][ELEMENT_COUNT] = {TO_6(ENTRY, 4, 32)};
static block_function *const eight_vectors[][ELEMENT_COUNT] = {ENTRY(1, 8, 32) ENTRY(2, 8, 32)};

/* Of @left columns: few rows take wide blocks, to have enough sums under way. */
static int choose_vectors(int64_t rows, int64_t first, int64_t left)
{
        (void)first;
        if (rows <= 2 && left >= 4 * SL_GEMM_PANEL)
                return 8;
        if (rows <= 6 && left >= 2 * SL_GEMM_PANEL)
                return 4;
        return left > SL_GEMM_PANEL / 2 ? 2 : 1;
}

#else

TO_6(BLOCK, 2, 16)
TO_6(BLOCK, 2, 32)
TO_3(BLOCK, 4, 32)
BLOCK(1, 8, 32)

static block_function *const narrow[][ELEMENT_COUNT] = {TO_6(ENTRY, 2, 16)};
static block_function *const two_vectors[][ELEMENT_COUNT] = {TO_6(ENTRY, 2, 32)};
static block_function *const four_vectors[][ELEMENT_COUNT] = {TO_3(ENTRY, 4, 32)};
static block_function *const eight_vectors[][ELEMENT_COUNT] = {ENTRY(1, 8, 32)};

/* The same; more than three rows take a panel in two halves. */
static int choose_vectors(int64_t rows, int64_t first, int64_t left)
{
        if (first % SL_GEMM_PANEL)
                return 2;
        if (rows == 1 && left >= 2 * SL_GEMM_PANEL)
                return 8;
        return rows <= 3 && left > SL_GEMM_PANEL / 2 ? 4 : 2;
}

#endif

static block_function *find_block(int64_t rows, int vectors, bool is_narrow, enum element element)
{
        if (is_narrow)
                return narrow[rows][element];
        return vectors == 2   ? two_vectors[rows][element]
               : vectors == 4 ? four_vectors[rows][element]
                              : eight_vectors[rows][element];
}

static enum element element_of(const struct sl_gemm *g)
{
        if (!g->narrow)
                return ELEMENT_F32;
        return g->narrow_dtype == SL_DTYPE_F16 ? ELEMENT_F16 : ELEMENT_BF16;
}

static int64_t packed_bytes(const struct sl_gemm *g)
{
        return g->depth * g->columns * bytes_of(element_of(g));
}

/* The rows of each scanline, cut into blocks that differ by one row at most. */
struct rows {
        int64_t blocks; /* of all scanlines */
        int64_t of_scanline, scanline, least,
                longer; /* blocks and rows of one; so many of its blocks have one row more than the least */
};

static struct rows cut_rows(const struct sl_gemm *g)
{
        int64_t scanline = g->scanline_rows ? g->scanline_rows : g->rows, blocks = (scanline + ROWS_MAX - 1) / ROWS_MAX;

        return (struct rows){.blocks = g->rows / scanline * blocks,
                .of_scanline = blocks,
                .scanline = scanline,
                .least = scanline / blocks,
                .longer = scanline % blocks};
}

static int64_t first_of_scanline(const struct rows *rows, int64_t block)
{
        return block * rows->least + (block < rows->longer ? block : rows->longer);
}

static int64_t first_row(const struct rows *rows, int64_t block)
{
        return block / rows->of_scanline * rows->scanline + first_of_scanline(rows, block % rows->of_scanline);
}

static const float *find_row(const struct sl_gemm *g, const struct rows *rows, int64_t block)
{
        int64_t scanline = block / rows->of_scanline, image = g->image_scanlines ? scanline / g->image_scanlines : 0;

        return g->a + image * g->image_stride + (scanline - image * g->image_scanlines) * g->scanline_stride +
               first_of_scanline(rows, block % rows->of_scanline) * g->a_stride;
}

/* Blocks of rows, columns and depth of one turn of the loops. */
struct piece {
        const struct rows *rows;
        int64_t block, end;
        int64_t first, width;
        int vectors; /* of columns */
        int64_t depth_first, depth;
        const void *ahead; /* what comes next, if it is to be fetched; else NULL */
        bool passes;
        int64_t ahead_lines; /* so much of it */
};

/* Is column @first in the last panel, and that one narrow? */
static bool in_narrow(const struct sl_gemm *g, int64_t first)
{
        return g->columns - first / SL_GEMM_PANEL * SL_GEMM_PANEL <= SL_GEMM_PANEL / 2;
}

static const char *packed_at(const struct sl_gemm *g, int64_t first, int64_t depth_first)
{
        const char *b = g->narrow ? (const char *)g->narrow : (const char *)g->b;
        int64_t panel_stride = g->panel_stride ? g->panel_stride : g->depth * SL_GEMM_PANEL;
        int64_t step = in_narrow(g, first) ? SL_GEMM_PANEL / 2 : SL_GEMM_PANEL;

        return b + (first / SL_GEMM_PANEL * panel_stride + depth_first * step + first % SL_GEMM_PANEL) * bytes_of(element_of(g));
}

/* The part of [p->depth_first, + p->depth) that the rows of a block do not have zeros in, all of them together. */
static void clip_depth(
        const struct sl_gemm *g, const struct piece *p, int64_t block, int64_t rows, int64_t *ret_first, int64_t *ret_end)
{
        int64_t row = first_of_scanline(p->rows, block % p->rows->of_scanline), first = p->depth_first, end = first + p->depth;
        int64_t left = g->clip_left - (row + rows - 1) * g->clip_step, right = g->clip_right - row * g->clip_step;

        *ret_first = left > first ? left : first;
        *ret_end = right < end ? right : end;
        if (*ret_first >= *ret_end)
                *ret_first = *ret_end = first;
}

static int64_t columns_left(int64_t columns)
{
        return columns > 0 ? columns : 0;
}

static void run_piece(const struct sl_gemm *g, const struct piece *p)
{
        const float least = g->epilogue ? g->epilogue->least : -INFINITY, most = g->epilogue ? g->epilogue->most : INFINITY;
        int64_t panel_stride = g->panel_stride ? g->panel_stride : g->depth * SL_GEMM_PANEL, turns;
        int64_t within = g->piece ? p->depth_first / g->piece * g->piece_stride + p->depth_first % g->piece : p->depth_first;
        bool ends = p->depth_first + p->depth == g->depth, is_narrow = in_narrow(g, p->first);
        struct block k = {.b = packed_at(g, p->first, p->depth_first),
                .bias = g->bias ? g->bias + p->first : NULL,
                .depth = g->piece && g->piece < p->depth ? g->piece : p->depth,
                .a_bytes = g->a_stride * (int64_t)sizeof(float),
                .b_bytes = panel_stride * bytes_of(element_of(g)),
                .c_stride = g->c_stride,
                .residual_stride = g->residual_stride,
                .ahead = p->ahead,
                .passes = p->passes,
                .fetched = g->reading.fetched,
                .starts = p->depth_first == 0,
                .floors = ends && least > -INFINITY,
                .caps = ends && most<INFINITY, .whole = OF_HALF> 1 && p->width == p->vectors * SL_VECTOR_FLOATS,
                .least = sl_vector_set(least),
                .most = sl_vector_set(most)};

        for (int i = 0; i < OF_HALF; i++)
                k.last[i] = sl_lanes_first(columns_left(p->width - (p->vectors - OF_HALF + i) * SL_VECTOR_FLOATS));
        k.pieces = k.depth ? p->depth / k.depth : 1;
        k.gap = g->piece_stride - g->piece;
        turns = k.pieces * ((k.depth / UNROLLED + 1) / 2);
        if (p->ahead && turns)
                k.ahead_places = (p->ahead_lines + turns * (p->end - p->block) - 1) / (turns * (p->end - p->block));
        k.ahead_bytes = turns * (p->end - p->block) * LINE_BYTES;
        for (int64_t block = p->block, row = first_row(p->rows, block); block < p->end; block++) {
                int64_t rows = p->rows->least + (block % p->rows->of_scanline < p->rows->longer);

                k.a = find_row(g, p->rows, block) + within;
                if (g->clip_step) {
                        int64_t first, end;

                        clip_depth(g, p, block, rows, &first, &end);
                        k.a += first - within;
                        k.b = packed_at(g, p->first, first);
                        k.depth = end - first;
                }
                k.c = g->c + row * g->c_stride + p->first;
                k.residual = g->residual && ends ? g->residual + row * g->residual_stride + p->first : NULL;
                find_block(rows, p->vectors, is_narrow, element_of(g))(&k);
                if (ends && g->epilogue && g->epilogue->activation)
                        sl_cpu_epilogue_activate(g->epilogue, k.c, g->c_stride, rows, p->width);
                k.ahead += turns * LINE_BYTES;
                row += rows;
        }
}

/* How the loops are cut: so many blocks of rows, so much of the depth. */
struct cut {
        int64_t blocks, depth;
        bool fetches; /* the panel that comes next */
        bool passes;  /* every panel is read once, and too long to be fetched whole before */
};

/* What follows: the next panel, or a share of the rows that are next to pass by all panels. */
static void look_ahead(const struct sl_gemm *g, const struct cut *cut, struct piece *p)
{
        int64_t left = g->columns - p->first;

        p->ahead = NULL;
        if (cut->fetches && (p->first + p->width) % SL_GEMM_PANEL && p->width < left)
                return; /* the other half of a panel lies between the scanlines of this one */
        if (cut->fetches) {
                p->ahead_lines = p->depth *
                                 (p->vectors > OF_PANEL           ? p->vectors
                                         : in_narrow(g, p->first) ? OF_HALF
                                                                  : OF_PANEL) *
                                 SL_VECTOR_FLOATS * bytes_of(element_of(g)) / LINE_BYTES;
                if (p->width < left)
                        p->ahead = packed_at(g, p->first + p->width, p->depth_first);
                else
                        p->ahead = g->next ? (const void *)g->next : packed_at(g, 0, p->depth_first);
        } else if (p->end < p->rows->blocks && g->a_stride == g->depth && !g->scanline_rows && !g->piece) {
                int64_t row = first_row(p->rows, p->end), end = 2 * p->end - p->block;
                int64_t floats = (first_row(p->rows, end < p->rows->blocks ? end : p->rows->blocks) - row) * g->depth;

                p->ahead = g->a + row * g->depth + floats * p->first / g->columns;
                p->ahead_lines = floats * p->width / g->columns / LINE_FLOATS;
        }
}

static int vectors_of(const struct sl_gemm *g, const struct piece *p)
{
        int64_t left = g->columns - p->first;

        if (p->passes && !g->reading.abreast && g->rows <= STREAM_ROWS && left > SL_GEMM_PANEL / 2 && !(p->first % SL_GEMM_PANEL))
                return OF_PANEL;
        return choose_vectors(p->rows->least + (p->rows->longer > 0), p->first, left);
}

/* All panels under one part of the depth. */
static void run_part(const struct sl_gemm *g, const struct cut *cut, struct piece p)
{
        for (p.first = 0; p.first < g->columns; p.first += p.width) {
                int64_t left = g->columns - p.first;

                p.vectors = vectors_of(g, &p);
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
 * Panels that stay in the L2 cache, and are there: few blocks of rows at a time pass by all of them, and stay in the
 * first one with their part of c. Else many rows pass by one panel, and share in fetching the next. The sums of a part of the depth
 * may not wait in c while a residual lies there; and one block of rows has nothing to gain.
 */
static struct cut choose_cut(const struct sl_gemm *g, const struct rows *rows)
{
        bool near = packed_bytes(g) <= sl_gemm_resident_bytes();
        struct cut cut = {
                .blocks = FAR_ROWS / (rows->least + (rows->longer > 0)), .depth = g->depth, .fetches = g->streams || !near};

        if (g->streams && sl_gemm_passes(g->rows, packed_bytes(g))) {
                cut.fetches = false;
                cut.passes = true;
        } else if (g->rows <= ROWS_MAX) {
                cut.fetches = g->streams;
        } else if (near && !g->streams) {
                cut.blocks = near_floats() / ((g->depth + g->columns) * ROWS_MAX);
        } else if (g->depth > far_depth() && overlaps(g)) {
                cut.blocks = sl_gemm_resident_bytes() / (g->depth * ROWS_MAX * (int64_t)sizeof(float));
                cut.fetches = g->streams;
        } else {
                cut.depth = far_depth();
        }
        cut.blocks = cut.blocks > 1 ? cut.blocks : 1;
        return cut;
}

/* @length in parts of at most @most that differ by one at most: the length of the part at @at. */
static int64_t next_part(int64_t length, int64_t most, int64_t at)
{
        int64_t parts = (length + most - 1) / most, least = length / parts, short_parts = parts - length % parts;

        return at < short_parts * least ? least : least + 1;
}

/* The part of the depth that begins at @first: whole pieces of the rows, or a part of one. */
static int64_t next_depth(const struct sl_gemm *g, const struct cut *cut, int64_t first)
{
        if (g->depth <= cut->depth)
                return g->depth;
        if (!g->piece || g->piece == g->depth)
                return next_part(g->depth, cut->depth, first);
        if (g->piece > cut->depth)
                return next_part(g->piece, cut->depth, first % g->piece);
        return g->piece * next_part(g->depth / g->piece, cut->depth / g->piece, first / g->piece);
}

/* Blocks of rows by all panels, part after part of the depth. */
static void run_chunk(const struct sl_gemm *g, const struct cut *cut, const struct rows *rows, int64_t block, int64_t end)
{
        struct piece p = {.rows = rows, .block = block, .end = end, .passes = cut->passes};

        do {
                p.depth = next_depth(g, cut, p.depth_first);
                run_part(g, cut, p);
                p.depth_first += p.depth;
        } while (p.depth_first < g->depth);
}

void SL_TILE(sl_gemm_run)(const struct sl_gemm *g)
{
        struct rows rows;
        struct cut cut;
        int64_t chunks, block = 0;

        if (g->rows <= 0)
                return;
        rows = cut_rows(g);
        cut = choose_cut(g, &rows);
        chunks = (rows.blocks + cut.blocks - 1) / cut.blocks;
        for (; chunks > 0; chunks--) {
                int64_t end = block + (rows.blocks - block) / chunks;

                run_chunk(g, &cut, &rows, block, end);
                block = end;
        }
}
