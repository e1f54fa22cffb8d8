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

/* Some lanes of a vector. */
#define LOWER(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)

/* What is made of the vector v before it is added. */
#define DEFINE_SUM(name, parameters, value)                                                                                        \
        SL_CPU_CLONES static float name parameters                                                                                 \
        {                                                                                                                          \
                vector sums[VECTORS] = {0}, v;                                                                                     \
                float __attribute__((vector_size(8 * sizeof(float)))) eight;                                                       \
                float __attribute__((vector_size(4 * sizeof(float)))) four;                                                        \
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
                eight = LOWER(sums[0], 0, 1, 2, 3, 4, 5, 6, 7) + LOWER(sums[0], 8, 9, 10, 11, 12, 13, 14, 15);                     \
                four = LOWER(eight, 0, 1, 2, 3) + LOWER(eight, 4, 5, 6, 7);                                                        \
                four += LOWER(four, 2, 3, 2, 3);                                                                                   \
                return four[0] + four[1];                                                                                          \
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

/*
 * Comparing loses a NaN, so it is looked for beside that, two numbers at a time. Of a long row the last ones come once more, which
 * changes nothing.
 */
#define DEFINE_EXTREME(name, T, M, first, BETTER, WINS)                                                                            \
        SL_CPU_CLONES T name(const T *x, int64_t n)                                                                                \
        {                                                                                                                          \
                T __attribute__((vector_size(LANES * sizeof(T)))) all;                                                             \
                T __attribute__((vector_size(8 * sizeof(T)))) eight;                                                               \
                T __attribute__((vector_size(4 * sizeof(T)))) four;                                                                \
                T lanes[LANES];                                                                                                    \
                M odd[LANES] = {0}, any = 0;                                                                                       \
                int64_t i = 0;                                                                                                     \
                                                                                                                                   \
                for (int j = 0; j < LANES; j++)                                                                                    \
                        lanes[j] = first;                                                                                          \
                for (; i + 2 * LANES <= n; i += 2 * LANES)                                                                         \
                        for (int j = 0; j < LANES; j++) {                                                                          \
                                T a = x[i + j], b = x[i + LANES + j], better = BETTER(a, b);                                       \
                                odd[j] |= __builtin_isunordered(a, b) ? (M)-1 : (M)0;                                              \
                                lanes[j] = BETTER(better, lanes[j]);                                                               \
                        }                                                                                                          \
                for (; n >= LANES && i < n; i += LANES) {                                                                          \
                        T __attribute__((vector_size(LANES * sizeof(T)))) last, best;                                              \
                        M __attribute__((vector_size(LANES * sizeof(T)))) none;                                                    \
                                                                                                                                   \
                        memcpy(&last, x + (i + LANES <= n ? i : n - LANES), sizeof(last));                                         \
                        memcpy(&best, lanes, sizeof(best));                                                                        \
                        memcpy(&none, odd, sizeof(none));                                                                          \
                        none |= last != last;                                                                                      \
                        best = CHOOSE(last, WINS, best);                                                                           \
                        memcpy(lanes, &best, sizeof(best));                                                                        \
                        memcpy(odd, &none, sizeof(none));                                                                          \
                }                                                                                                                  \
                for (int j = 0; i < n; i++, j++) {                                                                                 \
                        odd[0] |= __builtin_isunordered(x[i], x[i]) ? (M)-1 : (M)0;                                                \
                        lanes[j] = BETTER(x[i], lanes[j]);                                                                         \
                }                                                                                                                  \
                for (int j = 0; j < LANES; j++)                                                                                    \
                        any |= odd[j];                                                                                             \
                memcpy(&all, lanes, sizeof(all));                                                                                  \
                eight = CHOOSE(LOWER(all, 8, 9, 10, 11, 12, 13, 14, 15), WINS, LOWER(all, 0, 1, 2, 3, 4, 5, 6, 7));                \
                four = CHOOSE(LOWER(eight, 4, 5, 6, 7), WINS, LOWER(eight, 0, 1, 2, 3));                                           \
                four = CHOOSE(LOWER(four, 2, 3, 2, 3), WINS, four);                                                                \
                return any ? (T)NAN : BETTER(four[1], four[0]);                                                                    \
        }

/* Of two vectors the better lanes; the second where neither is. */
#define CHOOSE(a, WINS, b)                                                                                                         \
        ((__typeof__(b))(((__typeof__((a) < (b)))(a) & ((a)WINS(b))) | ((__typeof__((a) < (b)))(b) & ~((a)WINS(b)))))

#define GREATER(a, b) ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))

DEFINE_EXTREME(sl_row_maximum, float, int32_t, -INFINITY, GREATER, >)
DEFINE_EXTREME(sl_row_minimum, float, int32_t, INFINITY, SMALLER, <)
DEFINE_EXTREME(sl_row_maximum_f64, double, int64_t, (double)-INFINITY, GREATER, >)
DEFINE_EXTREME(sl_row_minimum_f64, double, int64_t, (double)INFINITY, SMALLER, <)

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
