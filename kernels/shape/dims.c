/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"
#include "rules.h"

#include <inttypes.h>

int sl_axis_resolve(int64_t axis, uint32_t rank, uint32_t *ret_axis, struct sl_error *error)
{
        if (axis < -(int64_t)rank || axis >= (int64_t)rank)
                return sl_error_set(
                        error, EINVAL, "axis %" PRId64 " is outside [-%u,%d] of rank %u", axis, rank, (int)rank - 1, rank);
        *ret_axis = (uint32_t)(axis < 0 ? axis + rank : axis);
        return 0;
}

int sl_axes_resolve(const struct sl_attr *attr, uint32_t rank, uint32_t *ret_mask, struct sl_error *error)
{
        uint32_t mask = 0;

        for (uint32_t i = 0; i < attr->count; i++) {
                uint32_t axis = 0;
                int r = sl_axis_resolve(attr->ints[i], rank, &axis, error);

                if (r)
                        return r;
                if (mask & 1u << axis)
                        return sl_error_set(error, EINVAL, "axis %" PRId64 " is given twice", attr->ints[i]);
                mask |= 1u << axis;
        }
        *ret_mask = mask;
        return 0;
}

int sl_list_or_input(
        const struct sl_node_desc *node, uint32_t id, uint32_t input, const struct sl_attr **ret_list, struct sl_error *error)
{
        const struct sl_attr *list = sl_attrs_find(&node->attrs, id);

        if (list && list->type != SL_ATTR_TYPE_INTS)
                return sl_error_set(error, EINVAL, "attribute %s is not a list of integers", sl_attr_name(id));
        if (!list && !sl_input_present(node, input))
                return sl_error_set(error, EINVAL, "neither attribute %s nor input %u is given", sl_attr_name(id), input);
        *ret_list = list;
        return 0;
}

int sl_parameter_length(const struct sl_node_desc *node, uint32_t input, uint32_t *ret_length, struct sl_error *error)
{
        const struct sl_shape *shape = &node->inputs[input].shape;

        if (shape->rank > 1)
                return sl_error_set(error, EINVAL, "input %u has rank %u, wants a vector", input, shape->rank);
        if (shape->rank == 1 && !sl_dim_known(shape->dims[0]))
                return sl_error_set(error, ENOTSUP, "input %u has an unknown length, so the rank of the output is unknown", input);
        if (shape->rank == 1 && shape->dims[0] > SL_RANK_MAX)
                return sl_error_set(error, EINVAL, "input %u has %" PRId64 " elements, the highest rank is %d", input,
                        shape->dims[0], SL_RANK_MAX);
        *ret_length = shape->rank ? (uint32_t)shape->dims[0] : 1;
        return 0;
}

int sl_size_wanted(const struct sl_node_desc *node, uint32_t input, uint32_t dim, struct sl_error *error)
{
        const struct sl_shape *shape = &node->inputs[input].shape;
        char text[SL_SHAPE_TEXT_BYTES];

        if (!sl_input_present(node, input) || dim >= shape->rank || sl_dim_known(shape->dims[dim]))
                return 0;
        return sl_error_set(error, ENOTSUP, "dimension %u of input %u, %s, is not known", dim, input, sl_shape_print(shape, text));
}

int sl_dim_merge(int64_t a, int64_t b, int64_t *ret_dim)
{
        if (sl_dim_known(a) && sl_dim_known(b) && a != b)
                return -EINVAL;
        /* Known sizes are the largest numbers, then the batch, then unknown. */
        *ret_dim = a > b ? a : b;
        return 0;
}

static int join_dims(int64_t a, int64_t b, int64_t *ret_dim)
{
        if (a == b || b == 1)
                *ret_dim = a;
        else if (a == 1)
                *ret_dim = b;
        else if (sl_dim_known(a) && sl_dim_known(b))
                return -EINVAL;
        else if (sl_dim_known(a) || sl_dim_known(b))
                *ret_dim = a > b ? a : b;
        else
                *ret_dim = SL_DIM_UNKNOWN;
        return 0;
}

/* Dimension @i of @shape written with @rank dimensions. */
static int64_t aligned_dim(const struct sl_shape *shape, uint32_t rank, uint32_t i)
{
        uint32_t missing = rank - shape->rank;

        return i < missing ? 1 : shape->dims[i - missing];
}

int sl_shape_join(const struct sl_shape *a, const struct sl_shape *b, struct sl_shape *ret_shape, struct sl_error *error)
{
        struct sl_shape joined = {.rank = a->rank > b->rank ? a->rank : b->rank};
        char text_a[SL_SHAPE_TEXT_BYTES], text_b[SL_SHAPE_TEXT_BYTES];

        for (uint32_t i = 0; i < joined.rank; i++)
                if (join_dims(aligned_dim(a, joined.rank, i), aligned_dim(b, joined.rank, i), &joined.dims[i]))
                        return sl_error_set(error, EINVAL, "shapes %s and %s do not broadcast", sl_shape_print(a, text_a),
                                sl_shape_print(b, text_b));
        *ret_shape = joined;
        return 0;
}

int sl_shape_fits(const struct sl_shape *shape, const struct sl_shape *target, const char *what, struct sl_error *error)
{
        char text[SL_SHAPE_TEXT_BYTES], target_text[SL_SHAPE_TEXT_BYTES];
        bool fits = shape->rank <= target->rank;

        for (uint32_t i = 0; fits && i < target->rank; i++) {
                int64_t dim = aligned_dim(shape, target->rank, i);

                fits = dim == 1 || !sl_dim_known(dim) || !sl_dim_known(target->dims[i]) || dim == target->dims[i];
        }
        if (fits)
                return 0;
        return sl_error_set(error, EINVAL, "%s %s does not broadcast to %s", what, sl_shape_print(shape, text),
                sl_shape_print(target, target_text));
}

int sl_same_dtype(const struct sl_node_desc *node, uint32_t index, struct sl_error *error)
{
        if (node->inputs[index].dtype == node->inputs[0].dtype)
                return 0;
        return sl_error_set(error, EINVAL, "input %u is %s, input 0 is %s", index, sl_dtype_name(node->inputs[index].dtype),
                sl_dtype_name(node->inputs[0].dtype));
}

int sl_vector_of(const struct sl_node_desc *node, uint32_t index, int64_t length, struct sl_error *error)
{
        const struct sl_shape *shape = &node->inputs[index].shape;
        char text[SL_SHAPE_TEXT_BYTES];
        int64_t merged;

        if (shape->rank == 1 && !sl_dim_merge(shape->dims[0], length, &merged))
                return 0;
        return sl_error_set(error, EINVAL, "input %u is %s, wants [%" PRId64 "]", index, sl_shape_print(shape, text), length);
}

int sl_extent_of(const int64_t *dims, uint32_t count, struct sl_extent *ret_extent)
{
        struct sl_extent extent = {.factor = 1};

        for (uint32_t i = 0; i < count; i++) {
                if (dims[i] == SL_DIM_BATCH)
                        extent.batches++;
                else if (dims[i] < 0)
                        extent.unknown = true;
                else if (sl_mul_overflows(extent.factor, (uint64_t)dims[i], &extent.factor) || extent.factor > INT64_MAX)
                        return -EOVERFLOW;
        }
        *ret_extent = extent;
        return 0;
}

int64_t sl_extent_dim(const struct sl_extent *extent)
{
        if (extent->unknown)
                return SL_DIM_UNKNOWN;
        if (!extent->batches)
                return (int64_t)extent->factor;
        return extent->batches == 1 && extent->factor == 1 ? SL_DIM_BATCH : SL_DIM_UNKNOWN;
}
