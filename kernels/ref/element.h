/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of any type, read and written one at a time. Floats of all widths compute in double, signed integers in int64_t,
 * unsigned ones and booleans in uint64_t. With a constant @dtype the switches fold away. Pure; any thread.
 */
#pragma once

#include "base/dtype.h"
#include "half.h"
#include "small.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

static inline bool sl_ref_is_unsigned(uint32_t dtype)
{
        return dtype == SL_DTYPE_U8 || dtype == SL_DTYPE_U16 || dtype == SL_DTYPE_U32 || dtype == SL_DTYPE_U64 ||
               dtype == SL_DTYPE_BOOL || dtype == SL_DTYPE_U4 || dtype == SL_DTYPE_U2;
}

/* The low @bits of a byte, extended by their sign. */
static inline uint64_t sl_ref_low_bits(uint8_t byte, uint32_t bits, bool is_signed)
{
        uint64_t low = byte & ((1u << bits) - 1u), sign = 1u << (bits - 1);

        return is_signed ? (low ^ sign) - sign : low;
}

/* The bits of integer @i, extended by its sign if it has one: cast to int64_t for signed types. */
static inline uint64_t sl_ref_load_bits(const void *data, int64_t i, uint32_t dtype)
{
        switch (dtype) {
        case SL_DTYPE_U8:
                return ((const uint8_t *)data)[i];
        case SL_DTYPE_I8:
                return (uint64_t)((const int8_t *)data)[i];
        case SL_DTYPE_U16:
                return ((const uint16_t *)data)[i];
        case SL_DTYPE_I16:
                return (uint64_t)((const int16_t *)data)[i];
        case SL_DTYPE_U32:
                return ((const uint32_t *)data)[i];
        case SL_DTYPE_I32:
                return (uint64_t)((const int32_t *)data)[i];
        case SL_DTYPE_U64:
                return ((const uint64_t *)data)[i];
        case SL_DTYPE_I64:
                return (uint64_t)((const int64_t *)data)[i];
        case SL_DTYPE_BOOL:
                return ((const uint8_t *)data)[i] != 0;
        case SL_DTYPE_U4:
        case SL_DTYPE_U2:
                return sl_ref_low_bits(((const uint8_t *)data)[i], sl_dtype_bits(dtype), false);
        case SL_DTYPE_I4:
        case SL_DTYPE_I2:
                return sl_ref_low_bits(((const uint8_t *)data)[i], sl_dtype_bits(dtype), true);
        default:
                return 0;
        }
}

/* Keeps the low bits, as integer arithmetic that wraps does; a boolean is whether any is set. */
static inline void sl_ref_store_bits(void *data, int64_t i, uint32_t dtype, uint64_t bits)
{
        switch (dtype) {
        case SL_DTYPE_U8:
        case SL_DTYPE_I8:
                ((uint8_t *)data)[i] = (uint8_t)bits;
                break;
        case SL_DTYPE_U16:
        case SL_DTYPE_I16:
                ((uint16_t *)data)[i] = (uint16_t)bits;
                break;
        case SL_DTYPE_U32:
        case SL_DTYPE_I32:
                ((uint32_t *)data)[i] = (uint32_t)bits;
                break;
        case SL_DTYPE_U64:
        case SL_DTYPE_I64:
                ((uint64_t *)data)[i] = bits;
                break;
        case SL_DTYPE_BOOL:
                ((uint8_t *)data)[i] = bits != 0;
                break;
        case SL_DTYPE_U4:
        case SL_DTYPE_U2:
                ((uint8_t *)data)[i] = (uint8_t)sl_ref_low_bits((uint8_t)bits, sl_dtype_bits(dtype), false);
                break;
        case SL_DTYPE_I4:
        case SL_DTYPE_I2:
                ((uint8_t *)data)[i] = (uint8_t)sl_ref_low_bits((uint8_t)bits, sl_dtype_bits(dtype), true);
                break;
        default:
                break;
        }
}

/* Towards zero; what is out of range becomes the nearest limit of integer @dtype, NaN becomes 0 (and true). */
static inline uint64_t sl_ref_saturate(double value, uint32_t dtype)
{
        int bits = dtype >= SL_DTYPE_F8E4M3FN ? (int)sl_dtype_bits(dtype) : 8 * (int)sl_dtype_bytes(dtype);

        if (isnan(value))
                return dtype == SL_DTYPE_BOOL;
        if (dtype == SL_DTYPE_BOOL)
                return value != 0;
        if (sl_ref_is_unsigned(dtype)) {
                if (value >= ldexp(1, bits))
                        return UINT64_MAX >> (64 - bits);
                return value <= 0 ? 0 : (uint64_t)value;
        }
        if (value >= ldexp(1, bits - 1))
                return (uint64_t)INT64_MAX >> (64 - bits);
        if (value < -ldexp(1, bits - 1))
                return (uint64_t)(INT64_MIN >> (64 - bits));
        return (uint64_t)(int64_t)value;
}

static inline double sl_ref_load(const void *data, int64_t i, uint32_t dtype)
{
        switch (dtype) {
        case SL_DTYPE_F32:
                return ((const float *)data)[i];
        case SL_DTYPE_F64:
                return ((const double *)data)[i];
        case SL_DTYPE_F16:
                return sl_ref_from_f16(((const uint16_t *)data)[i]);
        case SL_DTYPE_BF16:
                return sl_ref_from_bf16(((const uint16_t *)data)[i]);
        case SL_DTYPE_F8E4M3FN:
        case SL_DTYPE_F8E4M3FNUZ:
        case SL_DTYPE_F8E5M2:
        case SL_DTYPE_F8E5M2FNUZ:
        case SL_DTYPE_F4E2M1:
        case SL_DTYPE_F8E8M0:
                return sl_ref_from_small(((const uint8_t *)data)[i], dtype);
        default:
                if (sl_ref_is_unsigned(dtype))
                        return (double)sl_ref_load_bits(data, i, dtype);
                return (double)(int64_t)sl_ref_load_bits(data, i, dtype);
        }
}

static inline void sl_ref_store(void *data, int64_t i, uint32_t dtype, double value)
{
        switch (dtype) {
        case SL_DTYPE_F32:
                ((float *)data)[i] = (float)value;
                break;
        case SL_DTYPE_F64:
                ((double *)data)[i] = value;
                break;
        case SL_DTYPE_F16:
                ((uint16_t *)data)[i] = sl_ref_to_f16(value);
                break;
        case SL_DTYPE_BF16:
                ((uint16_t *)data)[i] = sl_ref_to_bf16(value);
                break;
        case SL_DTYPE_F8E4M3FN:
        case SL_DTYPE_F8E4M3FNUZ:
        case SL_DTYPE_F8E5M2:
        case SL_DTYPE_F8E5M2FNUZ:
        case SL_DTYPE_F4E2M1:
        case SL_DTYPE_F8E8M0:
                ((uint8_t *)data)[i] = sl_ref_to_small(value, dtype, true, SL_REF_ROUND_UP);
                break;
        default:
                sl_ref_store_bits(data, i, dtype, sl_ref_saturate(value, dtype));
                break;
        }
}
