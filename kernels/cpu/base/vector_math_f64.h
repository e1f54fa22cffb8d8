/* SPDX-License-Identifier: Apache-2.0 */
/*
 * e^x of float64 without branches, so that a loop over it becomes vector code: x is n * ln 2 + r with |r| at most half of ln 2, of
 * which the Taylor series of degree 13 is exact to 2^-57. The error is below 2 ulp; below -745.2 it is 0, above 709.8 infinite. A
 * NaN stays a NaN. Pure; any thread.
 */
#pragma once

#include <stdint.h>
#include <string.h>

/* 2^n of a number between -1022 and 1023. */
static inline double sl_power_of_two(int64_t n)
{
        uint64_t bits = (uint64_t)(n + 1023) << 52;
        double power;

        memcpy(&power, &bits, sizeof(power));
        return power;
}

static inline double sl_exp_f64(double x)
{
        double held = x < -746.0 ? -746.0 : x > 710.0 ? 710.0 : x; /* a NaN stays */
        double magic = held * 0x1.71547652b82fep+0 + 0x1.8p52, n = magic - 0x1.8p52, r, p;
        int64_t whole, half;

        r = __builtin_fma(n, -0x1.62e42fefa39efp-1, held);
        r = __builtin_fma(n, -0x1.abc9e3b39803fp-56, r);
        p = __builtin_fma(r, 1.0 / 6227020800.0, 1.0 / 479001600.0);
        p = __builtin_fma(p, r, 1.0 / 39916800.0);
        p = __builtin_fma(p, r, 1.0 / 3628800.0);
        p = __builtin_fma(p, r, 1.0 / 362880.0);
        p = __builtin_fma(p, r, 1.0 / 40320.0);
        p = __builtin_fma(p, r, 1.0 / 5040.0);
        p = __builtin_fma(p, r, 1.0 / 720.0);
        p = __builtin_fma(p, r, 1.0 / 120.0);
        p = __builtin_fma(p, r, 1.0 / 24.0);
        p = __builtin_fma(p, r, 1.0 / 6.0);
        p = __builtin_fma(p, r, 0.5);
        p = __builtin_fma(p, r, 1.0);
        p = __builtin_fma(p, r, 1.0);
        /* In two steps, so that the result may be subnormal or infinite. Of a NaN these are any bits at all. */
        memcpy(&whole, &magic, sizeof(whole));
        whole -= 0x4338000000000000;
        half = (int64_t)((uint64_t)whole + 2048) / 2 - 1024;
        return p * sl_power_of_two(half) * sl_power_of_two(whole - half);
}
