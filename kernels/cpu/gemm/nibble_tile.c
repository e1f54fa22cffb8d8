/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/base/vector.h"
#include "cpu/gemm/nibble.h"
#include "shape/nibbles.h"

#include <string.h>

#define PANEL   SL_NIBBLE_PANEL
#define GROUP   SL_NIBBLE_GROUP
#define VECTORS (PANEL / SL_VECTOR_FLOATS)
#define INLINE  static inline __attribute__((always_inline))

/* Where element @k of a group lies. */
#define SHIFT_OF(k) (8 * ((k) % 4) + 4 * ((k) / 4))

#ifdef __AVX512F__

#define TILE_ROWS   14
#define ABREAST     4 /* panels by one row */
#define FEW_ROWS    3 /* which widen elements in registers */
#define TILE_PANELS 1 /* tiles beside each other in a panel */

typedef __m512i bits;

#define load_bits(p) _mm512_loadu_si512(p)

/* q - 8 by a table, less what the zero point has beyond 8. */
INLINE sl_vector widen(bits v, int shift)
{
        const __m512 table = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);

        return _mm512_permutexvar_ps(_mm512_srli_epi32(v, (unsigned)shift), table);
}

INLINE sl_vector load_zeros(const uint8_t *zeros)
{
        return _mm512_sub_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)zeros))), _mm512_set1_ps(8.0f));
}

#else

#define TILE_ROWS   6
#define ABREAST     1
#define FEW_ROWS    2
#define TILE_PANELS 2

typedef __m256i bits;

#define load_bits(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))

INLINE sl_vector widen(bits v, int shift)
{
        __m256i q = _mm256_and_si256(_mm256_srli_epi32(v, shift), _mm256_set1_epi32(15));

        return _mm256_cvtepi32_ps(_mm256_sub_epi32(q, _mm256_set1_epi32(8)));
}

INLINE sl_vector load_zeros(const uint8_t *zeros)
{
        return _mm256_sub_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)zeros))), _mm256_set1_ps(8.0f));
}

#endif

#define TILE_VECTORS (VECTORS / TILE_PANELS)

/* Columns of a panel that are there. */
static void store_columns(float *to, const float *from, int64_t columns)
{
        memcpy(to, from, (size_t)(columns < PANEL ? columns : PANEL) * sizeof(*to));
}

INLINE int64_t groups_of(const struct sl_nibble_rows *p, int64_t block)
{
        int64_t left = p->groups - block * p->block_groups;

        return left < p->block_groups ? left : p->block_groups;
}

/* The vectors of @panels panels from @panel on: @rows and @panels are constants where it is called. */
INLINE void pass_rows(
        const struct sl_nibble_rows *p, int64_t row, int64_t panel, const int rows, const int panels, const bool has_zeros)
{
        sl_vector totals[FEW_ROWS][ABREAST * VECTORS];

        for (int r = 0; r < rows; r++)
                for (int v = 0; v < panels * VECTORS; v++)
                        totals[r][v] = sl_vector_zero();
        for (int64_t block = 0; block < p->blocks; block++) {
                int64_t first = block * p->block_groups, n = groups_of(p, block);
                sl_vector sums[FEW_ROWS][ABREAST * VECTORS], zeros[ABREAST * VECTORS];

#pragma GCC unroll 16
                for (int v = 0; v < panels * VECTORS; v++) {
                        int64_t at = ((panel + v / VECTORS) * p->blocks + block) * PANEL + v % VECTORS * SL_VECTOR_FLOATS;

                        zeros[v] = has_zeros ? load_zeros(p->zeros + at) : sl_vector_zero();
#pragma GCC unroll 4
                        for (int r = 0; r < rows; r++)
                                sums[r][v] = sl_vector_zero();
                }
                for (int64_t g = first; g < first + n; g++) {
                        const float *a = p->a + row * p->a_stride + g * GROUP;

#pragma GCC unroll 16
                        for (int v = 0; v < panels * VECTORS; v++) {
                                bits q = load_bits(
                                        p->b + ((panel + v / VECTORS) * p->groups + g) * PANEL + v % VECTORS * SL_VECTOR_FLOATS);

#pragma GCC unroll 8
                                for (int k = 0; k < GROUP; k++) {
                                        sl_vector w = widen(q, SHIFT_OF(k));

                                        if (has_zeros)
                                                w = sl_vector_sub(w, zeros[v]);
#pragma GCC unroll 4
                                        for (int r = 0; r < rows; r++)
                                                sums[r][v] = sl_vector_fma(sl_vector_set(a[r * p->a_stride + k]), w, sums[r][v]);
                                }
                        }
                }
#pragma GCC unroll 16
                for (int v = 0; v < panels * VECTORS; v++) {
                        int64_t at = ((panel + v / VECTORS) * p->blocks + block) * PANEL + v % VECTORS * SL_VECTOR_FLOATS;

#pragma GCC unroll 4
                        for (int r = 0; r < rows; r++)
                                totals[r][v] = sl_vector_fma(sums[r][v], sl_vector_load(p->scales + at), totals[r][v]);
                }
        }
        for (int r = 0; r < rows; r++)
                for (int i = 0; i < panels; i++) {
                        float columns[PANEL];

                        for (int v = 0; v < VECTORS; v++)
                                sl_vector_store(columns + v * SL_VECTOR_FLOATS, totals[r][i * VECTORS + v]);
                        store_columns(
                                p->c + (row + r) * p->c_stride + (panel + i) * PANEL, columns, p->columns - (panel + i) * PANEL);
                }
}

/* Groups @first to @end of a panel, in floats. */
static void widen_chunk(const struct sl_nibble_rows *p, int64_t panel, int64_t first, int64_t end, float *to)
{
        for (int64_t g = first; g < end; g++, to += GROUP * PANEL) {
                int64_t block = g / p->block_groups;

                for (int v = 0; v < VECTORS; v++) {
                        bits q = load_bits(p->b + (panel * p->groups + g) * PANEL + v * SL_VECTOR_FLOATS);
                        sl_vector zeros = sl_vector_zero();

                        if (p->zeros)
                                zeros = load_zeros(p->zeros + (panel * p->blocks + block) * PANEL + v * SL_VECTOR_FLOATS);
#pragma GCC unroll 8
                        for (int k = 0; k < GROUP; k++)
                                sl_vector_store(to + k * PANEL + v * SL_VECTOR_FLOATS, sl_vector_sub(widen(q, SHIFT_OF(k)), zeros));
                }
        }
}

/* Rows by a widened chunk, from group @first to @end: what of a block was summed before it, and what comes of all blocks. */
struct chunk {
        const struct sl_nibble_rows *p;
        const float *rows; /* SL_NIBBLE_CHUNK apart */
        const float *weights, *scales;
        float *sums, *totals; /* of these rows and columns, PANEL apart */
        int64_t first, end;
};

/* A few rows by what a chunk has of one block. */
INLINE void pass_tile(const struct chunk *c, int64_t first, int64_t end, bool begins, const float *scales, const int rows)
{
        sl_vector sums[TILE_ROWS][TILE_VECTORS];

#pragma GCC unroll 16
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
                for (int v = 0; v < TILE_VECTORS; v++)
                        sums[r][v] = begins ? sl_vector_zero() : sl_vector_load(c->sums + r * PANEL + v * SL_VECTOR_FLOATS);
        for (int64_t k = first; k < end; k++) {
                sl_vector w[TILE_VECTORS];

#pragma GCC unroll 4
                for (int v = 0; v < TILE_VECTORS; v++)
                        w[v] = sl_vector_load(c->weights + k * PANEL + v * SL_VECTOR_FLOATS);
#pragma GCC unroll 16
                for (int r = 0; r < rows; r++) {
                        sl_vector a = sl_vector_set(c->rows[r * SL_NIBBLE_CHUNK + k]);

#pragma GCC unroll 4
                        for (int v = 0; v < TILE_VECTORS; v++)
                                sums[r][v] = sl_vector_fma(a, w[v], sums[r][v]);
                }
        }
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
                for (int v = 0; v < TILE_VECTORS; v++) {
                        float *total = c->totals + r * PANEL + v * SL_VECTOR_FLOATS;

                        if (scales)
                                sl_vector_store(total, sl_vector_fma(sums[r][v], sl_vector_load(scales + v * SL_VECTOR_FLOATS),
                                                               sl_vector_load(total)));
                        else
                                sl_vector_store(c->sums + r * PANEL + v * SL_VECTOR_FLOATS, sums[r][v]);
                }
}

/* Block by block; one that ends behind the chunk leaves its sums. */
INLINE void pass_blocks(const struct chunk *c, const int rows)
{
        int64_t step = c->p->block_groups;

        for (int64_t g = c->first, block = g / step; g < c->end; block++) {
                int64_t all = (block + 1) * step < c->p->groups ? (block + 1) * step : c->p->groups;
                int64_t end = all < c->end ? all : c->end;

                pass_tile(c, (g - c->first) * GROUP, (end - c->first) * GROUP, g == block * step,
                        end == all ? c->scales + block * PANEL : NULL, rows);
                g = end;
        }
}

static void pass_some(const struct chunk *c, int64_t rows)
{
        switch (rows) {
#define CASE(n)                                                                                                                    \
        case n:                                                                                                                    \
                pass_blocks(c, n);                                                                                                 \
                break;
                CASE(1)
                CASE(2)
                CASE(3)
                CASE(4)
                CASE(5)
                CASE(6)
#if TILE_ROWS > 6
                CASE(7)
                CASE(8)
                CASE(9)
                CASE(10)
                CASE(11)
                CASE(12)
                CASE(13)
                CASE(14)
#endif
#undef CASE
        default:
                break;
        }
}

/* Rows of one widened chunk, tile by tile. */
static void pass_chunk(const struct chunk *c, int64_t rows)
{
        for (int64_t row = 0; row < rows; row += TILE_ROWS)
                for (int half = 0; half < TILE_PANELS; half++) {
                        int64_t at = half * TILE_VECTORS * SL_VECTOR_FLOATS;
                        struct chunk tile = *c;

                        tile.rows += row * SL_NIBBLE_CHUNK;
                        tile.weights += at;
                        tile.scales += at;
                        tile.sums += row * PANEL + at;
                        tile.totals += row * PANEL + at;
                        pass_some(&tile, rows - row < TILE_ROWS ? rows - row : TILE_ROWS);
                }
}

#define CHUNK_GROUPS (SL_NIBBLE_CHUNK / GROUP)

/* The room: a widened chunk, sums, totals, rows. */
static float *sums_of(const struct sl_nibble_rows *p)
{
        return p->room + SL_NIBBLE_CHUNK * PANEL;
}

static float *totals_of(const struct sl_nibble_rows *p)
{
        return sums_of(p) + SL_NIBBLE_ROWS * PANEL;
}

static float *rows_of(const struct sl_nibble_rows *p)
{
        return totals_of(p) + SL_NIBBLE_ROWS * PANEL;
}

/* [chunk][row]: rows a power of two apart would push each other out of the L1 cache. */
static void gather_rows(const struct sl_nibble_rows *p, int64_t row, int64_t rows)
{
        float *to = rows_of(p);

        for (int64_t g = 0; g < p->groups; g += CHUNK_GROUPS) {
                int64_t n = p->groups - g < CHUNK_GROUPS ? p->groups - g : CHUNK_GROUPS;

                for (int64_t r = 0; r < rows; r++, to += SL_NIBBLE_CHUNK)
                        memcpy(to, p->a + (row + r) * p->a_stride + g * GROUP, (size_t)(n * GROUP) * sizeof(*to));
        }
}

static void pass_panel(const struct sl_nibble_rows *p, int64_t row, int64_t rows, int64_t panel)
{
        float *totals = totals_of(p);
        struct chunk c = {.p = p,
                .rows = rows_of(p),
                .weights = p->room,
                .scales = p->scales + panel * p->blocks * PANEL,
                .sums = sums_of(p),
                .totals = totals};

        memset(totals, 0, (size_t)(rows * PANEL) * sizeof(*totals));
        for (; c.first < p->groups; c.first = c.end, c.rows += rows * SL_NIBBLE_CHUNK) {
                c.end = c.first + CHUNK_GROUPS < p->groups ? c.first + CHUNK_GROUPS : p->groups;
                widen_chunk(p, panel, c.first, c.end, p->room);
                pass_chunk(&c, rows);
        }
        for (int64_t r = 0; r < rows; r++)
                store_columns(p->c + (row + r) * p->c_stride + panel * PANEL, totals + r * PANEL, p->columns - panel * PANEL);
}

static void pass_row(const struct sl_nibble_rows *p)
{
        int64_t panels = (p->columns + PANEL - 1) / PANEL, panel = 0;

        for (; panel + ABREAST <= panels; panel += ABREAST) {
                if (p->zeros)
                        pass_rows(p, 0, panel, 1, ABREAST, true);
                else
                        pass_rows(p, 0, panel, 1, ABREAST, false);
        }
        for (; panel < panels; panel++)
                pass_rows(p, 0, panel, 1, 1, p->zeros != NULL);
}

static void pass_few(const struct sl_nibble_rows *p)
{
        for (int64_t panel = 0; panel * PANEL < p->columns; panel++) {
                if (p->rows == 2)
                        pass_rows(p, 0, panel, 2, 1, p->zeros != NULL);
#if FEW_ROWS > 2
                else
                        pass_rows(p, 0, panel, 3, 1, p->zeros != NULL);
#endif
        }
}

void SL_TILE(sl_nibble_floats)(const struct sl_nibble_rows *p)
{
        if (p->rows == 1) {
                pass_row(p);
                return;
        }
        if (p->rows <= FEW_ROWS) {
                pass_few(p);
                return;
        }
        for (int64_t row = 0; row < p->rows; row += SL_NIBBLE_ROWS) {
                int64_t rows = p->rows - row < SL_NIBBLE_ROWS ? p->rows - row : SL_NIBBLE_ROWS;

                gather_rows(p, row, rows);
                for (int64_t panel = 0; panel * PANEL < p->columns; panel++)
                        pass_panel(p, row, rows, panel);
        }
}

#define EIGHT 8 /* columns of a vector of 256 bits */

/* Rows of bytes by 8 or 16 columns: pairs of products in 16 bits, which 15 * 127 * 4 does not fill. */
INLINE void pass_bytes(
        const struct sl_nibble_rows *p, int64_t row, int64_t panel, const int first, const int vectors, float *columns)
{
        __m256 totals[4];

        for (int v = 0; v < vectors; v++)
                totals[v] = _mm256_setzero_ps();
        for (int64_t block = 0; block < p->blocks; block++) {
                const int8_t *a = p->bytes + (row * p->groups + block * p->block_groups) * GROUP;
                int64_t n = groups_of(p, block), at = (panel * p->blocks + block) * PANEL + first * EIGHT;
                const uint32_t *b = p->b + (panel * p->groups + block * p->block_groups) * PANEL + first * EIGHT;
                int32_t sum = p->row_sums[row * p->blocks + block];
                __m256i sums[4];

                for (int v = 0; v < vectors; v++)
                        sums[v] = _mm256_set1_epi32(p->zeros ? 0 : -SL_NIBBLE_CONSTANTS * sum);
                for (int64_t g = 0; g < n; g++) {
                        const __m256i mask = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
                        int32_t four[2];
                        __m256i low, high;

                        memcpy(four, a + g * GROUP, sizeof(four));
                        low = _mm256_set1_epi32(four[0]);
                        high = _mm256_set1_epi32(four[1]);
#pragma GCC unroll 4
                        for (int v = 0; v < vectors; v++) {
                                __m256i q = _mm256_loadu_si256((const __m256i *)(const void *)(b + g * PANEL + v * EIGHT));
                                __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(_mm256_and_si256(q, mask), low),
                                        _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi32(q, 4), mask), high));

                                sums[v] = _mm256_add_epi32(sums[v], _mm256_madd_epi16(pairs, ones));
                        }
                }
                for (int v = 0; v < vectors; v++) {
                        __m256 t = _mm256_cvtepi32_ps(sums[v]), scale = _mm256_loadu_ps(p->scales + at + v * EIGHT);

                        if (p->zeros)
                                t = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(
                                                             _mm_loadl_epi64((const void *)(p->zeros + at + v * EIGHT)))),
                                        _mm256_set1_ps((float)sum), t);
                        t = _mm256_mul_ps(t, _mm256_set1_ps(p->row_scales[row * p->blocks + block]));
                        totals[v] = _mm256_fmadd_ps(t, scale, totals[v]);
                }
        }
        for (int v = 0; v < vectors; v++)
                _mm256_storeu_ps(columns + (first + v) * EIGHT, totals[v]);
}

void SL_TILE(sl_nibble_bytes)(const struct sl_nibble_rows *p)
{
        for (int64_t panel = 0; panel * PANEL < p->columns; panel++)
                for (int64_t row = 0; row < p->rows; row++) {
                        float columns[PANEL];

                        pass_bytes(p, row, panel, 0, 4, columns);
                        store_columns(p->c + row * p->c_stride + panel * PANEL, columns, p->columns - panel * PANEL);
                }
}

/* The largest magnitude; a NaN, whose bits are larger than those of all numbers, stays. */
static float largest(const float *a, int64_t n)
{
        uint32_t most = 0;
        float value;

        for (int64_t i = 0; i < n; i++) {
                uint32_t magnitude;

                memcpy(&magnitude, a + i, sizeof(magnitude));
                magnitude &= 0x7fffffffu;
                most = magnitude > most ? magnitude : most;
        }
        memcpy(&value, &most, sizeof(value));
        return value;
}

static int32_t round_block(const float *a, int64_t n, float factor, int8_t *to)
{
        int32_t sum = 0;

        for (int64_t i = 0; i < n; i++) {
                int32_t q = (int32_t)rintf(a[i] * factor);

                to[i] = (int8_t)q;
                sum += q;
        }
        return sum;
}

void SL_TILE(sl_nibble_quantize)(
        const float *a, int64_t depth, int64_t room, int64_t block, int8_t *ret_bytes, float *ret_scales, int32_t *ret_sums)
{
        memset(ret_bytes + depth, 0, (size_t)(room - depth));
        for (int64_t at = 0, i = 0; at < depth; at += block, i++) {
                int64_t n = depth - at < block ? depth - at : block;
                float factor;

                sl_nibble_scale(largest(a + at, n), &ret_scales[i], &factor);
                ret_sums[i] = 0;
                if (factor > 0)
                        ret_sums[i] = round_block(a + at, n, factor, ret_bytes + at);
                else
                        memset(ret_bytes + at, 0, (size_t)n);
        }
}
