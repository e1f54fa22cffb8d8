/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the operators that only write the same elements with other dimensions.
 */
#include "rules.h"

#include <inttypes.h>

static int finish(struct sl_node_desc *node, const struct sl_shape *shape)
{
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = *shape;
        return 0;
}

static int unknown_shape(struct sl_node_desc *node, int64_t rank, struct sl_error *error)
{
        struct sl_shape shape = {.rank = (uint32_t)rank};

        if (rank < 0 || rank > SL_RANK_MAX)
                return sl_error_set(error, EINVAL, "the output would have rank %" PRId64 ", outside [0,%d]", rank, SL_RANK_MAX);
        for (uint32_t i = 0; i < shape.rank; i++)
                shape.dims[i] = SL_DIM_UNKNOWN;
        return finish(node, &shape);
}

/* Reshape: the dimensions as the list gives them; *ret_open is the one that is left to be found (-1), or the rank. */
static int read_reshape(const struct sl_node_desc *node, const struct sl_attr *list, struct sl_shape *ret_shape, uint32_t *ret_open,
        struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        bool zero_copies = !sl_attrs_int(&node->attrs, SL_ATTR_ALLOW_ZERO, 0);

        if (list->count > SL_RANK_MAX)
                return sl_error_set(
                        error, EINVAL, "attribute shape has %u elements, the highest rank is %d", list->count, SL_RANK_MAX);
        ret_shape->rank = *ret_open = list->count;
        for (uint32_t i = 0; i < list->count; i++) {
                bool copies = list->ints[i] == 0 && zero_copies;

                if (list->ints[i] < -1 || (list->ints[i] == -1 && *ret_open < list->count))
                        return sl_error_set(
                                error, EINVAL, "attribute shape has a negative element at %u: %" PRId64, i, list->ints[i]);
                if (copies && i >= in->rank)
                        return sl_error_set(error, EINVAL, "attribute shape has a 0 at %u, input 0 has rank %u", i, in->rank);
                ret_shape->dims[i] = copies ? in->dims[i] : list->ints[i];
                if (list->ints[i] == -1)
                        *ret_open = i;
        }
        return 0;
}

static int refuse_reshape(const struct sl_node_desc *node, const struct sl_shape *out, struct sl_error *error)
{
        char in_text[SL_SHAPE_TEXT_BYTES], out_text[SL_SHAPE_TEXT_BYTES];

        return sl_error_set(error, EINVAL, "input 0 is %s, its elements do not make %s",
                sl_shape_print(&node->inputs[0].shape, in_text), sl_shape_print(out, out_text));
}

/* The dimension that makes @rest as many elements as @whole; false when there is none. */
static bool find_open_dim(const struct sl_extent *whole, const struct sl_extent *rest, int64_t *ret_dim)
{
        bool symbolic = whole->unknown || rest->unknown;
        int64_t batches = (int64_t)whole->batches - rest->batches;

        *ret_dim = SL_DIM_UNKNOWN;
        if (symbolic || batches < 0 || batches > 1)
                return true;
        if (!rest->factor)
                return false;
        if (batches == 1) {
                if (whole->factor == rest->factor)
                        *ret_dim = SL_DIM_BATCH;
                return true;
        }
        *ret_dim = (int64_t)(whole->factor / rest->factor);
        return whole->factor % rest->factor == 0;
}

/* Some sizes make both as many elements, and so they are multiples of what is known of each. */
static bool can_hold(const struct sl_extent *whole, const struct sl_extent *made)
{
        if (!whole->unknown && !made->unknown && whole->batches == made->batches)
                return whole->factor == made->factor;
        if (made->unknown || made->batches || !made->factor)
                return true;
        return whole->factor && made->factor % whole->factor == 0;
}

static int resolve_reshape(const struct sl_node_desc *node, struct sl_shape *shape, uint32_t open, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        struct sl_shape printed = *shape;
        struct sl_extent whole, rest;
        int64_t others[SL_RANK_MAX];
        uint32_t n_others = 0;

        for (uint32_t i = 0; i < shape->rank; i++)
                if (i != open)
                        others[n_others++] = shape->dims[i];
        if (open < shape->rank)
                printed.dims[open] = SL_DIM_UNKNOWN;
        if (sl_extent_of(in->dims, in->rank, &whole) || sl_extent_of(others, n_others, &rest))
                return sl_error_set(error, EOVERFLOW, "the elements of input 0 or of the new shape exceed 64 bits");
        if (open < shape->rank)
                return find_open_dim(&whole, &rest, &shape->dims[open]) ? 0 : refuse_reshape(node, &printed, error);
        return can_hold(&whole, &rest) ? 0 : refuse_reshape(node, &printed, error);
}

int sl_shape_reshape(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_attr *list;
        struct sl_shape shape = {.rank = 0};
        uint32_t open, length;
        int r = sl_list_or_input(node, SL_ATTR_SHAPE, 1, &list, error);

        if (r)
                return r;
        if (!list) {
                r = sl_parameter_length(node, 1, &length, error);
                return r ? r : unknown_shape(node, length, error);
        }
        r = read_reshape(node, list, &shape, &open, error);
        r = r ? r : resolve_reshape(node, &shape, open, error);
        return r ? r : finish(node, &shape);
}

int sl_shape_flatten(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 1), rank = in->rank;
        struct sl_extent rows, columns;

        if (axis < -rank || axis > rank)
                return sl_error_set(error, EINVAL, "axis %" PRId64 " is outside [-%u,%u]", axis, in->rank, in->rank);
        axis += axis < 0 ? rank : 0;
        if (sl_extent_of(in->dims, (uint32_t)axis, &rows) || sl_extent_of(in->dims + axis, (uint32_t)(rank - axis), &columns))
                return sl_error_set(error, EOVERFLOW, "the elements of input 0 exceed 64 bits");
        return finish(node, &(struct sl_shape){.rank = 2, .dims = {sl_extent_dim(&rows), sl_extent_dim(&columns)}});
}

/* Without a list every dimension of 1 goes, which only a known shape can tell. */
static int ones_of(const struct sl_shape *in, uint32_t *ret_mask, struct sl_error *error)
{
        char text[SL_SHAPE_TEXT_BYTES];

        *ret_mask = 0;
        if (!sl_shape_is_static(in))
                return sl_error_set(error, ENOTSUP, "no axes are given and input 0 is %s, so the rank of the output is unknown",
                        sl_shape_print(in, text));
        for (uint32_t i = 0; i < in->rank; i++)
                if (in->dims[i] == 1)
                        *ret_mask |= 1u << i;
        return 0;
}

int sl_shape_squeeze(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        const struct sl_attr *axes = sl_attrs_find(&node->attrs, SL_ATTR_AXES);
        struct sl_shape shape = {.rank = 0};
        uint32_t mask, length;
        int r;

        if (!axes && sl_input_present(node, 1)) {
                r = sl_parameter_length(node, 1, &length, error);
                return r ? r : unknown_shape(node, (int64_t)in->rank - length, error);
        }
        r = axes ? sl_axes_resolve(axes, in->rank, &mask, error) : ones_of(in, &mask, error);
        if (r)
                return r;
        for (uint32_t i = 0; i < in->rank; i++) {
                if (!(mask & 1u << i))
                        shape.dims[shape.rank++] = in->dims[i];
                else if (sl_dim_known(in->dims[i]) && in->dims[i] != 1)
                        return sl_error_set(error, EINVAL, "axis %u of input 0 has %" PRId64 " elements, wants 1", i, in->dims[i]);
        }
        return finish(node, &shape);
}

int sl_shape_unsqueeze(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        struct sl_shape shape = {.rank = 0};
        const struct sl_attr *axes;
        uint32_t mask, length, from = 0;
        int r = sl_list_or_input(node, SL_ATTR_AXES, 1, &axes, error);

        if (r)
                return r;
        if (!axes) {
                r = sl_parameter_length(node, 1, &length, error);
                return r ? r : unknown_shape(node, (int64_t)in->rank + length, error);
        }
        shape.rank = in->rank + axes->count;
        if (shape.rank > SL_RANK_MAX)
                return sl_error_set(error, EINVAL, "the output would have rank %u, the highest is %d", shape.rank, SL_RANK_MAX);
        r = sl_axes_resolve(axes, shape.rank, &mask, error);
        if (r)
                return r;
        for (uint32_t i = 0; i < shape.rank; i++)
                shape.dims[i] = mask & 1u << i ? 1 : in->dims[from++];
        return finish(node, &shape);
}
