/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row by a packed matrix, for each of K lanes, the matrices one behind the other: what sl_gemm_run() would do for each, with
 * the same bits, without what that takes to plan a product of many rows.
 */
#pragma once

#include "cpu/gemm/epilogue.h"

#include <stdint.h>

struct sl_row_lanes {
        const float *a, *b;           /* [lane][depth]; [lane] of what sl_gemm_pack() makes */
        float *c;                     /* [lane][columns] */
        const float *bias, *residual; /* or NULL */
        int64_t lanes, depth, columns;
        int64_t b_stride, bias_stride; /* from lane to lane, in floats */
        const struct sl_cpu_epilogue *epilogue;
};

/* For processors with AVX2. */
SL_TILES(void, sl_row_lanes_run, (const struct sl_row_lanes *r), (r))
