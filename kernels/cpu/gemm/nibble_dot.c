/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of bytes by nibbles with VNNI: the nibbles are the unsigned operand of VPDPBUSD, so that nothing has to be added to either.
 */
#include "cpu/gemm/nibble.h"
#include "shape/nibbles.h"

#include <immintrin.h>
#include <string.h>

#define PANEL   SL_NIBBLE_PANEL
#define FLOATS  16
#define VECTORS (PANEL / FLOATS)
#define ROWS    6 /* of a tile: sums, totals and two vectors of nibbles in 32 registers */
#define ABREAST 4 /* panels by one row */
#define INLINE  static inline __attribute__((always_inline))

INLINE int64_t place(const struct sl_nibble_rows *p, int64_t panel, int64_t block, int v)
{
        return ((panel + v / VECTORS) * p->blocks + block) * PANEL + v % VECTORS * FLOATS;
}

INLINE __m512i four_of(const int8_t *bytes)
{
        int32_t four;

        memcpy(&four, bytes, sizeof(four));
        return _mm512_set1_epi32(four);
}

/* @rows, @panels and @has_zeros are constants where it is called. */
INLINE void pass(const struct sl_nibble_rows *p, int64_t row, int64_t panel, const int rows, const int panels, const bool has_zeros)
{
        const __m512i mask = _mm512_set1_epi8(15);
        __m512 totals[ROWS][ABREAST * VECTORS];

#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
                for (int v = 0; v < panels * VECTORS; v++)
                        totals[r][v] = _mm512_setzero_ps();
        for (int64_t block = 0; block < p->blocks; block++) {
                int64_t first = block * p->block_groups, left = p->groups - first,
                        n = left < p->block_groups ? left : p->block_groups;
                const int32_t *row_sums = p->row_sums + row * p->blocks + block;
                __m512i sums[ROWS][ABREAST * VECTORS];

#pragma GCC unroll 8
                for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
                        for (int v = 0; v < panels * VECTORS; v++)
                                sums[r][v] = _mm512_set1_epi32(has_zeros ? 0 : -SL_NIBBLE_CONSTANTS * row_sums[r * p->blocks]);
                for (int64_t g = first; g < first + n; g++) {
                        const int8_t *a = p->bytes + (row * p->groups + g) * SL_NIBBLE_GROUP;

#pragma GCC unroll 8
                        for (int v = 0; v < panels * VECTORS; v++) {
                                __m512i q = _mm512_loadu_si512(
                                        p->b + ((panel + v / VECTORS) * p->groups + g) * PANEL + v % VECTORS * FLOATS);
                                __m512i low = _mm512_and_si512(q, mask), high = _mm512_and_si512(_mm512_srli_epi32(q, 4), mask);

#pragma GCC unroll 8
                                for (int r = 0; r < rows; r++) {
                                        const int8_t *at = a + r * p->groups * SL_NIBBLE_GROUP;

                                        sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], low, four_of(at));
                                        sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], high, four_of(at + 4));
                                }
                        }
                }
#pragma GCC unroll 8
                for (int v = 0; v < panels * VECTORS; v++) {
                        int64_t at = place(p, panel, block, v);
                        __m512 scale = _mm512_loadu_ps(p->scales + at), zeros = _mm512_setzero_ps();

                        if (has_zeros)
                                zeros = _mm512_cvtepi32_ps(
                                        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p->zeros + at))));
#pragma GCC unroll 8
                        for (int r = 0; r < rows; r++) {
                                __m512 t = _mm512_cvtepi32_ps(sums[r][v]);

                                if (has_zeros)
                                        t = _mm512_fnmadd_ps(zeros, _mm512_set1_ps((float)row_sums[r * p->blocks]), t);
                                t = _mm512_mul_ps(t, _mm512_set1_ps(p->row_scales[(row + r) * p->blocks + block]));
                                totals[r][v] = _mm512_fmadd_ps(t, scale, totals[r][v]);
                        }
                }
        }
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
                for (int v = 0; v < panels * VECTORS; v++) {
                        int64_t column = (panel + v / VECTORS) * PANEL + v % VECTORS * FLOATS, columns = p->columns - column;
                        __mmask16 lanes = (__mmask16)(columns >= FLOATS ? 0xffffu : columns > 0 ? (1u << columns) - 1u : 0u);

                        _mm512_mask_storeu_ps(p->c + (row + r) * p->c_stride + column, lanes, totals[r][v]);
                }
}

INLINE void pass_panel(const struct sl_nibble_rows *p, int64_t row, int64_t rows, int64_t panel, const bool has_zeros)
{
        switch (rows) {
        case 1:
                pass(p, row, panel, 1, 1, has_zeros);
                break;
        case 2:
                pass(p, row, panel, 2, 1, has_zeros);
                break;
        case 3:
                pass(p, row, panel, 3, 1, has_zeros);
                break;
        case 4:
                pass(p, row, panel, 4, 1, has_zeros);
                break;
        case 5:
                pass(p, row, panel, 5, 1, has_zeros);
                break;
        default:
                pass(p, row, panel, ROWS, 1, has_zeros);
                break;
        }
}

INLINE void pass_all(const struct sl_nibble_rows *p, const bool has_zeros)
{
        int64_t panels = (p->columns + PANEL - 1) / PANEL, panel = 0;

        for (; p->rows == 1 && panel + ABREAST <= panels; panel += ABREAST)
                pass(p, 0, panel, 1, ABREAST, has_zeros);
        for (; panel < panels; panel++)
                for (int64_t row = 0; row < p->rows; row += ROWS)
                        pass_panel(p, row, p->rows - row, panel, has_zeros);
}

void sl_nibble_dot(const struct sl_nibble_rows *p)
{
        if (p->zeros)
                pass_all(p, true);
        else
                pass_all(p, false);
}
