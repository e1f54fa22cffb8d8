/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of an LSTM on processors that sl_cpu_has_avx512() says yes of. Pure; any thread. */
#pragma once

#include <stdint.h>

/* One sample of @n cells: @gates are the sums of input, output, forget and cell, @n each; @c and @h become the next state. */
void sl_lstm_cells_avx512(int64_t n, const float *gates, float *c, float *h);
