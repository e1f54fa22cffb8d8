/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <inttypes.h>

int sl_shape_gather(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *data = &node->inputs[0].shape, *indices = &node->inputs[1].shape;
        struct sl_shape out = {.rank = 0};
        uint32_t axis;
        int r = sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), data->rank, &axis, error);

        if (r)
                return r;
        if (node->inputs[1].dtype != SL_DTYPE_I32 && node->inputs[1].dtype != SL_DTYPE_I64)
                return sl_error_set(error, EINVAL, "input 1 is %s, wants int32 or int64", sl_dtype_name(node->inputs[1].dtype));
        if (data->rank - 1 + indices->rank > SL_RANK_MAX)
                return sl_error_set(error, EINVAL, "the output would have rank %u, the highest is %d",
                        data->rank - 1 + indices->rank, SL_RANK_MAX);
        for (uint32_t i = 0; i < axis; i++)
                out.dims[out.rank++] = data->dims[i];
        for (uint32_t i = 0; i < indices->rank; i++)
                out.dims[out.rank++] = indices->dims[i];
        for (uint32_t i = axis + 1; i < data->rank; i++)
                out.dims[out.rank++] = data->dims[i];
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = out;
        return 0;
}
