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

int sl_dtype_is_float(uint32_t dtype)
{
        return dtype == SL_DTYPE_F32 || dtype == SL_DTYPE_F16 || dtype == SL_DTYPE_F64 || dtype == SL_DTYPE_BF16;
}
