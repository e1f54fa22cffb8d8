/* SPDX-License-Identifier: Apache-2.0 */
/*
 * float16 in loops that a compiler vectorises, whatever the processor: its exponent is moved by a multiplication, which makes
 * subnormal numbers come out right by themselves. Pure; any thread.
 */
#pragma once

#include <stdint.h>
#include <string.h>

static inline float sl_widen_f16(uint16_t half)
{
        uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16, bits;
        float value;

        memcpy(&value, &magnitude, sizeof(value));
        value *= 0x1p112f;
        memcpy(&bits, &value, sizeof(bits));
        bits = sign | (magnitude >= 0x0f800000 ? 0x7f800000 | magnitude : bits);
        memcpy(&value, &bits, sizeof(value));
        return value;
}

/* To the nearest, ties to even; what is too large becomes infinite, a NaN stays one. */
static inline uint16_t sl_narrow_f16(float value)
{
        uint32_t bits, magnitude, normal, subnormal, half;
        float small;

        memcpy(&bits, &value, sizeof(bits));
        magnitude = bits & 0x7fffffff;
        normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13;
        /* The last place of 0.5 is that of a subnormal float16. */
        memcpy(&small, &magnitude, sizeof(small));
        small = (magnitude < 0x38800000 ? small : 0.0f) + 0.5f;
        memcpy(&subnormal, &small, sizeof(subnormal));
        half = magnitude < 0x38800000 ? subnormal - 0x3f000000 : normal;
        half = magnitude >= 0x477ff000 ? 0x7c00 : half;
        half = magnitude > 0x7f800000 ? 0x7e00 : half;
        return (uint16_t)((bits >> 16 & 0x8000) | half);
}
