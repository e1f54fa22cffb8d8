/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of Softmax and LogSoftmax on processors that sl_cpu_has_avx2() says yes of. Pure; any thread. */
#pragma once

#include "cpu/base/isa.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * y = exp(x) / sum of exp(x) over a row of @n, or its logarithm; @y may be @x. All of a row is NaN that has a NaN, a +infinity, or
 * nothing but -infinity.
 */
SL_TILES(void, sl_softmax_row, (int64_t n, bool logarithm, float *y, const float *x), (n, logarithm, y, x))

/* Rows one behind the other that are so short are computed side by side, each to the same bits as by itself. */
#define SL_SOFTMAX_SHORT 8

/* The powers, not the logarithms, of @rows rows of @n, 1 to SL_SOFTMAX_SHORT. */
SL_TILES(void, sl_softmax_short_rows, (int64_t rows, int64_t n, float *y, const float *x), (rows, n, y, x))
