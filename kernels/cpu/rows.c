/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/rows.h"

#include "cpu/operator.h"

#include <math.h>

#define LANES 16

/* What each lane does with an element x, and how two lanes are joined (always the upper half onto the lower one). */
#define DEFINE_ROW(name, parameters, first, step, join)                                                                            \
        SL_CPU_CLONES float name parameters                                                                                        \
        {                                                                                                                          \
                float lanes[LANES];                                                                                                \
                int64_t i = 0;                                                                                                     \
                                                                                                                                   \
                for (int j = 0; j < LANES; j++)                                                                                    \
                        lanes[j] = first;                                                                                          \
                for (; i + LANES <= n; i += LANES)                                                                                 \
                        for (int j = 0; j < LANES; j++) {                                                                          \
                                float lane = lanes[j], value = x[i + j];                                                           \
                                lanes[j] = step;                                                                                   \
                        }                                                                                                          \
                for (int j = 0; i < n; i++, j++) {                                                                                 \
                        float lane = lanes[j], value = x[i];                                                                       \
                        lanes[j] = step;                                                                                           \
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

DEFINE_ROW(sl_row_sum, (const float *x, int64_t n), 0.0f, lane + value, lane + value)
DEFINE_ROW(sl_row_sum_absolute, (const float *x, int64_t n), 0.0f, lane + fabsf(value), lane + value)
DEFINE_ROW(sl_row_sum_square, (const float *x, float centre, int64_t n), 0.0f, lane + (value - centre) * (value - centre),
        lane + value)
DEFINE_ROW(sl_row_maximum, (const float *x, int64_t n), -INFINITY, GREATER, GREATER)
DEFINE_ROW(sl_row_minimum, (const float *x, int64_t n), INFINITY, SMALLER, SMALLER)

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
