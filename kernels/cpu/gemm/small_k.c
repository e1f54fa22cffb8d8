/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/gemm/small_k.h"

#include "cpu/base/vector.h"
#include "cpu/gemm/epilogue.h"

#include <math.h>

#define INLINE static inline __attribute__((always_inline))

/* So many rows at a time that their sums do not wait for each other. */
#define ROWS 4

INLINE void sum_rows(const struct sl_gemm *g, const sl_vector *weights, sl_vector bias, const float *a, float *c, int depth,
        int rows, sl_lanes mask)
{
        const sl_vector least = sl_vector_set(g->epilogue->least), most = sl_vector_set(g->epilogue->most);
        sl_vector sums[ROWS];

#pragma GCC unroll 4
        for (int row = 0; row < rows; row++)
                sums[row] = bias;
#pragma GCC unroll 24
        for (int k = 0; k < depth; k++)
#pragma GCC unroll 4
                for (int row = 0; row < rows; row++)
                        sums[row] = sl_vector_fma(sl_vector_set(a[row * depth + k]), weights[k], sums[row]);
#pragma GCC unroll 4
        for (int row = 0; row < rows; row++)
                sl_vector_store_lanes(c + row * g->c_stride, mask, sl_vector_clip(sums[row], least, most));
}

/* Columns @first to @first + 16. */
INLINE void run_vector(const struct sl_gemm *g, int depth, int64_t width, int64_t first)
{
        const float *a = g->a;
        const sl_lanes mask = sl_lanes_first(g->columns - first);
        sl_vector bias = g->bias ? sl_vector_load_lanes(mask, g->bias + first) : sl_vector_zero(), weights[24];
        float *c = g->c + first;
        int64_t row = 0;

#pragma GCC unroll 24
        for (int k = 0; k < depth; k++)
                weights[k] = sl_vector_load(g->b + k * width + first);
        for (; row + ROWS <= g->rows; row += ROWS, a += ROWS * depth, c += ROWS * g->c_stride)
                sum_rows(g, weights, bias, a, c, depth, ROWS, mask);
        for (; row < g->rows; row++, a += depth, c += g->c_stride)
                sum_rows(g, weights, bias, a, c, depth, 1, mask);
}

INLINE void run_panel(const struct sl_gemm *g, int depth)
{
        int64_t width = g->columns > SL_VECTOR_FLOATS ? SL_GEMM_PANEL : SL_VECTOR_FLOATS;

        for (int64_t first = 0; first < g->columns; first += SL_VECTOR_FLOATS)
                run_vector(g, depth, width, first);
}

static void run_16(const struct sl_gemm *g)
{
        run_panel(g, 16);
}

static void run_24(const struct sl_gemm *g)
{
        run_panel(g, 24);
}

void sl_small_k_run(const struct sl_gemm *g)
{
        (g->depth == 16 ? run_16 : run_24)(g);
        if (g->epilogue->activation)
                sl_cpu_epilogue_activate(g->epilogue, g->c, g->c_stride, g->rows, g->columns);
}
