/* SPDX-License-Identifier: Apache-2.0 */
#include "element.h"
#include "kernels.h"

#include <errno.h>
#include <string.h>

int sl_ref_gather(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *data = &node->inputs[0].shape;
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), outer = 1, row = (int64_t)sl_dtype_bytes(node->inputs[0].dtype);
        int64_t n_indices = (int64_t)sl_shape_elements(&node->inputs[1].shape);
        char *out = binding->outputs[0];

        axis += axis < 0 ? data->rank : 0;
        for (uint32_t i = 0; i < axis; i++)
                outer *= data->dims[i];
        for (uint32_t i = (uint32_t)axis + 1; i < data->rank; i++)
                row *= data->dims[i];
        for (int64_t o = 0; o < outer && sl_pace_on(binding->pace, 1); o++)
                for (int64_t i = 0; i < n_indices && sl_pace_on(binding->pace, 1 + (uint64_t)row / sizeof(uint64_t));
                        i++, out += row) {
                        int64_t at = (int64_t)sl_ref_load_bits(binding->inputs[1], i, node->inputs[1].dtype);

                        if (at < -data->dims[axis] || at >= data->dims[axis])
                                return -ERANGE;
                        at += at < 0 ? data->dims[axis] : 0;
                        memcpy(out, (const char *)binding->inputs[0] + (o * data->dims[axis] + at) * row, (size_t)row);
                }
        return 0;
}
