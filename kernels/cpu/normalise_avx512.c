/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four vectors of partial sums, so that the sums of one row wait for each other no longer than they must; the processor has several
 * rows under way.
 */
#include "cpu/normalise_avx512.h"

#include "cpu/vector.h"

#include <math.h>

#define LANES SL_VECTOR_FLOATS
#define SUMS  4

static inline float join(const __m512 sums[SUMS])
{
        return _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

static inline float sum_of(int64_t n, const float *x)
{
        __m512 sums[SUMS] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
        int64_t i = 0;

        for (; i + SUMS * LANES <= n; i += SUMS * LANES)
#pragma GCC unroll 4
                for (int k = 0; k < SUMS; k++)
                        sums[k] = _mm512_add_ps(sums[k], _mm512_loadu_ps(x + i + k * LANES));
        for (; i < n; i += LANES)
                sums[0] = _mm512_add_ps(sums[0], _mm512_maskz_loadu_ps(sl_vector_mask(n - i), x + i));
        return join(sums);
}

static inline float squares_of(int64_t n, const float *x, __m512 mean)
{
        __m512 sums[SUMS] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
        int64_t i = 0;

        for (; i + SUMS * LANES <= n; i += SUMS * LANES)
#pragma GCC unroll 4
                for (int k = 0; k < SUMS; k++) {
                        __m512 d = _mm512_sub_ps(_mm512_loadu_ps(x + i + k * LANES), mean);

                        sums[k] = _mm512_fmadd_ps(d, d, sums[k]);
                }
        for (; i < n; i += LANES) {
                __mmask16 lanes = sl_vector_mask(n - i);
                __m512 d = _mm512_maskz_sub_ps(lanes, _mm512_maskz_loadu_ps(lanes, x + i), mean);

                sums[0] = _mm512_fmadd_ps(d, d, sums[0]);
        }
        return join(sums);
}

struct scaling {
        __m512 mean, factor;
        const float *gamma, *beta;
};

static inline __attribute__((always_inline)) void scale(
        const struct scaling *s, float *y, const float *x, int64_t i, __mmask16 lanes)
{
        __m512 scaled = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(lanes, x + i), s->mean), s->factor);
        __m512 shift = s->beta ? _mm512_maskz_loadu_ps(lanes, s->beta + i) : _mm512_setzero_ps();

        _mm512_mask_storeu_ps(y + i, lanes, _mm512_fmadd_ps(scaled, _mm512_maskz_loadu_ps(lanes, s->gamma + i), shift));
}

void sl_normalise_row_avx512(int64_t n, float *y, const float *x, float epsilon, const float *gamma, const float *beta)
{
        const float share = 1.0f / (float)n;
        struct scaling s = {.mean = sl_vector_set(sum_of(n, x) * share), .gamma = gamma, .beta = beta};
        int64_t i = 0;

        s.factor = sl_vector_set(1.0f / sqrtf(squares_of(n, x, s.mean) * share + epsilon));
        for (; i + LANES <= n; i += LANES)
                scale(&s, y, x, i, 0xffff);
        if (i < n)
                scale(&s, y, x, i, sl_vector_mask(n - i));
}
