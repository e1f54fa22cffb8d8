/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Up to four panels of columns at a time: enough sums under way to wait for nothing but the matrix.
 */
#include "cpu/base/vector.h"
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/row_lanes.h"

#define INLINE   static inline __attribute__((always_inline))
#define VECTOR   SL_VECTOR_FLOATS
#define OF_PANEL (SL_GEMM_PANEL / SL_VECTOR_FLOATS)
#define SUMS_MAX 8

/* Some columns of one lane. */
struct columns {
        const float *a, *b, *bias, *residual;
        float *c;
        int64_t depth, width; /* width: columns that there are */
};

INLINE sl_lanes lanes_of(const struct columns *k, int v)
{
        int64_t left = k->width - v * VECTOR;

        return sl_lanes_first(left > 0 ? left : 0);
}

/* @vectors and @panel are constants in each call: floats of a step of the depth in a panel. */
INLINE void run_columns(const struct columns *k, const struct sl_cpu_epilogue *epilogue, int vectors, int panel)
{
        const sl_vector least = sl_vector_set(epilogue->least), most = sl_vector_set(epilogue->most);
        const int of_panel = panel / VECTOR;
        sl_vector sums[SUMS_MAX];

#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
                sums[v] = k->bias ? sl_vector_load_lanes(lanes_of(k, v), k->bias + v * VECTOR) : sl_vector_zero();
        for (int64_t step = 0; step < k->depth; step++) {
                sl_vector a = sl_vector_set(k->a[step]);

#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++)
                        sums[v] = sl_vector_fma(a,
                                sl_vector_load(k->b + v / of_panel * k->depth * panel + step * panel + v % of_panel * VECTOR),
                                sums[v]);
        }
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
                if (k->residual)
                        sums[v] = sl_vector_add(sums[v], sl_vector_load_lanes(lanes_of(k, v), k->residual + v * VECTOR));
                sl_vector_store_lanes(k->c + v * VECTOR, lanes_of(k, v), sl_vector_clip(sums[v], least, most));
        }
}

/* Returns how many columns it has done. */
static int64_t run_some(const struct columns *k, const struct sl_cpu_epilogue *epilogue)
{
        if (k->width <= SL_GEMM_PANEL / 2) {
                run_columns(k, epilogue, OF_PANEL / 2, SL_GEMM_PANEL / 2);
                return k->width;
        }
        if (OF_PANEL == 2 && k->width > 7 * VECTOR) {
                run_columns(k, epilogue, 8, SL_GEMM_PANEL);
                return 8 * VECTOR;
        }
        if (k->width > SL_GEMM_PANEL + SL_GEMM_PANEL / 2) {
                run_columns(k, epilogue, 2 * OF_PANEL, SL_GEMM_PANEL);
                return 2 * SL_GEMM_PANEL;
        }
        run_columns(k, epilogue, OF_PANEL, SL_GEMM_PANEL);
        return SL_GEMM_PANEL;
}

static void run_lane(const struct sl_row_lanes *r, int64_t lane)
{
        const float *bias = r->bias ? r->bias + lane * r->bias_stride : NULL;
        const float *residual = r->residual ? r->residual + lane * r->columns : NULL;

        for (int64_t at = 0; at < r->columns;) {
                struct columns k = {.a = r->a + lane * r->depth,
                        .b = r->b + lane * r->b_stride + at * r->depth,
                        .bias = bias ? bias + at : NULL,
                        .residual = residual ? residual + at : NULL,
                        .c = r->c + lane * r->columns + at,
                        .depth = r->depth,
                        .width = r->columns - at};

                at += run_some(&k, r->epilogue);
        }
}

void SL_TILE(sl_row_lanes_run)(const struct sl_row_lanes *r)
{
        for (int64_t lane = 0; lane < r->lanes; lane++)
                run_lane(r, lane);
        if (r->epilogue->activation)
                sl_cpu_epilogue_activate(r->epilogue, r->c, r->columns, r->lanes, r->columns);
}
