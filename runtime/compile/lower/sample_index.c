/* SPDX-License-Identifier: Apache-2.0 */
#include "sample_index.h"

#include "graph.h"

#include <string.h>

static int64_t index_at(const struct sl_value *value, uint64_t element)
{
        int64_t wide;
        int32_t narrow;

        if (value->tensor.dtype == SL_DTYPE_I64) {
                memcpy(&wide, (const uint8_t *)value->data + element * sizeof(wide), sizeof(wide));
                return wide;
        }
        memcpy(&narrow, (const uint8_t *)value->data + element * sizeof(narrow), sizeof(narrow));
        return narrow;
}

static bool is_index(const struct sl_value *value)
{
        return value->kind == SL_VALUE_CONSTANT && (value->tensor.dtype == SL_DTYPE_I64 || value->tensor.dtype == SL_DTYPE_I32);
}

bool sl_sample_index_is_own(
        const struct sl_value *one, const struct sl_value *many, int axis, int64_t samples, uint64_t width, int64_t extent)
{
        const struct sl_shape *shape = &one->tensor.shape;
        uint64_t elements = sl_shape_elements(shape), outer = 1, chunk;

        if (!is_index(one) || !is_index(many) || axis < 0 || !width || (width > 1 && axis + 1 == (int)shape->rank))
                return false;
        for (int i = 0; i < axis; i++)
                outer *= (uint64_t)shape->dims[i];
        chunk = outer ? elements / outer : 0;
        for (uint64_t i = 0; i < elements; i++) {
                int64_t alone = index_at(one, i);
                bool leads = i % width == 0;

                if (leads && (alone < 0 || alone >= extent))
                        return false;
                for (uint64_t s = 0; s < (uint64_t)samples; s++)
                        if (index_at(many, (i / chunk * (uint64_t)samples + s) * chunk + i % chunk) !=
                                alone + (leads ? (int64_t)s * extent : 0))
                                return false;
        }
        return true;
}
