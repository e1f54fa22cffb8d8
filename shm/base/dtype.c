/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"

static const struct {
        const char *name;
        uint8_t bytes;
} dtypes[SL_DTYPE_LIMIT] = {
#define X(id, number, label, size) [number] = {label, size},
        SL_DTYPES(X)
#undef X
};

size_t sl_dtype_bytes(uint32_t dtype)
{
        return dtype < SL_DTYPE_LIMIT ? dtypes[dtype].bytes : 0;
}

const char *sl_dtype_name(uint32_t dtype)
{
        return sl_dtype_bytes(dtype) ? dtypes[dtype].name : "unknown";
}

uint32_t sl_dtype_bits(uint32_t dtype)
{
        switch (dtype) {
        case SL_DTYPE_U4:
        case SL_DTYPE_I4:
        case SL_DTYPE_F4E2M1:
                return 4;
        case SL_DTYPE_U2:
        case SL_DTYPE_I2:
                return 2;
        default:
                return 8 * (uint32_t)sl_dtype_bytes(dtype);
        }
}

int sl_dtype_is_small(uint32_t dtype)
{
        return dtype >= SL_DTYPE_F8E4M3FN && dtype < SL_DTYPE_LIMIT;
}

int sl_dtype_is_float(uint32_t dtype)
{
        if (dtype < SL_DTYPE_F8E4M3FN)
                return dtype == SL_DTYPE_F32 || dtype == SL_DTYPE_F16 || dtype == SL_DTYPE_F64 || dtype == SL_DTYPE_BF16;
        return dtype <= SL_DTYPE_F8E5M2FNUZ || dtype == SL_DTYPE_F4E2M1 || dtype == SL_DTYPE_F8E8M0;
}
