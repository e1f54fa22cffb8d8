/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Five quotients for each cell: as products with reciprocals they take half the time.
 */
#include "cpu/rnn/lstm_tile.h"

#include "cpu/base/vector.h"

static inline sl_vector sigmoid(sl_vector x)
{
        return sl_vector_logistic(sl_vector_mul(x, sl_vector_set(-0x1.715476p+0f)));
}

/* The cells at @i, of which there are @lanes. */
static inline __attribute__((always_inline)) void step(
        int64_t apart, int64_t i, sl_lanes lanes, const float *gates, float *c, float *h)
{
        sl_vector in = sigmoid(sl_vector_load_lanes(lanes, gates + i)),
                  out = sigmoid(sl_vector_load_lanes(lanes, gates + apart + i));
        sl_vector forget = sigmoid(sl_vector_load_lanes(lanes, gates + 2 * apart + i));
        sl_vector added = sl_vector_mul(in, sl_vector_tanh(sl_vector_load_lanes(lanes, gates + 3 * apart + i)));
        sl_vector cell = sl_vector_fma(forget, sl_vector_load_lanes(lanes, c + i), added);

        sl_vector_store_lanes(c + i, lanes, cell);
        sl_vector_store_lanes(h + i, lanes, sl_vector_mul(out, sl_vector_tanh(cell)));
}

void SL_TILE(sl_lstm_cells)(int64_t apart, int64_t n, const float *gates, float *c, float *h)
{
        int64_t i = 0;

        for (; i + SL_VECTOR_FLOATS <= n; i += SL_VECTOR_FLOATS)
                step(apart, i, sl_lanes_all(), gates, c, h);
        if (i < n)
                step(apart, i, sl_lanes_first(n - i), gates, c, h);
}
