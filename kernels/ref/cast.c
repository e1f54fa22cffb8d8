/* SPDX-License-Identifier: Apache-2.0 */
#include "element.h"
#include "kernels.h"

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

int sl_ref_cast(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t elements = (int64_t)sl_shape_elements(&node->inputs[0].shape);
        uint32_t from = node->inputs[0].dtype, to = node->outputs[0].dtype;

        for (int64_t i = 0; i < elements && sl_pace_on(binding->pace, 1); i++) {
                if (sl_dtype_is_float(from))
                        sl_ref_store(binding->outputs[0], i, to, sl_ref_load(binding->inputs[0], i, from));
                else
                        cast_integer(binding->inputs[0], binding->outputs[0], i, from, to);
        }
        return 0;
}
