/* SPDX-License-Identifier: Apache-2.0 */
/* Elements taken from and put to places that other tensors name. */
#include "rules.h"

#include <inttypes.h>

static int check_indices(const struct sl_node_desc *node, uint32_t index, struct sl_error *error)
{
        uint32_t dtype = node->inputs[index].dtype;

        if (dtype == SL_DTYPE_I32 || dtype == SL_DTYPE_I64)
                return 0;
        return sl_error_set(error, EINVAL, "input %u is %s, wants int32 or int64", index, sl_dtype_name(dtype));
}

static int check_reduction(const struct sl_node_desc *node, struct sl_error *error)
{
        int64_t reduction = sl_attrs_int(&node->attrs, SL_ATTR_REDUCTION, 0);

        if (reduction >= 0 && reduction <= 4)
                return 0;
        return sl_error_set(error, EINVAL, "attribute reduction is %" PRId64 ", outside [0,4]", reduction);
}

/* But for @axis no dimension of input @index is larger than that of input 0. */
static int check_inside(const struct sl_node_desc *node, uint32_t index, uint32_t axis, struct sl_error *error)
{
        const struct sl_shape *data = &node->inputs[0].shape, *shape = &node->inputs[index].shape;
        char text[SL_SHAPE_TEXT_BYTES], data_text[SL_SHAPE_TEXT_BYTES];
        bool fits = shape->rank == data->rank;

        for (uint32_t i = 0; i < data->rank && fits; i++)
                fits = i == axis || !sl_dim_known(shape->dims[i]) || !sl_dim_known(data->dims[i]) ||
                       shape->dims[i] <= data->dims[i];
        if (fits)
                return 0;
        return sl_error_set(error, EINVAL, "input %u is %s, input 0 is %s", index, sl_shape_print(shape, text),
                sl_shape_print(data, data_text));
}

int sl_shape_gather_elements(struct sl_node_desc *node, struct sl_error *error)
{
        uint32_t axis;
        int r = sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), node->inputs[0].shape.rank, &axis, error);

        r = r ? r : check_indices(node, 1, error);
        r = r ? r : check_inside(node, 1, axis, error);
        if (r)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = node->inputs[1].shape;
        return 0;
}

static int same_shape(const struct sl_node_desc *node, uint32_t a, uint32_t b, struct sl_error *error)
{
        const struct sl_shape *one = &node->inputs[a].shape, *other = &node->inputs[b].shape;
        char text[SL_SHAPE_TEXT_BYTES], other_text[SL_SHAPE_TEXT_BYTES];
        bool same = one->rank == other->rank;
        int64_t merged;

        for (uint32_t i = 0; i < one->rank && same; i++)
                same = !sl_dim_merge(one->dims[i], other->dims[i], &merged);
        if (same)
                return 0;
        return sl_error_set(error, EINVAL, "input %u is %s, input %u is %s", a, sl_shape_print(one, text), b,
                sl_shape_print(other, other_text));
}

int sl_shape_scatter_elements(struct sl_node_desc *node, struct sl_error *error)
{
        uint32_t axis;
        int r = sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), node->inputs[0].shape.rank, &axis, error);

        r = r ? r : check_indices(node, 1, error);
        r = r ? r : check_reduction(node, error);
        r = r ? r : check_inside(node, 1, axis, error);
        r = r ? r : same_shape(node, 1, 2, error);
        r = r ? r : sl_same_dtype(node, 2, error);
        if (r)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = node->inputs[0].shape;
        return 0;
}

/* Rows of the indices name places along the dimensions of the data behind the first @batch. */
static int depth_of(const struct sl_node_desc *node, uint32_t batch, uint32_t *ret_depth, struct sl_error *error)
{
        const struct sl_shape *data = &node->inputs[0].shape, *indices = &node->inputs[1].shape;
        int64_t depth;

        if (!data->rank || !indices->rank || batch >= indices->rank || batch >= data->rank)
                return sl_error_set(
                        error, EINVAL, "inputs 0 and 1 have ranks %u and %u, batch_dims is %u", data->rank, indices->rank, batch);
        depth = indices->dims[indices->rank - 1];
        if (!sl_dim_known(depth))
                return sl_error_set(error, ENOTSUP, "the last dimension of input 1 is not known");
        if (depth > data->rank - batch)
                return sl_error_set(error, EINVAL, "input 1 names places along %" PRId64 " dimensions, input 0 has %u", depth,
                        data->rank - batch);
        *ret_depth = (uint32_t)depth;
        return 0;
}

int sl_shape_gather_nd(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *data = &node->inputs[0].shape, *indices = &node->inputs[1].shape;
        int64_t batch = sl_attrs_int(&node->attrs, SL_ATTR_BATCH_DIMS, 0), merged;
        struct sl_shape out = {.rank = 0};
        uint32_t depth = 0;
        int r = check_indices(node, 1, error);

        if (!r && (batch < 0 || batch > SL_RANK_MAX))
                return sl_error_set(error, EINVAL, "attribute batch_dims is %" PRId64 ", outside [0,%d]", batch, SL_RANK_MAX);
        r = r ? r : depth_of(node, (uint32_t)batch, &depth, error);
        if (r)
                return r;
        if (indices->rank - 1 + data->rank - (uint32_t)batch - depth > SL_RANK_MAX)
                return sl_error_set(error, EINVAL, "the rank of the output exceeds %d", SL_RANK_MAX);
        for (uint32_t i = 0; i + 1 < indices->rank; i++) {
                out.dims[out.rank++] = indices->dims[i];
                if (i < batch && sl_dim_merge(indices->dims[i], data->dims[i], &merged))
                        return sl_error_set(error, EINVAL, "inputs 0 and 1 differ in dimension %u", i);
        }
        for (uint32_t i = (uint32_t)batch + depth; i < data->rank; i++)
                out.dims[out.rank++] = data->dims[i];
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = out;
        return 0;
}

/* A cache, what goes into it, and where in each sample: all but the axis is the same. */
int sl_shape_tensor_scatter(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *cache = &node->inputs[0].shape, *update = &node->inputs[1].shape;
        int64_t mode = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0), merged;
        uint32_t axis;
        int r = sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -2), cache->rank, &axis, error);

        r = r ? r : sl_same_dtype(node, 1, error);
        r = r ? r : check_inside(node, 1, cache->rank, error);
        if (r)
                return r;
        if (!axis)
                return sl_error_set(error, EINVAL, "the axis is 0, which is that of the samples");
        if (mode < 0 || mode > 1)
                return sl_error_set(error, EINVAL, "attribute mode is %" PRId64 ", outside [0,1]", mode);
        for (uint32_t i = 0; i < cache->rank; i++)
                if (i != axis && sl_dim_merge(cache->dims[i], update->dims[i], &merged))
                        return sl_error_set(error, EINVAL, "inputs 0 and 1 differ in dimension %u", i);
        if (sl_input_present(node, 2))
                r = node->inputs[2].dtype == SL_DTYPE_I64
                            ? sl_vector_of(node, 2, cache->dims[0], error)
                            : sl_error_set(error, EINVAL, "input 2 is %s, wants int64", sl_dtype_name(node->inputs[2].dtype));
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = *cache;
        return r;
}

int sl_shape_scatter_nd(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *data = &node->inputs[0].shape, *indices = &node->inputs[1].shape, *rows = &node->inputs[2].shape;
        struct sl_shape want = {.rank = 0};
        char text[SL_SHAPE_TEXT_BYTES], want_text[SL_SHAPE_TEXT_BYTES];
        uint32_t depth = 0;
        int64_t merged;
        bool same;
        int r = check_indices(node, 1, error);

        r = r ? r : depth_of(node, 0, &depth, error);
        r = r ? r : check_reduction(node, error);
        r = r ? r : sl_same_dtype(node, 2, error);
        if (r)
                return r;
        if (indices->rank - 1 + data->rank - depth > SL_RANK_MAX)
                return sl_error_set(error, EINVAL, "the rank of input 2 would exceed %d", SL_RANK_MAX);
        for (uint32_t i = 0; i + 1 < indices->rank; i++)
                want.dims[want.rank++] = indices->dims[i];
        for (uint32_t i = depth; i < data->rank; i++)
                want.dims[want.rank++] = data->dims[i];
        same = rows->rank == want.rank;
        for (uint32_t i = 0; i < want.rank && same; i++)
                same = !sl_dim_merge(rows->dims[i], want.dims[i], &merged);
        if (!same)
                return sl_error_set(
                        error, EINVAL, "input 2 is %s, wants %s", sl_shape_print(rows, text), sl_shape_print(&want, want_text));
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = *data;
        return 0;
}
