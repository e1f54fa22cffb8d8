/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of a tile, to its positions and back (winograd.h), a vector of channels at a time. For files that are compiled with
 * base/vector.h.
 */
#pragma once

#include "cpu/base/vector.h"
#include "cpu/conv/winograd.h"

/* The inner points of 6 positions, +-A and +-B. */
#define SL_WINOGRAD_A 0.625f
#define SL_WINOGRAD_B 1.5f

/* Eight positions: the pair +-p of points has the other two squares, whose sum and product are given. */
SL_VECTOR_INLINE void sl_winograd_transform_pair(float p, float sum, float product, const sl_vector d[8], sl_vector t[2])
{
        const sl_vector s = sl_vector_set(sum), m = sl_vector_set(product);
        sl_vector even = sl_vector_fma(m, d[2], sl_vector_fnma(s, d[4], d[6]));
        sl_vector odd = sl_vector_fma(m, d[1], sl_vector_fnma(s, d[3], d[5]));

        t[0] = sl_vector_fma(sl_vector_set(p), odd, even);
        t[1] = sl_vector_fnma(sl_vector_set(p), odd, even);
}

SL_VECTOR_INLINE void sl_winograd_transform_eight(const sl_vector d[8], sl_vector t[8])
{
        const sl_vector sum = sl_vector_set(5.25f);

        t[0] = sl_vector_fma(sum, sl_vector_sub(d[2], d[4]), sl_vector_sub(d[6], d[0]));
        sl_winograd_transform_pair(0.5f, 5.0f, 4.0f, d, t + 1);
        sl_winograd_transform_pair(1.0f, 4.25f, 1.0f, d, t + 3);
        sl_winograd_transform_pair(2.0f, 1.25f, 0.25f, d, t + 5);
        t[7] = sl_vector_fma(sum, sl_vector_sub(d[3], d[5]), sl_vector_sub(d[7], d[1]));
}

SL_VECTOR_INLINE void sl_winograd_transform_six(const sl_vector d[6], sl_vector t[6])
{
        const sl_vector aa = sl_vector_set(SL_WINOGRAD_A * SL_WINOGRAD_A), bb = sl_vector_set(SL_WINOGRAD_B * SL_WINOGRAD_B),
                        sum = sl_vector_set(SL_WINOGRAD_A * SL_WINOGRAD_A + SL_WINOGRAD_B * SL_WINOGRAD_B);
        const sl_vector product = sl_vector_set(SL_WINOGRAD_A * SL_WINOGRAD_A * SL_WINOGRAD_B * SL_WINOGRAD_B),
                        a = sl_vector_set(SL_WINOGRAD_A), b = sl_vector_set(SL_WINOGRAD_B);
        sl_vector even_a = sl_vector_fnma(bb, d[2], d[4]), odd_a = sl_vector_fnma(bb, d[1], d[3]);
        sl_vector even_b = sl_vector_fnma(aa, d[2], d[4]), odd_b = sl_vector_fnma(aa, d[1], d[3]);

        t[0] = sl_vector_fma(product, d[0], sl_vector_fnma(sum, d[2], d[4]));
        t[1] = sl_vector_fma(a, odd_a, even_a);
        t[2] = sl_vector_fnma(a, odd_a, even_a);
        t[3] = sl_vector_fma(b, odd_b, even_b);
        t[4] = sl_vector_fnma(b, odd_b, even_b);
        t[5] = sl_vector_fma(product, d[1], sl_vector_fnma(sum, d[3], d[5]));
}

/* One line of the transform of an input tile. */
SL_VECTOR_INLINE void sl_winograd_transform_line(
        int positions, const sl_vector d[SL_WINOGRAD_SIDE_MAX], sl_vector t[SL_WINOGRAD_SIDE_MAX])
{
        switch (positions) {
        case 1:
                t[0] = d[0];
                break;
        case 4:
                t[0] = sl_vector_sub(d[2], d[0]);
                t[1] = sl_vector_add(d[2], d[1]);
                t[2] = sl_vector_sub(d[2], d[1]);
                t[3] = sl_vector_sub(d[3], d[1]);
                break;
        case 5:
                t[0] = sl_vector_sub(d[0], d[2]);
                t[1] = d[2];
                t[2] = sl_vector_sub(d[4], d[2]);
                t[3] = d[1];
                t[4] = d[3];
                break;
        case 6:
                sl_winograd_transform_six(d, t);
                break;
        default:
                sl_winograd_transform_eight(d, t);
        }
}

SL_VECTOR_INLINE void sl_winograd_restore_six(int outputs, const sl_vector m[6], sl_vector y[SL_WINOGRAD_OUTPUTS_MAX])
{
        sl_vector even_a = sl_vector_add(m[1], m[2]), odd_a = sl_vector_sub(m[1], m[2]);
        sl_vector even_b = sl_vector_add(m[3], m[4]), odd_b = sl_vector_sub(m[3], m[4]);

        y[0] = sl_vector_add(sl_vector_add(m[0], even_a), even_b);
        if (outputs == 2) {
                y[1] = sl_vector_fma(sl_vector_set(SL_WINOGRAD_A), odd_a, sl_vector_fma(sl_vector_set(SL_WINOGRAD_B), odd_b, m[5]));
                return;
        }
        y[1] = sl_vector_fma(sl_vector_set(SL_WINOGRAD_A), odd_a, sl_vector_mul(sl_vector_set(SL_WINOGRAD_B), odd_b));
        y[2] = sl_vector_fma(sl_vector_set(SL_WINOGRAD_A * SL_WINOGRAD_A), even_a,
                sl_vector_mul(sl_vector_set(SL_WINOGRAD_B * SL_WINOGRAD_B), even_b));
        y[3] = sl_vector_fma(sl_vector_set(SL_WINOGRAD_A * SL_WINOGRAD_A * SL_WINOGRAD_A), odd_a,
                sl_vector_fma(sl_vector_set(SL_WINOGRAD_B * SL_WINOGRAD_B * SL_WINOGRAD_B), odd_b, m[5]));
}

SL_VECTOR_INLINE void sl_winograd_restore_eight(const sl_vector m[8], sl_vector y[SL_WINOGRAD_OUTPUTS_MAX])
{
        sl_vector even = sl_vector_add(sl_vector_add(m[1], m[2]), sl_vector_add(m[3], m[4]));
        sl_vector odd = sl_vector_fma(sl_vector_set(0.5f), sl_vector_sub(m[1], m[2]), sl_vector_sub(m[3], m[4]));

        y[0] = sl_vector_add(sl_vector_add(m[0], even), sl_vector_add(m[5], m[6]));
        y[1] = sl_vector_fma(sl_vector_set(2.0f), sl_vector_sub(m[5], m[6]), sl_vector_add(odd, m[7]));
}

/* One line of the way back. */
SL_VECTOR_INLINE void sl_winograd_restore_line(
        int positions, int outputs, const sl_vector m[SL_WINOGRAD_SIDE_MAX], sl_vector y[SL_WINOGRAD_OUTPUTS_MAX])
{
        switch (positions) {
        case 1:
                y[0] = m[0];
                break;
        case 4:
                y[0] = sl_vector_add(m[0], sl_vector_add(m[1], m[2]));
                y[1] = sl_vector_add(sl_vector_sub(m[1], m[2]), m[3]);
                break;
        case 5:
                y[0] = sl_vector_add(sl_vector_add(m[0], m[1]), m[3]);
                y[1] = sl_vector_add(sl_vector_add(m[1], m[2]), m[4]);
                break;
        case 6:
                sl_winograd_restore_six(outputs, m, y);
                break;
        default:
                sl_winograd_restore_eight(m, y);
        }
}
