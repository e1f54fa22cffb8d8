/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All formats but float8e8m0 are handled as one: a sign, a significand of `precision` bits (the hidden one included) and exponents
 * from `least` (of the smallest normal number) on, of which the last code that is a number is `most`.
 */
#include "small.h"

#include "base/dtype.h"

#include <math.h>

#define E8M0_BIAS 127
#define E8M0_NAN  0xff
#define E8M0_MOST 0xfe

struct format {
        int precision, least, bits;
        uint8_t most, infinity, nan; /* 0: it has none */
        bool one_zero;               /* -0 is the code of NaN */
};

static const struct format formats[SL_DTYPE_LIMIT] = {
        [SL_DTYPE_F8E4M3FN] = {.precision = 4, .least = -6, .bits = 8, .most = 0x7e, .nan = 0x7f},
        [SL_DTYPE_F8E4M3FNUZ] = {.precision = 4, .least = -7, .bits = 8, .most = 0x7f, .nan = 0x80, .one_zero = true},
        [SL_DTYPE_F8E5M2] = {.precision = 3, .least = -14, .bits = 8, .most = 0x7b, .infinity = 0x7c, .nan = 0x7e},
        [SL_DTYPE_F8E5M2FNUZ] = {.precision = 3, .least = -15, .bits = 8, .most = 0x7f, .nan = 0x80, .one_zero = true},
        [SL_DTYPE_F4E2M1] = {.precision = 2, .least = 0, .bits = 4, .most = 0x7},
};

static double from_power(uint8_t bits)
{
        return bits == E8M0_NAN ? (double)NAN : ldexp(1, bits - E8M0_BIAS);
}

static double from_format(uint8_t bits, const struct format *f)
{
        int fraction_bits = f->precision - 1;
        unsigned sign = (1u << (f->bits - 1)) & bits, magnitude = bits & ((1u << (f->bits - 1)) - 1u), fraction;
        double value;

        if (f->one_zero && bits == f->nan)
                return (double)NAN;
        fraction = magnitude & ((1u << fraction_bits) - 1u);
        if (magnitude > f->most)
                value = f->infinity && !fraction ? (double)INFINITY : (double)NAN;
        else if (magnitude >> fraction_bits)
                value = ldexp(
                        (double)(fraction | 1u << fraction_bits), (int)(magnitude >> fraction_bits) - 1 + f->least - fraction_bits);
        else
                value = ldexp((double)fraction, f->least - fraction_bits);
        return sign ? -value : value;
}

double sl_ref_from_small(uint8_t bits, uint32_t dtype)
{
        return dtype == SL_DTYPE_F8E8M0 ? from_power(bits) : from_format(bits, &formats[dtype]);
}

static uint8_t to_power(double value, bool saturate, int64_t round_mode)
{
        int exponent;
        double significand;

        if (isnan(value) || value < 0)
                return E8M0_NAN;
        if (isinf(value))
                return saturate ? E8M0_MOST : E8M0_NAN;
        if (value == 0)
                return saturate ? 0 : E8M0_NAN;
        significand = frexp(value, &exponent); /* in [0.5, 1) */
        exponent += E8M0_BIAS - 1;
        if (round_mode == SL_REF_ROUND_NEAREST ? significand >= 0.75 : round_mode == SL_REF_ROUND_UP && significand > 0.5)
                exponent++;
        if (exponent < 0)
                return saturate ? 0 : E8M0_NAN;
        if (exponent > E8M0_MOST)
                return saturate ? E8M0_MOST : E8M0_NAN;
        return (uint8_t)exponent;
}

static uint8_t too_large(const struct format *f, uint8_t sign, bool saturate)
{
        if (saturate || (!f->nan && !f->infinity))
                return sign | f->most;
        return f->infinity ? sign | f->infinity : f->one_zero ? f->nan : sign | f->nan;
}

static uint8_t to_format(double value, const struct format *f, bool saturate)
{
        int fraction_bits = f->precision - 1, exponent;
        uint8_t sign = signbit(value) ? (uint8_t)(1u << (f->bits - 1)) : 0;
        double units, bits;

        if (isnan(value))
                return !f->nan ? 1u << (f->bits - 1) : f->one_zero ? f->nan : sign | f->nan;
        value = fabs(value);
        if (isinf(value))
                return too_large(f, sign, saturate);
        if (value == 0)
                return f->one_zero ? 0 : sign;
        frexp(value, &exponent);
        if (--exponent < f->least)
                exponent = f->least;
        /* In units of the last place; a carry out of the significand moves into the exponent by itself. */
        units = nearbyint(ldexp(value, fraction_bits - exponent));
        bits = ldexp((double)(exponent - f->least), fraction_bits) + units;
        if (bits > f->most)
                return too_large(f, sign, saturate);
        return bits == 0 && f->one_zero ? 0 : sign | (uint8_t)bits;
}

uint8_t sl_ref_to_small(double value, uint32_t dtype, bool saturate, int64_t round_mode)
{
        return dtype == SL_DTYPE_F8E8M0 ? to_power(value, saturate, round_mode) : to_format(value, &formats[dtype], saturate);
}
