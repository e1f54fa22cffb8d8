/* SPDX-License-Identifier: Apache-2.0 */
#include "element.h"
#include "kernels.h"

#include <string.h>

/* Integers go to float32 in one rounding, not by way of double. */
static void cast_integer(const void *in, void *out, int64_t i, uint32_t from, uint32_t to)
{
        uint64_t bits = sl_ref_load_bits(in, i, from);

        if (to == SL_DTYPE_F32)
                ((float *)out)[i] = sl_ref_is_unsigned(from) ? (float)bits : (float)(int64_t)bits;
        else if (sl_dtype_is_float(to))
                sl_ref_store(out, i, to, sl_ref_load(in, i, from));
        else
                sl_ref_store_bits(out, i, to, bits);
}

/* To 4 and 2 bits floats wrap as integers do; to 8 bits and float4e2m1 the attributes say what becomes of the ends. */
static void cast_small(const struct sl_node_desc *node, const struct sl_binding *binding, int64_t i)
{
        uint32_t from = node->inputs[0].dtype, to = node->outputs[0].dtype;
        double value = sl_ref_load(binding->inputs[0], i, from);

        if (sl_dtype_is_float(to))
                ((uint8_t *)binding->outputs[0])[i] = sl_ref_to_small(
                        value, to, sl_attrs_int(&node->attrs, SL_ATTR_SATURATE, 1), sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0));
        else if (sl_dtype_is_float(from))
                sl_ref_store_bits(binding->outputs[0], i, to, sl_ref_saturate(value, SL_DTYPE_I64));
        else
                sl_ref_store_bits(binding->outputs[0], i, to, sl_ref_load_bits(binding->inputs[0], i, from));
}

int sl_ref_cast(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t elements = (int64_t)sl_shape_elements(&node->inputs[0].shape);
        uint32_t from = node->inputs[0].dtype, to = node->outputs[0].dtype;

        for (int64_t i = 0; i < elements && sl_pace_on(binding->pace, 1); i++) {
                if (sl_dtype_is_small(to))
                        cast_small(node, binding, i);
                else if (sl_dtype_is_float(from))
                        sl_ref_store(binding->outputs[0], i, to, sl_ref_load(binding->inputs[0], i, from));
                else
                        cast_integer(binding->inputs[0], binding->outputs[0], i, from, to);
        }
        return 0;
}

int sl_ref_bit_cast(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t elements = (int64_t)sl_shape_elements(&node->inputs[0].shape);
        size_t bytes = sl_dtype_bytes(node->inputs[0].dtype);
        const uint8_t *in = binding->inputs[0];
        uint8_t *out = binding->outputs[0];

        for (int64_t i = 0; i < elements && sl_pace_on(binding->pace, 1); i++) {
                if (node->outputs[0].dtype == SL_DTYPE_BOOL)
                        out[i] = in[i] != 0;
                else
                        memcpy(out + (size_t)i * bytes, in + (size_t)i * bytes, bytes);
        }
        return 0;
}
