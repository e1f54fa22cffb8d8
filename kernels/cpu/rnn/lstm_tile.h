/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of an LSTM on processors that sl_cpu_has_avx2() says yes of. Pure; any thread. */
#pragma once

#include "cpu/base/isa.h"

#include <stdint.h>

/* One sample of @n cells: @gates are the sums of input, output, forget and cell, @n each; @c and @h become the next state. */
SL_TILES(void, sl_lstm_cells, (int64_t n, const float *gates, float *c, float *h), (n, gates, c, h))
