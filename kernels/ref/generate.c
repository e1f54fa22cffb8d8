/* SPDX-License-Identifier: Apache-2.0 */
#include "element.h"
#include "kernels.h"

int sl_ref_shape(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t rank = node->inputs[0].shape.rank, start = sl_attrs_ints(&node->attrs, SL_ATTR_STARTS, 0, 0);
        int64_t *out = binding->outputs[0];

        start += start < 0 ? rank : 0;
        start = start < 0 ? 0 : start;
        for (int64_t i = 0; i < node->outputs[0].shape.dims[0]; i++)
                out[i] = node->inputs[0].shape.dims[start + i];
        return 0;
}

int sl_ref_constant_of_shape(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t elements = (int64_t)sl_shape_elements(&node->outputs[0].shape);
        double value = sl_attrs_float(&node->attrs, SL_ATTR_VALUE, 0);

        for (int64_t i = 0; i < elements && sl_pace_on(binding->pace, 1); i++)
                sl_ref_store(binding->outputs[0], i, node->outputs[0].dtype, value);
        return 0;
}

int sl_ref_range(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        uint32_t dtype = node->inputs[0].dtype;
        const void *start = binding->inputs[0], *delta = binding->inputs[2];
        void *out = binding->outputs[0];

        for (int64_t i = 0; i < node->outputs[0].shape.dims[0] && sl_pace_on(binding->pace, 1); i++) {
                if (sl_dtype_is_float(dtype))
                        sl_ref_store(out, i, dtype, sl_ref_load(start, 0, dtype) + (double)i * sl_ref_load(delta, 0, dtype));
                else
                        sl_ref_store_bits(
                                out, i, dtype, sl_ref_load_bits(start, 0, dtype) + (uint64_t)i * sl_ref_load_bits(delta, 0, dtype));
        }
        return 0;
}
