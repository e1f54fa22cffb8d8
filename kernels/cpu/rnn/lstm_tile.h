/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of an LSTM on processors that sl_cpu_has_avx2() says yes of. Pure; any thread. */
#pragma once

#include "cpu/base/isa.h"

#include <stdint.h>

/*
 * @n cells of one sample: @gates are the sums of input, output, forget and cell, so far @apart; @c becomes the next state, and @h,
 * which is not read.
 */
SL_TILES(void, sl_lstm_cells, (int64_t apart, int64_t n, const float *gates, float *c, float *h), (apart, n, gates, c, h))
