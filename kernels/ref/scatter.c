/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gather and scatter of elements and rows. Every index is checked where it is used.
 */
#include "element.h"
#include "kernels.h"

#include <errno.h>
#include <string.h>

enum { REDUCE_NONE, REDUCE_ADD, REDUCE_MUL, REDUCE_MAX, REDUCE_MIN };

/* @index counted from the end when negative; -ERANGE outside @size. */
static int64_t checked(int64_t index, int64_t size)
{
        if (index < -size || index >= size)
                return -ERANGE;
        return index < 0 ? index + size : index;
}

/*
 * Where the elements of a tensor of indices lead in the data: along @axis to where the index says, along the others as they lie.
 * @data_at is the offset of the element's column, at index 0 of the axis.
 */
struct columns {
        const struct sl_shape *shape; /* of the indices */
        int64_t strides[SL_RANK_MAX], axis_stride, axis_size;
        int64_t index[SL_RANK_MAX], data_at;
        uint32_t axis;
};

static void columns_init(struct columns *c, const struct sl_node_desc *node)
{
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0);

        *c = (struct columns){.shape = &node->inputs[1].shape};
        c->axis = (uint32_t)(axis < 0 ? axis + c->shape->rank : axis);
        sl_tensor_strides(&node->inputs[0], c->strides);
        c->axis_stride = c->strides[c->axis];
        c->axis_size = node->inputs[0].shape.dims[c->axis];
        c->strides[c->axis] = 0;
}

static void columns_next(struct columns *c)
{
        for (uint32_t d = c->shape->rank; d-- > 0;) {
                c->data_at += c->strides[d];
                if (++c->index[d] < c->shape->dims[d])
                        return;
                c->data_at -= c->strides[d] * c->shape->dims[d];
                c->index[d] = 0;
        }
}

int sl_ref_gather_elements(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t n = (int64_t)sl_shape_elements(&node->inputs[1].shape);
        size_t bytes = sl_dtype_bytes(node->inputs[0].dtype);
        struct columns c;

        columns_init(&c, node);
        for (int64_t i = 0; i < n && sl_pace_on(binding->pace, 1); i++, columns_next(&c)) {
                int64_t at = checked((int64_t)sl_ref_load_bits(binding->inputs[1], i, node->inputs[1].dtype), c.axis_size);

                if (at < 0)
                        return -ERANGE;
                memcpy((char *)binding->outputs[0] + (size_t)i * bytes,
                        (const char *)binding->inputs[0] + (size_t)(c.data_at + at * c.axis_stride) * bytes, bytes);
        }
        return 0;
}

static double reduce_floats(int64_t kind, double old, double new)
{
        switch (kind) {
        case REDUCE_ADD:
                return old + new;
        case REDUCE_MUL:
                return old * new;
        case REDUCE_MAX:
                return isnan(old) || old > new ? old : new;
        default:
                return isnan(old) || old < new ? old : new;
        }
}

static uint64_t reduce_bits(int64_t kind, uint64_t old, uint64_t new, bool is_unsigned)
{
        bool less = is_unsigned ? old < new : (int64_t)old < (int64_t) new;

        switch (kind) {
        case REDUCE_ADD:
                return old + new;
        case REDUCE_MUL:
                return old * new;
        case REDUCE_MAX:
                return less ? new : old;
        default:
                return less ? old : new;
        }
}

/* @count elements of @from, from @from_at on, go to @to, to @to_at and behind. */
static void put(int64_t kind, void *to, int64_t to_at, const void *from, int64_t from_at, int64_t count, uint32_t dtype)
{
        size_t bytes = sl_dtype_bytes(dtype);

        if (kind == REDUCE_NONE) {
                memcpy((char *)to + (size_t)to_at * bytes, (const char *)from + (size_t)from_at * bytes, (size_t)count * bytes);
                return;
        }
        for (int64_t i = 0; i < count; i++) {
                if (sl_dtype_is_float(dtype))
                        sl_ref_store(to, to_at + i, dtype,
                                reduce_floats(kind, sl_ref_load(to, to_at + i, dtype), sl_ref_load(from, from_at + i, dtype)));
                else
                        sl_ref_store_bits(to, to_at + i, dtype,
                                reduce_bits(kind, sl_ref_load_bits(to, to_at + i, dtype),
                                        sl_ref_load_bits(from, from_at + i, dtype), sl_ref_is_unsigned(dtype)));
        }
}

static void copy_data(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        if (binding->outputs[0] != binding->inputs[0])
                memcpy(binding->outputs[0], binding->inputs[0], sl_tensor_bytes(&node->inputs[0]));
}

/* Where a sample's update begins in the cache. -ERANGE: it would reach beyond its end. */
static int64_t start_of(
        const struct sl_node_desc *node, const struct sl_binding *binding, int64_t sample, int64_t cached, int64_t n)
{
        bool told = node->n_inputs > 2 && node->inputs[2].dtype != SL_DTYPE_NONE;
        int64_t start = told ? (int64_t)sl_ref_load_bits(binding->inputs[2], sample, node->inputs[2].dtype) : 0;

        if (start < 0)
                return -ERANGE;
        if (sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0))
                return cached ? start % cached : 0;
        return start > cached - n ? -ERANGE : start;
}

int sl_ref_tensor_scatter(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *cache = &node->inputs[0].shape, *update = &node->inputs[1].shape;
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -2), cached, n, rows = 1;
        size_t bytes = sl_dtype_bytes(node->inputs[0].dtype);

        axis += axis < 0 ? cache->rank : 0;
        cached = cache->dims[axis];
        n = update->dims[axis];
        for (int64_t i = 1; i < axis; i++)
                rows *= cache->dims[i];
        for (uint32_t i = (uint32_t)axis + 1; i < cache->rank; i++)
                bytes *= (size_t)cache->dims[i];
        copy_data(node, binding);
        for (int64_t sample = 0; sample < cache->dims[0] && rows && n; sample++) {
                int64_t start = start_of(node, binding, sample, cached, n);

                if (start < 0)
                        return -ERANGE;
                for (int64_t i = 0; i < rows * n && sl_pace_on(binding->pace, 1 + bytes / sizeof(uint64_t)); i++) {
                        int64_t row = sample * rows + i / n, at = (start + i % n) % cached;

                        memcpy((char *)binding->outputs[0] + (size_t)(row * cached + at) * bytes,
                                (const char *)binding->inputs[1] + (size_t)(row * n + i % n) * bytes, bytes);
                }
        }
        return 0;
}

int sl_ref_scatter_elements(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t n = (int64_t)sl_shape_elements(&node->inputs[1].shape), kind = sl_attrs_int(&node->attrs, SL_ATTR_REDUCTION, 0);
        struct columns c;

        columns_init(&c, node);
        copy_data(node, binding);
        for (int64_t i = 0; i < n && sl_pace_on(binding->pace, 1); i++, columns_next(&c)) {
                int64_t at = checked((int64_t)sl_ref_load_bits(binding->inputs[1], i, node->inputs[1].dtype), c.axis_size);

                if (at < 0)
                        return -ERANGE;
                put(kind, binding->outputs[0], c.data_at + at * c.axis_stride, binding->inputs[2], i, 1, node->inputs[0].dtype);
        }
        return 0;
}

/* Rows named by tuples: the tuple has @depth places along the dimensions behind the first @batch. */
struct rows {
        uint32_t batch, depth;
        int64_t n_tuples, row, strides[SL_RANK_MAX];
};

static struct rows rows_of(const struct sl_node_desc *node)
{
        const struct sl_shape *data = &node->inputs[0].shape, *indices = &node->inputs[1].shape;
        struct rows r = {.batch = (uint32_t)sl_attrs_int(&node->attrs, SL_ATTR_BATCH_DIMS, 0), .n_tuples = 1, .row = 1};

        r.depth = (uint32_t)indices->dims[indices->rank - 1];
        for (uint32_t i = 0; i + 1 < indices->rank; i++)
                r.n_tuples *= indices->dims[i];
        for (uint32_t i = r.batch + r.depth; i < data->rank; i++)
                r.row *= data->dims[i];
        sl_tensor_strides(&node->inputs[0], r.strides);
        return r;
}

/* Offset of the row that tuple @i names, without that of its batch; -ERANGE. */
static int64_t row_at(const struct rows *r, const struct sl_node_desc *node, const void *indices, int64_t i)
{
        int64_t offset = 0;

        for (uint32_t k = 0; k < r->depth; k++) {
                int64_t at = checked((int64_t)sl_ref_load_bits(indices, i * r->depth + k, node->inputs[1].dtype),
                        node->inputs[0].shape.dims[r->batch + k]);

                if (at < 0)
                        return -ERANGE;
                offset += at * r->strides[r->batch + k];
        }
        return offset;
}

int sl_ref_gather_nd(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct rows r = rows_of(node);
        size_t bytes = sl_dtype_bytes(node->inputs[0].dtype);
        int64_t batches = 1, of_batch = 1;

        for (uint32_t i = 0; i < node->inputs[0].shape.rank; i++) {
                if (i < r.batch)
                        batches *= node->inputs[0].shape.dims[i];
                else
                        of_batch *= node->inputs[0].shape.dims[i];
        }
        for (int64_t i = 0; i < r.n_tuples && sl_pace_on(binding->pace, (uint64_t)r.row + r.depth); i++) {
                int64_t at = row_at(&r, node, binding->inputs[1], i);

                if (at < 0)
                        return -ERANGE;
                at += i / (r.n_tuples / batches) * of_batch;
                memcpy((char *)binding->outputs[0] + (size_t)(i * r.row) * bytes,
                        (const char *)binding->inputs[0] + (size_t)at * bytes, (size_t)r.row * bytes);
        }
        return 0;
}

int sl_ref_scatter_nd(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t kind = sl_attrs_int(&node->attrs, SL_ATTR_REDUCTION, 0);
        struct rows r = rows_of(node);

        copy_data(node, binding);
        for (int64_t i = 0; i < r.n_tuples && sl_pace_on(binding->pace, (uint64_t)r.row + r.depth); i++) {
                int64_t at = row_at(&r, node, binding->inputs[1], i);

                if (at < 0)
                        return -ERANGE;
                put(kind, binding->outputs[0], at, binding->inputs[2], i * r.row, r.row, node->inputs[0].dtype);
        }
        return 0;
}
