/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bfloat16 in loops that a compiler vectorises: it is the upper half of a float32. Arithmetic is in float32. Pure; any thread.
 */
#pragma once

#include <stdint.h>
#include <string.h>

static inline float sl_widen_bf16(uint16_t half)
{
        uint32_t bits = (uint32_t)half << 16;
        float value;

        memcpy(&value, &bits, sizeof(value));
        return value;
}

/* To the nearest, ties to even; a NaN stays one. */
static inline uint16_t sl_narrow_bf16(float value)
{
        uint32_t bits, rounded;

        memcpy(&bits, &value, sizeof(bits));
        rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
}
