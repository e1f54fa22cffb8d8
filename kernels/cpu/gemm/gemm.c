/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packed form, which is the same on every processor.
 */
#include "cpu/gemm/gemm.h"

#include "cpu/base/narrow.h"
#include "target.h"

#include <errno.h>
#include <immintrin.h>
#include <stddef.h>
#include <string.h>

int64_t sl_gemm_packed_floats(int64_t depth, int64_t columns)
{
        int64_t tail = columns % SL_GEMM_PANEL;

        return depth * (columns - tail + (tail > SL_GEMM_PANEL / 2 ? SL_GEMM_PANEL : tail ? SL_GEMM_PANEL / 2 : 0));
}

static int64_t least_of(int64_t a, int64_t b)
{
        return a < b ? a : b;
}

#define PACK_STEPS 64 /* of depth, of which a column that is contiguous has a few cache lines, one behind the other */
#define SQUARE     4
#define BAND_STEPS 16 /* of rows that are contiguous: 2 KiB of each panel, one behind the other */

/* @n_steps of @n_columns, at most SQUARE of each, one element after another. */
static void pack_corner(const char *b, int64_t n_steps, int64_t n_columns, int64_t width, int64_t column_bytes, float *ret_packed)
{
        for (int64_t n = 0; n < n_columns; n++)
                for (int64_t k = 0; k < n_steps; k++)
                        memcpy(&ret_packed[k * width + n], b + n * column_bytes + k * (int64_t)sizeof(float), sizeof(float));
}

/* SQUARE of both, in vectors that every x86-64 has. */
static void pack_square(const char *b, int64_t width, int64_t column_bytes, float *ret_packed)
{
        __m128 rows[SQUARE];

        for (int n = 0; n < SQUARE; n++)
                rows[n] = _mm_loadu_ps((const float *)(const void *)(b + n * column_bytes));
        _MM_TRANSPOSE4_PS(rows[0], rows[1], rows[2], rows[3]);
        for (int k = 0; k < SQUARE; k++)
                _mm_storeu_ps(ret_packed + k * width, rows[k]);
}

/* Of one panel: @own of its @width columns, @n_steps of its depth, which follow each other in a column. */
static void pack_columns(const char *b, int64_t n_steps, int64_t own, int64_t width, int64_t column_bytes, float *ret_packed)
{
        for (int64_t n = 0; n < own; n += SQUARE) {
                int64_t n_columns = least_of(own - n, SQUARE);

                for (int64_t k = 0; k < n_steps; k += SQUARE) {
                        const char *from = b + n * column_bytes + k * (int64_t)sizeof(float);
                        int64_t n_here = least_of(n_steps - k, SQUARE);

                        if (n_columns == SQUARE && n_here == SQUARE)
                                pack_square(from, width, column_bytes, ret_packed + k * width + n);
                        else
                                pack_corner(from, n_here, n_columns, width, column_bytes, ret_packed + k * width + n);
                }
        }
        for (int64_t k = 0; k < n_steps && own < width; k++)
                memset(ret_packed + k * width + own, 0, (size_t)(width - own) * sizeof(float));
}

static void pack_row(const char *b, int64_t own, int64_t width, int64_t column_bytes, float *ret_packed)
{
        if (column_bytes == sizeof(float) && own == SL_GEMM_PANEL) {
                memcpy(ret_packed, b, SL_GEMM_PANEL * sizeof(float)); /* of a size that the compiler knows */
                return;
        }
        if (column_bytes == sizeof(float))
                memcpy(ret_packed, b, (size_t)own * sizeof(float));
        for (int64_t n = 0; n < own && column_bytes != sizeof(float); n++)
                memcpy(&ret_packed[n], b + n * column_bytes, sizeof(float));
        if (own < width)
                memset(ret_packed + own, 0, (size_t)(width - own) * sizeof(float));
}

/* Where a matrix lies: bytes from step to step of its depth, and from column to column. */
struct source {
        const char *b;
        int64_t step_bytes, column_bytes;
};

/* The first @n_steps of a panel, at most PACK_STEPS. */
static void pack_steps(const struct source *from, int64_t n_steps, int64_t own, int64_t width, float *ret_packed)
{
        if (from->step_bytes == sizeof(float) && from->column_bytes != sizeof(float))
                pack_columns(from->b, n_steps, own, width, from->column_bytes, ret_packed);
        else
                for (int64_t k = 0; k < n_steps; k++)
                        pack_row(from->b + k * from->step_bytes, own, width, from->column_bytes, ret_packed + k * width);
}

static struct source source_of(const void *b, int64_t depth_stride, int64_t column_stride)
{
        return (struct source){b, depth_stride * (int64_t)sizeof(float), column_stride * (int64_t)sizeof(float)};
}

/* Of all panels, steps [@from, @end) of the depth. */
static void pack_band(const struct source *all, int64_t depth, int64_t columns, int64_t from, int64_t end, float *ret_packed)
{
        for (int64_t first = 0; first < columns; first += SL_GEMM_PANEL) {
                int64_t own = least_of(columns - first, SL_GEMM_PANEL);
                int64_t width = own > SL_GEMM_PANEL / 2 ? SL_GEMM_PANEL : SL_GEMM_PANEL / 2;

                for (int64_t k = from; k < end; k += PACK_STEPS) {
                        struct source steps = *all;

                        steps.b += first * all->column_bytes + k * all->step_bytes;
                        pack_steps(&steps, least_of(end - k, PACK_STEPS), own, width, ret_packed + k * width);
                }
                ret_packed += depth * width;
        }
}

/* A matrix is read as it lies: rows band by band, all panels of one at once, and columns from their beginning to their end. */
void sl_gemm_pack(const void *b, int64_t depth, int64_t columns, int64_t depth_stride, int64_t column_stride, float *ret_packed)
{
        const struct source all = source_of(b, depth_stride, column_stride);
        int64_t band = column_stride == 1 ? BAND_STEPS : depth;

        for (int64_t k = 0; k < depth; k += band)
                pack_band(&all, depth, columns, k, least_of(depth, k + band), ret_packed);
}

int sl_gemm_pack_narrow(const void *b, int64_t depth, int64_t columns, int64_t depth_stride, int64_t column_stride, uint32_t dtype,
        uint16_t *ret_packed)
{
        const struct source all = source_of(b, depth_stride, column_stride);
        float wide[PACK_STEPS * SL_GEMM_PANEL];

        for (int64_t first = 0; first < columns; first += SL_GEMM_PANEL) {
                int64_t own = least_of(columns - first, SL_GEMM_PANEL);
                int64_t width = own > SL_GEMM_PANEL / 2 ? SL_GEMM_PANEL : SL_GEMM_PANEL / 2;

                for (int64_t k = 0; k < depth; k += PACK_STEPS) {
                        int64_t n_steps = least_of(depth - k, PACK_STEPS);
                        struct source from = all;

                        from.b += first * all.column_bytes + k * all.step_bytes;
                        pack_steps(&from, n_steps, own, width, wide);
                        if (sl_narrow(dtype, wide, n_steps * width, ret_packed + k * width) < 0)
                                return -ERANGE;
                }
                ret_packed += depth * width;
        }
        return 0;
}

/* Beyond what two runs differ by. */
#define GAIN 1.05

struct sl_gemm_reading sl_gemm_reading(const struct sl_core_figures *core)
{
        return (struct sl_gemm_reading){core && core->abreast > GAIN, core && core->fetched > GAIN};
}

bool sl_gemm_passes(int64_t rows, int64_t bytes)
{
        return rows <= SL_GEMM_PASSING_ROWS && bytes > sl_gemm_resident_bytes();
}

void sl_gemm_take(struct sl_gemm *gemm, const struct sl_part *part)
{
        struct sl_part rows = sl_part_along(part, SL_AXIS_ROWS, gemm->rows);
        struct sl_part panels = sl_part_along(part, SL_AXIS_COLUMNS, sl_gemm_panels(gemm->columns));
        int64_t first = panels.first * SL_GEMM_PANEL, end = panels.end * SL_GEMM_PANEL;

        gemm->a += rows.first * gemm->a_stride;
        gemm->b = gemm->narrow ? NULL : gemm->b + first * gemm->depth;
        gemm->narrow = gemm->narrow ? gemm->narrow + first * gemm->depth : NULL;
        gemm->c += rows.first * gemm->c_stride + first;
        gemm->bias = gemm->bias ? gemm->bias + first : NULL;
        gemm->residual = gemm->residual ? gemm->residual + rows.first * gemm->residual_stride + first : NULL;
        gemm->rows = rows.end - rows.first;
        gemm->columns = (end < gemm->columns ? end : gemm->columns) - first;
}
