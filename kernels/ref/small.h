/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of 8, 4 and 2 bits, each in a byte of its own. Of one that has fewer bits than its byte, only the low ones count. Rounding
 * is to nearest, ties to even, in one step. Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How float8e8m0, which has powers of two alone, rounds: attribute round_mode of Cast. Ties of the nearest go up. */
enum { SL_REF_ROUND_UP, SL_REF_ROUND_DOWN, SL_REF_ROUND_NEAREST };

/* Of float8*, float4e2m1 and float8e8m0. */
double sl_ref_from_small(uint8_t bits, uint32_t dtype);

/*
 * What is too large becomes the largest number with @saturate, else an infinity, or NaN where there is none. float4e2m1 always
 * saturates, and NaN becomes its -0, as with ONNX's own reference.
 */
uint8_t sl_ref_to_small(double value, uint32_t dtype, bool saturate, int64_t round_mode);
