/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three passes over a row: its maximum, the powers and their sum, the quotients. A NaN may get lost in the maximum; the power that
 * it has makes the sum NaN, and the sum all of the row.
 */
#include "cpu/reduce/softmax_tile.h"

#include "cpu/base/vector.h"

#include <math.h>

#define LANES SL_VECTOR_FLOATS
#define SIDES 4    /* vectors that do not wait for each other */
#define BLOCK 2048 /* floats of a row whose sum is one of float32 */

/* Lanes that are not there are @other. */
static inline __attribute__((always_inline)) sl_vector load_rest(const float *x, int64_t n, sl_vector other)
{
        sl_lanes lanes = sl_lanes_first(n);

        return sl_vector_where(lanes, sl_vector_load_lanes(lanes, x), other);
}

static float largest_lane(sl_vector x)
{
        float lanes[LANES], largest = -INFINITY;

        sl_vector_store(lanes, x);
        for (int i = 0; i < LANES; i++)
                largest = lanes[i] > largest ? lanes[i] : largest;
        return largest;
}

static float row_maximum(int64_t n, const float *x)
{
        const sl_vector least = sl_vector_set(-INFINITY);
        sl_vector sides[SIDES] = {least, least, least, least};
        int64_t i = 0;

        for (; i + SIDES * LANES <= n; i += SIDES * LANES)
#pragma GCC unroll 4
                for (int k = 0; k < SIDES; k++)
                        sides[k] = sl_vector_max(sides[k], sl_vector_load(x + i + k * LANES));
        for (; i < n; i += LANES)
                sides[0] = sl_vector_max(sides[0], load_rest(x + i, n - i, least));
        return largest_lane(sl_vector_max(sl_vector_max(sides[0], sides[1]), sl_vector_max(sides[2], sides[3])));
}

/* Of a logarithm, y is what the power is of. */
static inline __attribute__((always_inline)) sl_vector raise(
        bool logarithm, float *y, const float *x, int64_t left, sl_vector maximum)
{
        sl_lanes lanes = sl_lanes_first(left);
        sl_vector shifted = sl_vector_sub(load_rest(x, left, sl_vector_set(-INFINITY)), maximum);
        sl_vector power = sl_vector_exp(shifted);

        sl_vector_store_lanes(y, lanes, logarithm ? shifted : power);
        return sl_vector_where(lanes, power, sl_vector_zero());
}

static inline __attribute__((always_inline)) float raise_block(
        int64_t n, bool logarithm, float *y, const float *x, sl_vector maximum)
{
        sl_vector sums[SIDES] = {sl_vector_zero(), sl_vector_zero(), sl_vector_zero(), sl_vector_zero()};
        int64_t i = 0;

        for (; i + SIDES * LANES <= n; i += SIDES * LANES)
#pragma GCC unroll 4
                for (int k = 0; k < SIDES; k++) {
                        sl_vector shifted = sl_vector_sub(sl_vector_load(x + i + k * LANES), maximum);
                        sl_vector power = sl_vector_exp(shifted);

                        sl_vector_store(y + i + k * LANES, logarithm ? shifted : power);
                        sums[k] = sl_vector_add(sums[k], power);
                }
        for (; i < n; i += LANES)
                sums[0] = sl_vector_add(sums[0], raise(logarithm, y + i, x + i, n - i, maximum));
        return sl_vector_sum(sl_vector_add(sl_vector_add(sums[0], sums[1]), sl_vector_add(sums[2], sums[3])));
}

static inline __attribute__((always_inline)) double raise_row(int64_t n, bool logarithm, float *y, const float *x)
{
        const sl_vector maximum = sl_vector_set(row_maximum(n, x));
        double sum = 0;

        for (int64_t i = 0; i < n; i += BLOCK)
                sum += (double)raise_block(n - i < BLOCK ? n - i : BLOCK, logarithm, y + i, x + i, maximum);
        return sum;
}

static void multiply(int64_t n, float *y, float by)
{
        const sl_vector factor = sl_vector_set(by);
        int64_t i = 0;

        for (; i + LANES <= n; i += LANES)
                sl_vector_store(y + i, sl_vector_mul(sl_vector_load(y + i), factor));
        if (i < n)
                sl_vector_store_lanes(
                        y + i, sl_lanes_first(n - i), sl_vector_mul(sl_vector_load_lanes(sl_lanes_first(n - i), y + i), factor));
}

static void subtract(int64_t n, float *y, float what)
{
        const sl_vector shift = sl_vector_set(what);
        int64_t i = 0;

        for (; i + LANES <= n; i += LANES)
                sl_vector_store(y + i, sl_vector_sub(sl_vector_load(y + i), shift));
        if (i < n)
                sl_vector_store_lanes(
                        y + i, sl_lanes_first(n - i), sl_vector_sub(sl_vector_load_lanes(sl_lanes_first(n - i), y + i), shift));
}

void SL_TILE(sl_softmax_row)(int64_t n, bool logarithm, float *y, const float *x)
{
        if (logarithm)
                subtract(n, y, (float)log(raise_row(n, true, y, x)));
        else
                multiply(n, y, (float)(1.0 / raise_row(n, false, y, x)));
}

/* ---- short rows: a lane for each of them ---- */

_Static_assert(SL_SOFTMAX_SHORT == 8 && LANES >= SL_SOFTMAX_SHORT, "the sum of a row is that of the lanes of one vector");

/* In the order of sl_vector_sum(). */
static inline __attribute__((always_inline)) sl_vector sum_columns(const sl_vector powers[SL_SOFTMAX_SHORT])
{
        sl_vector four[4], two[2];

        for (int i = 0; i < 4; i++)
                four[i] = sl_vector_add(powers[i], powers[i + 4]);
        for (int i = 0; i < 2; i++)
                two[i] = sl_vector_add(four[i], four[i + 2]);
        return sl_vector_add(two[0], two[1]);
}

/* Column c of @columns has element c of each row. */
static inline __attribute__((always_inline)) void compute_columns(int64_t n, float columns[SL_SOFTMAX_SHORT][LANES])
{
        sl_vector maximum = sl_vector_set(-INFINITY), powers[SL_SOFTMAX_SHORT], factor;

        for (int c = 0; c < SL_SOFTMAX_SHORT; c++)
                powers[c] = sl_vector_zero();
        for (int64_t c = 0; c < n; c++)
                maximum = sl_vector_max(maximum, sl_vector_load(columns[c]));
        for (int64_t c = 0; c < n; c++)
                powers[c] = sl_vector_exp(sl_vector_sub(sl_vector_load(columns[c]), maximum));
        factor = sl_vector_div(sl_vector_set(1), sum_columns(powers));
        for (int64_t c = 0; c < n; c++)
                sl_vector_store(columns[c], sl_vector_mul(powers[c], factor));
}

void SL_TILE(sl_softmax_short_rows)(int64_t rows, int64_t n, float *y, const float *x)
{
        float columns[SL_SOFTMAX_SHORT][LANES] = {0};

        for (int64_t r = 0; r < rows; r += LANES) {
                int64_t here = rows - r < LANES ? rows - r : LANES;

                for (int64_t i = 0; i < here; i++)
                        for (int64_t c = 0; c < n; c++)
                                columns[c][i] = x[(r + i) * n + c];
                compute_columns(n, columns);
                for (int64_t i = 0; i < here; i++)
                        for (int64_t c = 0; c < n; c++)
                                y[(r + i) * n + c] = columns[c][i];
        }
}
