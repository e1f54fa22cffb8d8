/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of what compares with a constant table: keys that are looked up, rows that distances are measured from. */
#include "rules.h"

#include <inttypes.h>

int sl_shape_lookup(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *keys = &node->inputs[1].shape, *values = &node->inputs[2].shape;
        int r = sl_same_dtype(node, 1, error);

        r = r ? r : sl_size_wanted(node, 1, 0, error);
        r = r ? r : sl_size_wanted(node, 2, 0, error);
        if (r)
                return r;
        if (keys->rank != 1 || values->rank != 1 || keys->dims[0] < 1 ||
                (values->dims[0] != keys->dims[0] && values->dims[0] - 1 != keys->dims[0]))
                return sl_error_set(error, EINVAL, "inputs 1 and 2 want a key and a value for each, and perhaps one value more");
        node->outputs[0].dtype = node->inputs[2].dtype;
        node->outputs[0].shape = node->inputs[0].shape;
        return 0;
}

int sl_shape_squared_distance(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *a = &node->inputs[0].shape, *b = &node->inputs[1].shape;
        int64_t merged;

        if (node->inputs[0].dtype != SL_DTYPE_F32 || node->inputs[1].dtype != SL_DTYPE_F32 || a->rank != 2 || b->rank != 2)
                return sl_error_set(error, EINVAL, "inputs are %s and %s of ranks %u and %u, wants rows of float32",
                        sl_dtype_name(node->inputs[0].dtype), sl_dtype_name(node->inputs[1].dtype), a->rank, b->rank);
        if (sl_dim_merge(a->dims[1], b->dims[1], &merged))
                return sl_error_set(error, EINVAL, "rows of %" PRId64 " and of %" PRId64, a->dims[1], b->dims[1]);
        node->outputs[0].dtype = SL_DTYPE_F32;
        node->outputs[0].shape = (struct sl_shape){.rank = 2, .dims = {a->dims[0], b->dims[0]}};
        return 0;
}
