/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"
#include "rules.h"
#include "slice.h"

#include <inttypes.h>

int sl_shape_slice(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_slice slices[SL_RANK_MAX];
        int r = sl_slice_read(node, slices, error);

        if (r)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape.rank = node->inputs[0].shape.rank;
        for (uint32_t i = 0; i < node->inputs[0].shape.rank; i++)
                node->outputs[0].shape.dims[i] = slices[i].count;
        return 0;
}

/* Mode, and what that mode asks of a dimension, as in kernels/ref. */
enum { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };

static int check_pad(int64_t mode, uint32_t axis, int64_t dim, int64_t begin, int64_t end, struct sl_error *error)
{
        int64_t pad = begin > end ? begin : end;
        int64_t least = mode == PAD_REFLECT ? pad + 1 : mode == PAD_CONSTANT || pad <= 0 ? 0 : 1;

        if (dim < least)
                return sl_error_set(error, EINVAL,
                        "padding %" PRId64 " of dimension %u needs %" PRId64 " elements in this mode, input 0 has %" PRId64, pad,
                        axis, least, dim);
        return 0;
}

static int pad_dim(
        const struct sl_node_desc *node, uint32_t axis, int64_t begin, int64_t end, int64_t *ret_dim, struct sl_error *error)
{
        int64_t dim = node->inputs[0].shape.dims[axis], sum;
        int r;

        if (begin == 0 && end == 0) {
                *ret_dim = dim;
                return 0;
        }
        if (begin > INT32_MAX || end > INT32_MAX || begin < -INT32_MAX || end < -INT32_MAX)
                return sl_error_set(error, EOVERFLOW, "padding of dimension %u exceeds %d", axis, INT32_MAX);
        *ret_dim = SL_DIM_UNKNOWN;
        if (!sl_dim_known(dim))
                return 0;
        r = check_pad(sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0), axis, dim, begin, end, error);
        if (r)
                return r;
        if (__builtin_add_overflow(dim, begin + end, &sum))
                return sl_error_set(error, EOVERFLOW, "dimension %u with padding exceeds 64 bits", axis);
        if (sum < 0)
                return sl_error_set(error, EINVAL, "padding cuts %" PRId64 " elements off dimension %u, which has %" PRId64,
                        -(begin + end), axis, dim);
        *ret_dim = sum;
        return 0;
}

int sl_shape_pad(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        struct sl_shape out = {.rank = in->rank};
        int64_t begin[SL_RANK_MAX], end[SL_RANK_MAX], mode = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0);
        const struct sl_attr *pads;
        int r = sl_list_or_input(node, SL_ATTR_PADS, 1, &pads, error);
        bool pending = !pads || (!sl_attrs_find(&node->attrs, SL_ATTR_AXES) && sl_input_present(node, 3));

        if (!r && (mode < PAD_CONSTANT || mode > PAD_WRAP))
                return sl_error_set(error, EINVAL, "attribute mode is %" PRId64 ", outside [0,%d]", mode, PAD_WRAP);
        if (!r && !pending)
                r = sl_pads_read(node, begin, end, error);
        for (uint32_t i = 0; i < in->rank && !r; i++) {
                if (pending)
                        out.dims[i] = SL_DIM_UNKNOWN;
                else
                        r = pad_dim(node, i, begin[i], end[i], &out.dims[i], error);
        }
        if (r)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = out;
        return 0;
}

/* Adds input @index to @out along @axis. */
static int append_shape(
        const struct sl_node_desc *node, uint32_t index, uint32_t axis, struct sl_shape *out, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[index].shape;
        char text[SL_SHAPE_TEXT_BYTES], out_text[SL_SHAPE_TEXT_BYTES];
        bool fits = in->rank == out->rank;

        for (uint32_t i = 0; i < out->rank && fits; i++)
                if (i != axis)
                        fits = !sl_dim_merge(in->dims[i], out->dims[i], &out->dims[i]);
        if (!fits)
                return sl_error_set(error, EINVAL, "input %u is %s, the ones before it make %s (axis %u)", index,
                        sl_shape_print(in, text), sl_shape_print(out, out_text), axis);
        if (!sl_dim_known(in->dims[axis]) || !sl_dim_known(out->dims[axis]))
                out->dims[axis] = SL_DIM_UNKNOWN;
        else if (__builtin_add_overflow(in->dims[axis], out->dims[axis], &out->dims[axis]))
                return sl_error_set(error, EOVERFLOW, "dimension %u exceeds 64 bits at input %u", axis, index);
        return 0;
}

int sl_shape_concat(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_shape out = node->inputs[0].shape;
        uint32_t axis;
        int r;

        if (!sl_attrs_find(&node->attrs, SL_ATTR_AXIS))
                return sl_error_set(error, EINVAL, "attribute axis is missing");
        r = sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), out.rank, &axis, error);
        for (uint32_t i = 1; i < node->n_inputs && !r; i++) {
                if (!sl_input_present(node, i))
                        return sl_error_set(error, EINVAL, "input %u is missing", i);
                r = sl_same_dtype(node, i, error);
                r = r ? r : append_shape(node, i, axis, &out, error);
        }
        if (r)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = out;
        return 0;
}

/* The sizes of the parts as SPLIT gives them, which must add up. */
static int split_by_list(const struct sl_node_desc *node, const struct sl_attr *list, int64_t dim, struct sl_error *error)
{
        int64_t sum = 0;

        if (list->type != SL_ATTR_TYPE_INTS || list->count != node->n_outputs)
                return sl_error_set(
                        error, EINVAL, "attribute split has %u elements, the node has %u outputs", list->count, node->n_outputs);
        for (uint32_t i = 0; i < list->count; i++)
                if (list->ints[i] < 0 || __builtin_add_overflow(sum, list->ints[i], &sum))
                        return sl_error_set(error, EINVAL, "attribute split has the element %" PRId64, list->ints[i]);
        if (sl_dim_known(dim) && sum != dim)
                return sl_error_set(
                        error, EINVAL, "attribute split adds up to %" PRId64 ", the dimension has %" PRId64 " elements", sum, dim);
        return 0;
}

/* Equal parts; the last one is smaller when it does not come out even. */
static int split_evenly(const struct sl_node_desc *node, int64_t dim, int64_t *ret_part, int64_t *ret_last, struct sl_error *error)
{
        int64_t parts = node->n_outputs;

        *ret_part = *ret_last = SL_DIM_UNKNOWN;
        if (parts == 1)
                *ret_part = *ret_last = dim;
        if (parts == 1 || !sl_dim_known(dim))
                return 0;
        *ret_part = dim / parts + (dim % parts != 0);
        *ret_last = dim - *ret_part * (parts - 1);
        if (*ret_last < 0)
                return sl_error_set(error, EINVAL, "%" PRId64 " elements do not split into %" PRId64 " parts", dim, parts);
        return 0;
}

int sl_shape_split(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_tensor *in = &node->inputs[0];
        const struct sl_attr *list = sl_attrs_find(&node->attrs, SL_ATTR_SPLIT);
        int64_t dim, part = SL_DIM_UNKNOWN, last = SL_DIM_UNKNOWN;
        uint32_t axis;
        int r = sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), in->shape.rank, &axis, error);

        if (r)
                return r;
        dim = in->shape.dims[axis];
        if (list)
                r = split_by_list(node, list, dim, error);
        else if (!sl_input_present(node, 1))
                r = split_evenly(node, dim, &part, &last, error);
        for (uint32_t i = 0; i < node->n_outputs && !r; i++) {
                node->outputs[i].dtype = in->dtype;
                node->outputs[i].shape = in->shape;
                node->outputs[i].shape.dims[axis] = list ? list->ints[i] : i + 1 < node->n_outputs ? part : last;
        }
        return r;
}

/* What is joined like a Concat along the channels and cut like a Split is shuffled in between, which changes no shape. */
int sl_shape_channel_shuffle(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_attr *list = sl_attrs_find(&node->attrs, SL_ATTR_SPLIT);
        int64_t group = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);
        struct sl_tensor all;
        int r;

        if (node->inputs[0].shape.rank < 2 || sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0) != 1 || !list)
                return sl_error_set(error, EINVAL, "rank %u, axis %" PRId64 ", %s split: wants channels, along axis 1, and a split",
                        node->inputs[0].shape.rank, sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), list ? "a" : "no");
        r = sl_shape_concat(node, error);
        if (r)
                return r;
        all = node->outputs[0];
        if (!sl_dim_known(all.shape.dims[1]))
                return sl_error_set(error, ENOTSUP, "how many channels its inputs have together is not known");
        if (group < 1 || all.shape.dims[1] % group)
                return sl_error_set(
                        error, EINVAL, "%" PRId64 " groups of %" PRId64 " channels do not come out even", group, all.shape.dims[1]);
        r = split_by_list(node, list, all.shape.dims[1], error);
        for (uint32_t i = 0; i < node->n_outputs && !r; i++) {
                node->outputs[i] = all;
                node->outputs[i].shape.dims[1] = list->ints[i];
        }
        return r;
}

int sl_shape_transpose(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        const struct sl_attr *perm = sl_attrs_find(&node->attrs, SL_ATTR_PERM);
        struct sl_shape out = {.rank = in->rank};
        uint32_t mask = 0;

        if (perm && (perm->type != SL_ATTR_TYPE_INTS || perm->count != in->rank))
                return sl_error_set(error, EINVAL, "attribute perm has %u elements, input 0 has rank %u", perm->count, in->rank);
        for (uint32_t i = 0; i < in->rank; i++) {
                int64_t from = perm ? perm->ints[i] : (int64_t)in->rank - 1 - i;

                if (from < 0 || from >= in->rank || mask & 1u << from)
                        return sl_error_set(error, EINVAL, "attribute perm has the element %" PRId64 ", outside [0,%u] or twice",
                                from, in->rank - 1);
                mask |= 1u << from;
                out.dims[i] = in->dims[from];
        }
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = out;
        return 0;
}

/* SHAPE of Expand and Tile as a shape, or unknown dimensions while it stands as an input. */
static int read_target(const struct sl_node_desc *node, struct sl_shape *ret_shape, bool *ret_pending, struct sl_error *error)
{
        const struct sl_attr *list;
        int r = sl_list_or_input(node, SL_ATTR_SHAPE, 1, &list, error);

        if (r)
                return r;
        *ret_pending = !list;
        if (!list)
                r = sl_parameter_length(node, 1, &ret_shape->rank, error);
        else if (list->count > SL_RANK_MAX)
                r = sl_error_set(
                        error, EINVAL, "attribute shape has %u elements, the highest rank is %d", list->count, SL_RANK_MAX);
        else
                ret_shape->rank = list->count;
        for (uint32_t i = 0; i < ret_shape->rank && !r; i++) {
                ret_shape->dims[i] = list ? list->ints[i] : SL_DIM_UNKNOWN;
                if (list && list->ints[i] < 0)
                        r = sl_error_set(error, EINVAL, "attribute shape has the element %" PRId64, list->ints[i]);
        }
        return r;
}

int sl_shape_expand(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_shape target = {.rank = 0};
        bool pending;
        int r = read_target(node, &target, &pending, error);

        r = r ? r : sl_shape_join(&node->inputs[0].shape, &target, &target, error);
        if (r)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = target;
        return 0;
}

static int repeat_dim(int64_t dim, int64_t repeats, int64_t *ret_dim)
{
        if (repeats == 1)
                *ret_dim = dim;
        else if (!sl_dim_known(dim) || !sl_dim_known(repeats))
                *ret_dim = SL_DIM_UNKNOWN;
        else if (__builtin_mul_overflow(dim, repeats, ret_dim))
                return -EOVERFLOW;
        return 0;
}

int sl_shape_tile(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        struct sl_shape repeats = {.rank = 0}, out = {.rank = in->rank};
        bool pending;
        int r = read_target(node, &repeats, &pending, error);

        if (!r && repeats.rank != in->rank)
                return sl_error_set(error, EINVAL, "%u repeats are given, input 0 has rank %u", repeats.rank, in->rank);
        for (uint32_t i = 0; i < in->rank && !r; i++)
                if (repeat_dim(in->dims[i], repeats.dims[i], &out.dims[i]))
                        r = sl_error_set(error, EOVERFLOW, "dimension %u exceeds 64 bits when repeated", i);
        if (r)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = out;
        return 0;
}

/* The axes that SHAPE is about; ONNX's default is all of them. */
int sl_shape_center_crop_pad(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        const struct sl_attr *axes = sl_attrs_find(&node->attrs, SL_ATTR_AXES);
        struct sl_shape target = {.rank = 0}, out = *in;
        uint32_t mask, count = axes ? axes->count : in->rank;
        bool pending;
        int r = read_target(node, &target, &pending, error);

        if (!r && axes)
                r = sl_axes_resolve(axes, in->rank, &mask, error);
        if (!r && target.rank != count)
                r = sl_error_set(error, EINVAL, "%u sizes are given for %u axes", target.rank, count);
        if (r)
                return r;
        for (uint32_t i = 0; i < count; i++) {
                int64_t axis = axes ? axes->ints[i] : i;

                out.dims[axis + (axis < 0 ? in->rank : 0)] = target.dims[i];
        }
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = out;
        return 0;
}
