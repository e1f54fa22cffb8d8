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
