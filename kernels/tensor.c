/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor.h"

#include "base/bytes.h"

#include <inttypes.h>
#include <stdio.h>

uint64_t sl_shape_elements(const struct sl_shape *shape)
{
        uint64_t elements = 1;

        if (!sl_shape_is_static(shape))
                return UINT64_MAX;
        for (uint32_t i = 0; i < shape->rank; i++)
                if (!shape->dims[i])
                        return 0;
        for (uint32_t i = 0; i < shape->rank; i++)
                if (sl_mul_overflows(elements, (uint64_t)shape->dims[i], &elements))
                        return UINT64_MAX;
        return elements;
}

uint64_t sl_tensor_bytes(const struct sl_tensor *tensor)
{
        uint64_t elements = sl_shape_elements(&tensor->shape), bytes;

        if (elements == UINT64_MAX || sl_mul_overflows(elements, sl_dtype_bytes(tensor->dtype), &bytes))
                return UINT64_MAX;
        return bytes;
}

bool sl_shape_equal(const struct sl_shape *a, const struct sl_shape *b)
{
        if (a->rank != b->rank)
                return false;
        for (uint32_t i = 0; i < a->rank; i++)
                if (a->dims[i] != b->dims[i])
                        return false;
        return true;
}

bool sl_shape_is_static(const struct sl_shape *shape)
{
        for (uint32_t i = 0; i < shape->rank; i++)
                if (shape->dims[i] < 0)
                        return false;
        return true;
}

const char *sl_shape_print(const struct sl_shape *shape, char text[SL_SHAPE_TEXT_BYTES])
{
        size_t used = 0;

        text[used++] = '[';
        for (uint32_t i = 0; i < shape->rank && i < SL_RANK_MAX; i++) {
                if (i)
                        text[used++] = ',';
                if (shape->dims[i] == SL_DIM_BATCH)
                        text[used++] = 'N';
                else if (shape->dims[i] < 0)
                        text[used++] = '?';
                else
                        used += (size_t)snprintf(text + used, SL_SHAPE_TEXT_BYTES - used, "%" PRId64, shape->dims[i]);
        }
        text[used++] = ']';
        text[used] = 0;
        return text;
}

void sl_tensor_strides(const struct sl_tensor *tensor, int64_t ret_strides[SL_RANK_MAX])
{
        const struct sl_shape *shape = &tensor->shape;
        bool channels_last = tensor->layout == SL_LAYOUT_CHANNELS_LAST && shape->rank >= 3;
        int64_t stride = 1;

        if (channels_last) {
                ret_strides[1] = 1;
                stride = shape->dims[1];
        }
        for (uint32_t i = shape->rank; i-- > 0;) {
                if (channels_last && i == 1)
                        continue;
                ret_strides[i] = stride;
                __builtin_mul_overflow(stride, shape->dims[i], &stride); /* wraps: nobody walks such a tensor */
        }
}
