/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Five quotients for each cell: as products with reciprocals they take half the time.
 */
#include "cpu/lstm_avx512.h"

#include "cpu/vector.h"

static inline __m512 sigmoid(__m512 x)
{
        return sl_vector_logistic(_mm512_mul_ps(x, sl_vector_set(-0x1.715476p+0f)));
}

/* The cells at @i, of which there are @lanes. */
static inline __attribute__((always_inline)) void step(
        int64_t n, int64_t i, __mmask16 lanes, const float *gates, float *c, float *h)
{
        __m512 in = sigmoid(_mm512_maskz_loadu_ps(lanes, gates + i)), out = sigmoid(_mm512_maskz_loadu_ps(lanes, gates + n + i));
        __m512 forget = sigmoid(_mm512_maskz_loadu_ps(lanes, gates + 2 * n + i));
        __m512 added = _mm512_mul_ps(in, sl_vector_tanh(_mm512_maskz_loadu_ps(lanes, gates + 3 * n + i)));
        __m512 cell = _mm512_fmadd_ps(forget, _mm512_maskz_loadu_ps(lanes, c + i), added);

        _mm512_mask_storeu_ps(c + i, lanes, cell);
        _mm512_mask_storeu_ps(h + i, lanes, _mm512_mul_ps(out, sl_vector_tanh(cell)));
}

void sl_lstm_cells_avx512(int64_t n, const float *gates, float *c, float *h)
{
        int64_t i = 0;

        for (; i + SL_VECTOR_FLOATS <= n; i += SL_VECTOR_FLOATS)
                step(n, i, 0xffff, gates, c, h);
        if (i < n)
                step(n, i, sl_vector_mask(n - i), gates, c, h);
}
