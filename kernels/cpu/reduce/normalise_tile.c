/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four vectors of partial sums, so that the sums of one row wait for each other no longer than they must; the processor has several
 * rows under way.
 */
#include "cpu/reduce/normalise_tile.h"

#include "cpu/base/vector.h"

#include <math.h>

#define LANES SL_VECTOR_FLOATS
#define SUMS  4
#define BLOCK 2048 /* floats of a row in one go */

static inline float join(const sl_vector sums[SUMS])
{
        return sl_vector_sum(sl_vector_add(sl_vector_add(sums[0], sums[1]), sl_vector_add(sums[2], sums[3])));
}

static inline float sum_block(int64_t n, const float *x)
{
        sl_vector sums[SUMS] = {sl_vector_zero(), sl_vector_zero(), sl_vector_zero(), sl_vector_zero()};
        int64_t i = 0;

        for (; i + SUMS * LANES <= n; i += SUMS * LANES)
#pragma GCC unroll 4
                for (int k = 0; k < SUMS; k++)
                        sums[k] = sl_vector_add(sums[k], sl_vector_load(x + i + k * LANES));
        for (; i < n; i += LANES)
                sums[0] = sl_vector_add(sums[0], sl_vector_load_lanes(sl_lanes_first(n - i), x + i));
        return join(sums);
}

static inline float square_block(int64_t n, const float *x, sl_vector mean)
{
        sl_vector sums[SUMS] = {sl_vector_zero(), sl_vector_zero(), sl_vector_zero(), sl_vector_zero()};
        int64_t i = 0;

        for (; i + SUMS * LANES <= n; i += SUMS * LANES)
#pragma GCC unroll 4
                for (int k = 0; k < SUMS; k++) {
                        sl_vector d = sl_vector_sub(sl_vector_load(x + i + k * LANES), mean);

                        sums[k] = sl_vector_fma(d, d, sums[k]);
                }
        for (; i < n; i += LANES) {
                sl_lanes lanes = sl_lanes_first(n - i);
                sl_vector d = sl_vector_where(lanes, sl_vector_sub(sl_vector_load_lanes(lanes, x + i), mean), sl_vector_zero());

                sums[0] = sl_vector_fma(d, d, sums[0]);
        }
        return join(sums);
}

/* A longer row is the sum of its halves, as in rows.c. */
static int64_t half_of(int64_t n)
{
        return (n / 2 + BLOCK - 1) / BLOCK * BLOCK;
}

static float sum_of(int64_t n, const float *x)
{
        int64_t half = half_of(n);

        return n <= BLOCK ? sum_block(n, x) : sum_of(half, x) + sum_of(n - half, x + half);
}

static float squares_of(int64_t n, const float *x, sl_vector mean)
{
        int64_t half = half_of(n);

        return n <= BLOCK ? square_block(n, x, mean) : squares_of(half, x, mean) + squares_of(n - half, x + half, mean);
}

struct scaling {
        sl_vector mean, factor;
        const float *gamma, *beta;
};

static inline __attribute__((always_inline)) void scale(
        const struct scaling *s, float *y, const float *x, int64_t i, sl_lanes lanes)
{
        sl_vector scaled = sl_vector_mul(sl_vector_sub(sl_vector_load_lanes(lanes, x + i), s->mean), s->factor);
        sl_vector shift = s->beta ? sl_vector_load_lanes(lanes, s->beta + i) : sl_vector_zero();

        sl_vector_store_lanes(y + i, lanes, sl_vector_fma(scaled, sl_vector_load_lanes(lanes, s->gamma + i), shift));
}

void SL_TILE(sl_normalise_row)(int64_t n, float *y, const float *x, float epsilon, const float *gamma, const float *beta)
{
        const float share = 1.0f / (float)n;
        struct scaling s = {.mean = sl_vector_set(sum_of(n, x) * share), .gamma = gamma, .beta = beta};
        int64_t i = 0;

        s.factor = sl_vector_set(1.0f / sqrtf(squares_of(n, x, s.mean) * share + epsilon));
        for (; i + LANES <= n; i += LANES)
                scale(&s, y, x, i, sl_lanes_all());
        if (i < n)
                scale(&s, y, x, i, sl_lanes_first(n - i));
}
