/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/base/rows.h"

#include "cpu/base/operator.h"

#include <math.h>
#include <string.h>

#define LANES   16
#define VECTORS 4 /* whose sums do not wait for each other */

/* A longer row is the sum of its halves, so that the rounding error grows with the logarithm of its length. */
#define BLOCK 1024

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t bits __attribute__((vector_size(LANES * sizeof(float))));

/* What is made of the vector v before it is added. */
#define DEFINE_SUM(name, parameters, value)                                                                                        \
        SL_CPU_CLONES static float name parameters                                                                                 \
        {                                                                                                                          \
                vector sums[VECTORS] = {0}, v;                                                                                     \
                float lanes[LANES] = {0};                                                                                          \
                int64_t i = 0;                                                                                                     \
                                                                                                                                   \
                for (; i + VECTORS * LANES <= n; i += VECTORS * LANES)                                                             \
                        for (int k = 0; k < VECTORS; k++) {                                                                        \
                                memcpy(&v, x + i + k * LANES, sizeof(v));                                                          \
                                sums[k] += value;                                                                                  \
                        }                                                                                                          \
                for (; i + LANES <= n; i += LANES) {                                                                               \
                        memcpy(&v, x + i, sizeof(v));                                                                              \
                        sums[0] += value;                                                                                          \
                }                                                                                                                  \
                if (i < n) {                                                                                                       \
                        for (int j = 0; j < LANES; j++)                                                                            \
                                v[j] = i + j < n ? x[i + j] : nothing;                                                             \
                        sums[1] += value;                                                                                          \
                }                                                                                                                  \
                sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);                                                               \
                memcpy(lanes, &sums[0], sizeof(lanes));                                                                            \
                for (int half = LANES / 2; half > 0; half /= 2)                                                                    \
                        for (int j = 0; j < half; j++)                                                                             \
                                lanes[j] += lanes[j + half];                                                                       \
                return lanes[0];                                                                                                   \
        }

#define MAGNITUDE ((vector)((bits)v & INT32_MAX))

DEFINE_SUM(sum_block, (const float *x, float nothing, int64_t n), v)
DEFINE_SUM(sum_absolute_block, (const float *x, float nothing, int64_t n), MAGNITUDE)
DEFINE_SUM(sum_square_block, (const float *x, float nothing, int64_t n), ((v - nothing) * (v - nothing)))

static int64_t half_of(int64_t n)
{
        return (n / 2 + BLOCK - 1) / BLOCK * BLOCK;
}

typedef float sum_of_block(const float *x, float nothing, int64_t n);

/* @nothing: an element that adds nothing. */
static float sum_in_halves(sum_of_block *block, const float *x, float nothing, int64_t n)
{
        int64_t half = half_of(n);

        if (n <= BLOCK)
                return block(x, nothing, n);
        return sum_in_halves(block, x, nothing, half) + sum_in_halves(block, x + half, nothing, n - half);
}

float sl_row_sum(const float *x, int64_t n)
{
        return sum_in_halves(sum_block, x, 0, n);
}

float sl_row_sum_absolute(const float *x, int64_t n)
{
        return sum_in_halves(sum_absolute_block, x, 0, n);
}

float sl_row_sum_square(const float *x, float centre, int64_t n)
{
        return sum_in_halves(sum_square_block, x, centre, n);
}

/* What each lane does with an element, and how two lanes are joined (always the upper half onto the lower one). */
#define DEFINE_EXTREME(name, first, join)                                                                                          \
        SL_CPU_CLONES float name(const float *x, int64_t n)                                                                        \
        {                                                                                                                          \
                float lanes[LANES];                                                                                                \
                int64_t i = 0;                                                                                                     \
                                                                                                                                   \
                for (int j = 0; j < LANES; j++)                                                                                    \
                        lanes[j] = first;                                                                                          \
                for (; i + LANES <= n; i += LANES)                                                                                 \
                        for (int j = 0; j < LANES; j++) {                                                                          \
                                float lane = lanes[j], value = x[i + j];                                                           \
                                lanes[j] = join;                                                                                   \
                        }                                                                                                          \
                /* Of a long row the last ones, some of them once more, which changes nothing. */                                  \
                i = i < n && n >= LANES ? n - LANES : i;                                                                           \
                for (int j = 0; n >= LANES && i < n && j < LANES; j++) {                                                           \
                        float lane = lanes[j], value = x[n - LANES + j];                                                           \
                        lanes[j] = join;                                                                                           \
                }                                                                                                                  \
                for (int j = 0; n < LANES && i < n; i++, j++) {                                                                    \
                        float lane = lanes[j], value = x[i];                                                                       \
                        lanes[j] = join;                                                                                           \
                }                                                                                                                  \
                for (int half = LANES / 2; half > 0; half /= 2)                                                                    \
                        for (int j = 0; j < half; j++) {                                                                           \
                                float lane = lanes[j], value = lanes[j + half];                                                    \
                                lanes[j] = join;                                                                                   \
                        }                                                                                                          \
                return lanes[0];                                                                                                   \
        }

#define GREATER (lane > value || lane != lane ? lane : value)
#define SMALLER (lane < value || lane != lane ? lane : value)

DEFINE_EXTREME(sl_row_maximum, -INFINITY, GREATER)
DEFINE_EXTREME(sl_row_minimum, INFINITY, SMALLER)

/* Sums of magnitudes are NaN where one of them is, and nowhere else. */
SL_CPU_CLONES bool sl_row_has_nan(const float *x, int64_t n)
{
        vector sums[VECTORS] = {0}, v;
        int64_t i = 0;
        float rest = 0;
        int bad = 0;

        for (; i + VECTORS * LANES <= n; i += VECTORS * LANES)
                for (int k = 0; k < VECTORS; k++) {
                        memcpy(&v, x + i + k * LANES, sizeof(v));
                        sums[k] += MAGNITUDE;
                }
        for (; i + LANES <= n; i += LANES) {
                memcpy(&v, x + i, sizeof(v));
                sums[0] += MAGNITUDE;
        }
        /* What is left, with some values once more; of a short row one by one. */
        if (i < n && n >= LANES) {
                memcpy(&v, x + n - LANES, sizeof(v));
                sums[1] += MAGNITUDE;
        }
        for (i = n < LANES ? 0 : n; i < n; i++)
                rest += fabsf(x[i]);
        sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        for (int j = 0; j < LANES; j++)
                bad |= sums[0][j] != sums[0][j];
        return bad || rest != rest;
}

SL_CPU_CLONES float sl_row_product(int64_t n, const float *a, const float *b)
{
        float lanes[LANES] = {0};
        int64_t i = 0;

        for (; i + LANES <= n; i += LANES)
                for (int j = 0; j < LANES; j++)
                        lanes[j] += a[i + j] * b[i + j];
        for (int j = 0; i < n; i++, j++)
                lanes[j] += a[i] * b[i];
        for (int half = LANES / 2; half > 0; half /= 2)
                for (int j = 0; j < half; j++)
                        lanes[j] += lanes[j + half];
        return lanes[0];
}
