/* SPDX-License-Identifier: Apache-2.0 */
/* What compares with a constant table: keys that are looked up, rows that distances are measured from. */
#include "element.h"
#include "kernels.h"
#include "pace.h"

#include <errno.h>
#include <string.h>

/* -1, 0, 1 as element @i of @a is before, at or behind element @j of @b. NaN is one number, behind all others. */
static int order(const void *a, int64_t i, const void *b, int64_t j, uint32_t dtype)
{
        if (sl_dtype_is_float(dtype)) {
                double x = sl_ref_load(a, i, dtype), y = sl_ref_load(b, j, dtype);

                return isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
        }
        if (sl_ref_is_unsigned(dtype)) {
                uint64_t x = sl_ref_load_bits(a, i, dtype), y = sl_ref_load_bits(b, j, dtype);

                return (x > y) - (x < y);
        }
        int64_t x = (int64_t)sl_ref_load_bits(a, i, dtype), y = (int64_t)sl_ref_load_bits(b, j, dtype);

        return (x > y) - (x < y);
}

/* Where element @i of @x stands among the keys; -1: nowhere. */
static int64_t find(const void *x, int64_t i, const void *keys, int64_t n, uint32_t dtype)
{
        int64_t low = 0, high = n;

        while (low < high) {
                int64_t middle = low + (high - low) / 2;

                if (order(keys, middle, x, i, dtype) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < n && !order(keys, low, x, i, dtype) ? low : -1;
}

int sl_ref_lookup(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t n = node->inputs[1].shape.dims[0], elements = (int64_t)sl_shape_elements(&node->inputs[0].shape);
        size_t bytes = sl_dtype_bytes(node->inputs[2].dtype);
        bool has_default = node->inputs[2].shape.dims[0] > n;

        for (int64_t i = 0; i < elements && sl_pace_on(binding->pace, (uint64_t)(64 - __builtin_clzll((uint64_t)n))); i++) {
                int64_t at = find(binding->inputs[0], i, binding->inputs[1], n, node->inputs[0].dtype);

                if (at < 0 && !has_default)
                        return -ERANGE;
                memcpy((char *)binding->outputs[0] + (size_t)i * bytes,
                        (const char *)binding->inputs[2] + (size_t)(at < 0 ? n : at) * bytes, bytes);
        }
        return 0;
}

int sl_ref_squared_distance(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t rows = node->inputs[0].shape.dims[0], others = node->inputs[1].shape.dims[0], n = node->inputs[0].shape.dims[1];
        const float *a = binding->inputs[0];
        float *out = binding->outputs[0];

        for (int64_t i = 0; i < rows && sl_pace_on(binding->pace, 1); i++, a += n) {
                const float *b = binding->inputs[1];

                for (int64_t k = 0; k < others && sl_pace_on(binding->pace, 1); k++, b += n) {
                        double sum = 0;

                        for (int64_t f = 0; f < n && sl_pace_on(binding->pace, 1); f++)
                                sum += ((double)a[f] - (double)b[f]) * ((double)a[f] - (double)b[f]);
                        *out++ = (float)sum;
                }
        }
        return 0;
}
