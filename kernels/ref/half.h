/* SPDX-License-Identifier: Apache-2.0 */
/*
 * float16 and bfloat16 to and from double. Rounding is to nearest, ties to even, in one step; NaN stays a NaN, what is too
 * large becomes an infinity. Pure; any thread.
 */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

double sl_ref_from_f16(uint16_t bits);
uint16_t sl_ref_to_f16(double value);
uint16_t sl_ref_to_bf16(double value);

/* The upper half of a float. Inline, as products call it for every factor. */
static inline double sl_ref_from_bf16(uint16_t bits)
{
        uint32_t wide = (uint32_t)bits << 16;
        float value;

        memcpy(&value, &wide, sizeof(value));
        if (isnan(value))
                return bits & 0x8000 ? -(double)NAN : (double)NAN;
        return value;
}
