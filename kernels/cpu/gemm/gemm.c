/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packed form, which is the same on every processor.
 */
#include "cpu/gemm/gemm.h"

#include <stddef.h>

int64_t sl_gemm_packed_floats(int64_t depth, int64_t columns)
{
        int64_t tail = columns % SL_GEMM_PANEL;

        return depth * (columns - tail + (tail > SL_GEMM_PANEL / 2 ? SL_GEMM_PANEL : tail ? SL_GEMM_PANEL / 2 : 0));
}

void sl_gemm_pack(const float *b, int64_t depth, int64_t columns, int64_t depth_stride, int64_t column_stride, float *ret_packed)
{
        for (int64_t first = 0; first < columns; first += SL_GEMM_PANEL) {
                int64_t own = columns - first < SL_GEMM_PANEL ? columns - first : SL_GEMM_PANEL;
                int64_t width = own > SL_GEMM_PANEL / 2 ? SL_GEMM_PANEL : SL_GEMM_PANEL / 2;

                for (int64_t k = 0; k < depth; k++, ret_packed += width)
                        for (int64_t n = 0; n < width; n++)
                                ret_packed[n] = n < own ? b[k * depth_stride + (first + n) * column_stride] : 0.0f;
        }
}

bool sl_gemm_passes(int64_t rows, int64_t depth, int64_t columns)
{
        return rows <= SL_GEMM_PASSING_ROWS && depth * columns > sl_gemm_resident_floats();
}

void sl_gemm_take(struct sl_gemm *gemm, const struct sl_part *part)
{
        struct sl_part rows = sl_part_along(part, SL_AXIS_ROWS, gemm->rows);
        struct sl_part panels = sl_part_along(part, SL_AXIS_COLUMNS, sl_gemm_panels(gemm->columns));
        int64_t first = panels.first * SL_GEMM_PANEL, end = panels.end * SL_GEMM_PANEL;

        gemm->a += rows.first * gemm->a_stride;
        gemm->b += first * gemm->depth;
        gemm->c += rows.first * gemm->c_stride + first;
        gemm->bias = gemm->bias ? gemm->bias + first : NULL;
        gemm->residual = gemm->residual ? gemm->residual + rows.first * gemm->residual_stride + first : NULL;
        gemm->rows = rows.end - rows.first;
        gemm->columns = (end < gemm->columns ? end : gemm->columns) - first;
}
