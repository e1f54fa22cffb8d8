/* SPDX-License-Identifier: Apache-2.0 */
#include "lanes_tile.h"

#include "cpu/base/isa.h"
#include "cpu/base/vector_bf16.h"

void SL_TILE(narrow_lanes)(const float *from, int64_t n, uint16_t *to)
{
        for (int64_t i = 0; i < n; i += SL_VECTOR_FLOATS)
                sl_vector_store_lanes_bf16(to + i, sl_lanes_first(n - i), sl_vector_load_lanes(sl_lanes_first(n - i), from + i));
}

void SL_TILE(widen_lanes)(const uint16_t *from, int64_t n, float *to)
{
        for (int64_t i = 0; i < n; i += SL_VECTOR_FLOATS)
                sl_vector_store_lanes(to + i, sl_lanes_first(n - i), sl_vector_load_lanes_bf16(sl_lanes_first(n - i), from + i));
}
