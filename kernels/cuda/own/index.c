/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose data says where to read or write: the kernels check every index. */
#include "cuda/own/builder.h"

#include <errno.h>

#define SCATTER_THREADS 16384

static uint64_t product(const struct sl_shape *shape, uint32_t from, uint32_t to)
{
        uint64_t elements = 1;

        for (uint32_t i = from; i < to; i++)
                elements *= (uint64_t)shape->dims[i];
        return elements;
}

/* The data, the indices and the error word of one of the arguments below. */
#define ADD_INDEX_SLOTS(launch, type, out_source, out_index, in_source, in_index)                                                  \
        do {                                                                                                                       \
                sl_own_slot(launch, offsetof(struct type, out), out_source, out_index, 0);                                         \
                sl_own_slot(launch, offsetof(struct type, in), in_source, in_index, 0);                                            \
                sl_own_slot(launch, offsetof(struct type, indices), SL_OWN_INPUT, 1, 0);                                           \
                sl_own_slot(launch, offsetof(struct type, error), SL_OWN_ERROR, 0, 0);                                             \
        } while (0)

/* All tensors in the order of their dimensions: indices have no other one. */
static bool all_plain(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].layout != SL_LAYOUT_PLAIN)
                        return false;
        return node->outputs[0].layout == SL_LAYOUT_PLAIN;
}

int sl_own_plan_gather(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_shape *data = &node->inputs[0].shape;
        uint32_t axis = sl_own_axis(node, 0), unit = 16, bytes = (uint32_t)sl_dtype_bytes(node->inputs[0].dtype);
        uint64_t row = product(data, axis + 1, data->rank) * bytes, elements = sl_shape_elements(&node->outputs[0].shape);
        struct sl_own_gather a = {.index_dtype = node->inputs[1].dtype, .limit = (uint32_t)data->dims[axis]};
        struct sl_own_launch *launch;

        if (!all_plain(node))
                return -ENOTSUP;
        while (unit > bytes && row % unit)
                unit /= 2;
        a.elements = (uint32_t)(elements * bytes / unit);
        a.row = sl_own_divide_by(row / unit);
        a.n_indices = sl_own_divide_by(sl_shape_elements(&node->inputs[1].shape));
        launch = sl_own_add(
                builder, SL_OWN_KERNEL_gather_1 + (unit > 1) + (unit > 2) + (unit > 4) + (unit > 8), &a, sizeof(a), a.elements);
        ADD_INDEX_SLOTS(launch, sl_own_gather, SL_OWN_OUTPUT, 0, SL_OWN_INPUT, 0);
        sl_own_checks(builder);
        return 0;
}

static uint32_t reduction_of(const struct sl_node_desc *node)
{
        return (uint32_t)sl_attrs_int(&node->attrs, SL_ATTR_REDUCTION, 0);
}

static void add_elements(struct sl_own_builder *builder, const struct sl_node_desc *node, bool scatter)
{
        const struct sl_shape *data = &node->inputs[0].shape, *walked = &node->inputs[1].shape;
        struct sl_own_gather_elements a = {.elements = (uint32_t)sl_shape_elements(walked),
                .n_dims = walked->rank,
                .bytes = (uint32_t)sl_dtype_bytes(node->inputs[0].dtype),
                .index_dtype = node->inputs[1].dtype,
                .scatter = scatter,
                .reduction = scatter ? reduction_of(node) : 0,
                .dtype = node->inputs[0].dtype};
        struct sl_own_launch *launch;
        int64_t strides[SL_RANK_MAX];

        sl_tensor_strides(&node->inputs[0], strides);
        a.axis = a.n_dims - 1 - sl_own_axis(node, 0);
        a.limit = (uint32_t)data->dims[sl_own_axis(node, 0)];
        for (uint32_t d = 0; d < a.n_dims; d++) {
                a.dims[d] = sl_own_divide_by((uint64_t)walked->dims[a.n_dims - 1 - d]);
                a.strides[d] = (uint32_t)strides[a.n_dims - 1 - d];
        }
        if (!a.elements)
                return;
        launch = a.reduction
                         ? sl_own_add(builder, SL_OWN_KERNEL_scatter_elements, &a, sizeof(a), a.elements / a.dims[a.axis].divisor)
                         : sl_own_add(builder, SL_OWN_KERNEL_gather_elements, &a, sizeof(a), a.elements);
        ADD_INDEX_SLOTS(launch, sl_own_gather_elements, SL_OWN_OUTPUT, 0, SL_OWN_INPUT, scatter ? 2 : 0);
        sl_own_checks(builder);
}

int sl_own_plan_gather_elements(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        if (!all_plain(node))
                return -ENOTSUP;
        add_elements(builder, node, false);
        return 0;
}

static bool reduces(const struct sl_node_desc *node)
{
        uint32_t dtype = node->inputs[0].dtype;

        return reduction_of(node) <= SL_OWN_SCATTER_MIN && dtype != SL_DTYPE_BOOL &&
               (!sl_dtype_is_float(dtype) || sl_own_is_float(dtype));
}

/* The output begins as the data. */
static int start_scatter(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        struct sl_node_desc copy = {.n_inputs = 1, .n_outputs = 1, .inputs = {node->inputs[0]}, .outputs = {node->outputs[0]}};

        if (!all_plain(node) || (reduction_of(node) && !reduces(node)))
                return -ENOTSUP;
        return sl_own_plan_view(builder, &copy);
}

int sl_own_plan_scatter_elements(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        int r = start_scatter(builder, node);

        if (!r)
                add_elements(builder, node, true);
        return r;
}

/* Threads that share the rows of @elements elements: each looks at all indices, so that more than a GPU runs at once gain nothing.
 */
static uint32_t owners_of(uint32_t row, uint32_t elements)
{
        uint32_t rows = elements / row, owners = row < SCATTER_THREADS ? SCATTER_THREADS / row : 1;

        return owners < rows ? owners : rows ? rows : 1;
}

static void add_rows(struct sl_own_builder *builder, const struct sl_node_desc *node, bool scatter)
{
        const struct sl_shape *data = &node->inputs[0].shape, *indices = &node->inputs[1].shape;
        uint32_t batch = (uint32_t)sl_attrs_int(&node->attrs, SL_ATTR_BATCH_DIMS, 0);
        struct sl_own_gather_nd a = {.bytes = (uint32_t)sl_dtype_bytes(node->inputs[0].dtype),
                .index_dtype = node->inputs[1].dtype,
                .depth = (uint32_t)indices->dims[indices->rank - 1],
                .batch_stride = (uint32_t)product(data, batch, data->rank),
                .scatter = scatter,
                .reduction = scatter ? reduction_of(node) : 0,
                .dtype = node->inputs[0].dtype};
        uint64_t tuples = product(indices, 0, indices->rank - 1), batches = product(data, 0, batch);
        struct sl_own_launch *launch;
        int64_t strides[SL_RANK_MAX];

        sl_tensor_strides(&node->inputs[0], strides);
        for (uint32_t d = 0; d < a.depth; d++) {
                a.limits[d] = (uint32_t)data->dims[batch + d];
                a.strides[d] = (uint32_t)strides[batch + d];
        }
        a.row = sl_own_divide_by(product(data, batch + a.depth, data->rank));
        a.n_indices = sl_own_divide_by(batches ? tuples / batches : 1);
        a.elements = (uint32_t)(tuples * product(data, batch + a.depth, data->rank));
        if (!a.elements)
                return;
        a.owners = owners_of(a.row.divisor, a.batch_stride);
        launch = a.reduction ? sl_own_add(builder, SL_OWN_KERNEL_scatter_rows, &a, sizeof(a), (uint64_t)a.row.divisor * a.owners)
                             : sl_own_add(builder, SL_OWN_KERNEL_gather_nd, &a, sizeof(a), a.elements);
        ADD_INDEX_SLOTS(launch, sl_own_gather_nd, SL_OWN_OUTPUT, 0, SL_OWN_INPUT, scatter ? 2 : 0);
        sl_own_checks(builder);
}

int sl_own_plan_gather_nd(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        if (!all_plain(node))
                return -ENOTSUP;
        add_rows(builder, node, false);
        return 0;
}

int sl_own_plan_scatter_nd(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        int r = start_scatter(builder, node);

        if (!r)
                add_rows(builder, node, true);
        return r;
}

int sl_own_plan_one_hot(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_shape *out = &node->outputs[0].shape;
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1);
        struct sl_own_one_hot a = {.elements = (uint32_t)sl_shape_elements(out),
                .bytes = (uint32_t)sl_dtype_bytes(node->outputs[0].dtype),
                .index_dtype = node->inputs[0].dtype};
        struct sl_own_launch *launch;

        if (!all_plain(node) || a.index_dtype == SL_DTYPE_U64 || a.index_dtype == SL_DTYPE_F64)
                return -ENOTSUP;
        axis += axis < 0 ? out->rank : 0;
        a.inner = sl_own_divide_by(product(out, (uint32_t)axis + 1, out->rank));
        a.depth = sl_own_divide_by((uint64_t)out->dims[axis]);
        launch = sl_own_add(builder, SL_OWN_KERNEL_one_hot, &a, sizeof(a), a.elements);
        sl_own_slot(launch, offsetof(struct sl_own_one_hot, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_one_hot, indices), SL_OWN_INPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_one_hot, values), SL_OWN_INPUT, 1, 0);
        return 0;
}

int sl_own_plan_reverse_sequence(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        bool time_first = sl_attrs_int(&node->attrs, SL_ATTR_TIME_AXIS, 0) == 0;
        struct sl_own_reverse a = {.elements = (uint32_t)sl_shape_elements(in),
                .bytes = (uint32_t)sl_dtype_bytes(node->inputs[0].dtype),
                .steps = (uint32_t)in->dims[!time_first],
                .batch = (uint32_t)in->dims[time_first],
                .time_first = time_first,
                .row = sl_own_divide_by(product(in, 2, in->rank))};
        struct sl_own_launch *launch;

        if (!all_plain(node) || node->inputs[1].dtype != SL_DTYPE_I64)
                return -ENOTSUP;
        launch = sl_own_add(builder, SL_OWN_KERNEL_reverse, &a, sizeof(a), a.elements);
        sl_own_slot(launch, offsetof(struct sl_own_reverse, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_reverse, in), SL_OWN_INPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_reverse, lengths), SL_OWN_INPUT, 1, 0);
        sl_own_slot(launch, offsetof(struct sl_own_reverse, error), SL_OWN_ERROR, 0, 0);
        sl_own_checks(builder);
        return 0;
}
