/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of LayerNormalization on processors that sl_cpu_has_avx2() says yes of. Pure; any thread. */
#pragma once

#include "cpu/base/isa.h"

#include <stdint.h>

/* y = (x - mean) / sqrt(variance + epsilon) * gamma + beta over a row of @n; @beta may be NULL, @y may be @x. */
SL_TILES(void, sl_normalise_row, (int64_t n, float *y, const float *x, float epsilon, const float *gamma, const float *beta),
        (n, y, x, epsilon, gamma, beta))
