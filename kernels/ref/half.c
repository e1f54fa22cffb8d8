/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both 16-bit formats are handled as one: a significand of `precision` bits (the hidden one included) and exponents from
 * `least` (of the smallest normal number) on. Doubles hold every value of both exactly, so that one rounding is enough.
 */
#include "half.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

struct format {
        int precision;
        int least;
        uint16_t infinity;
};

static const struct format f16 = {.precision = 11, .least = -14, .infinity = 0x7c00};
static const struct format bf16 = {.precision = 8, .least = -126, .infinity = 0x7f80};

/* 2^@exponent, which is a normal double. */
static double power_of_two(int exponent)
{
        uint64_t bits = (uint64_t)(exponent + DBL_MAX_EXP - 1) << (DBL_MANT_DIG - 1);
        double power;

        memcpy(&power, &bits, sizeof(power));
        return power;
}

static double unpack(const struct format *format, uint16_t bits)
{
        int fraction_bits = format->precision - 1;
        unsigned magnitude = bits & 0x7fff;
        unsigned fraction = magnitude & ((1u << fraction_bits) - 1);
        int biased = (int)(magnitude >> fraction_bits);
        double value;

        if (magnitude >= format->infinity)
                value = fraction ? (double)NAN : (double)INFINITY;
        else if (biased)
                value = (double)(fraction | 1u << fraction_bits) * power_of_two(biased - 1 + format->least - fraction_bits);
        else
                value = (double)fraction * power_of_two(format->least - fraction_bits);
        return bits & 0x8000 ? -value : value;
}

static uint16_t pack(const struct format *format, double value)
{
        int fraction_bits = format->precision - 1;
        uint16_t sign = signbit(value) ? 0x8000 : 0;
        int exponent;

        if (isnan(value))
                return (uint16_t)(sign | format->infinity | 1u << (fraction_bits - 1));
        value = fabs(value);
        if (isinf(value))
                return (uint16_t)(sign | format->infinity);
        if (value == 0)
                return sign;
        frexp(value, &exponent);
        if (--exponent < format->least)
                exponent = format->least;

        /* In units of the last place; a carry out of the significand moves into the exponent by itself. */
        double units = nearbyint(ldexp(value, fraction_bits - exponent));
        double bits = ldexp((double)(exponent - format->least), fraction_bits) + units;
        return (uint16_t)(sign | (bits >= format->infinity ? format->infinity : (uint16_t)bits));
}

double sl_ref_from_f16(uint16_t bits)
{
        return unpack(&f16, bits);
}

uint16_t sl_ref_to_f16(double value)
{
        return pack(&f16, value);
}

uint16_t sl_ref_to_bf16(double value)
{
        return pack(&bf16, value);
}
