/* SPDX-License-Identifier: Apache-2.0 */
#include "element.h"
#include "kernels.h"
#include "shape/slice.h"
#include "walk.h"

#include <string.h>

static int64_t plain_strides(const struct sl_tensor *tensor, int64_t ret_strides[SL_RANK_MAX])
{
        struct sl_tensor plain = *tensor;

        plain.layout = SL_LAYOUT_PLAIN;
        sl_tensor_strides(&plain, ret_strides);
        return (int64_t)sl_dtype_bytes(tensor->dtype);
}

int sl_ref_view(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        memmove(binding->outputs[0], binding->inputs[0], sl_tensor_bytes(&node->inputs[0]));
        return 0;
}

/* Copies all of @shape between two tensors with these strides, from the given bases on. */
static void copy_box(struct sl_pace *pace, const struct sl_shape *shape, void *out, const int64_t out_strides[SL_RANK_MAX],
        const void *in, const int64_t in_strides[SL_RANK_MAX], size_t bytes)
{
        struct sl_ref_walk walk;

        sl_ref_walk_init(&walk, shape, 2, pace);
        sl_ref_walk_strides(&walk, 0, out_strides);
        sl_ref_walk_strides(&walk, 1, in_strides);
        sl_ref_walk_copy(&walk, out, in, bytes);
}

static uint32_t axis_of(const struct sl_node_desc *node)
{
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0);

        return (uint32_t)(axis < 0 ? axis + node->inputs[0].shape.rank : axis);
}

int sl_ref_concat(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t out_strides[SL_RANK_MAX], in_strides[SL_RANK_MAX], bytes = plain_strides(&node->outputs[0], out_strides);
        uint32_t axis = axis_of(node);
        char *out = binding->outputs[0];

        for (uint32_t i = 0; i < node->n_inputs; i++) {
                plain_strides(&node->inputs[i], in_strides);
                copy_box(binding->pace, &node->inputs[i].shape, out, out_strides, binding->inputs[i], in_strides, (size_t)bytes);
                out += node->inputs[i].shape.dims[axis] * out_strides[axis] * bytes;
        }
        return 0;
}

int sl_ref_split(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t out_strides[SL_RANK_MAX], in_strides[SL_RANK_MAX], bytes = plain_strides(&node->inputs[0], in_strides);
        uint32_t axis = axis_of(node);
        const char *in = binding->inputs[0];

        for (uint32_t i = 0; i < node->n_outputs; i++) {
                plain_strides(&node->outputs[i], out_strides);
                copy_box(binding->pace, &node->outputs[i].shape, binding->outputs[i], out_strides, in, in_strides, (size_t)bytes);
                in += node->outputs[i].shape.dims[axis] * in_strides[axis] * bytes;
        }
        return 0;
}

/* The place in bytes of channel @channel of the tensors as if they lay side by side, and which of them has it. */
static int64_t channel_of(const struct sl_tensor *tensors, int64_t channel, uint32_t *ret_tensor, int64_t ret_strides[SL_RANK_MAX])
{
        int64_t bytes;
        uint32_t i = 0;

        while (channel >= tensors[i].shape.dims[1])
                channel -= tensors[i++].shape.dims[1];
        *ret_tensor = i;
        bytes = plain_strides(&tensors[i], ret_strides);
        return bytes * channel * ret_strides[1];
}

int sl_ref_channel_shuffle(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t group = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1), channels = 0;
        int64_t out_strides[SL_RANK_MAX], in_strides[SL_RANK_MAX];
        struct sl_shape one = node->inputs[0].shape;

        for (uint32_t i = 0; i < node->n_inputs; i++)
                channels += node->inputs[i].shape.dims[1];
        one.dims[1] = 1;
        for (int64_t c = 0; c < channels && sl_pace_on(binding->pace, node->n_inputs + node->n_outputs); c++) {
                uint32_t from, to;
                int64_t out = channel_of(node->outputs, c, &to, out_strides);
                int64_t in = channel_of(node->inputs, c % group * (channels / group) + c / group, &from, in_strides);

                copy_box(binding->pace, &one, (char *)binding->outputs[to] + out, out_strides,
                        (const char *)binding->inputs[from] + in, in_strides, sl_dtype_bytes(node->inputs[0].dtype));
        }
        return 0;
}

int sl_ref_slice(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t out_strides[SL_RANK_MAX], in_strides[SL_RANK_MAX], bytes = plain_strides(&node->inputs[0], in_strides);
        struct sl_slice slices[SL_RANK_MAX];
        const char *in = binding->inputs[0];
        int r = sl_slice_read(node, slices, NULL);

        if (r || !sl_shape_elements(&node->outputs[0].shape))
                return r;
        plain_strides(&node->outputs[0], out_strides);
        for (uint32_t i = 0; i < node->inputs[0].shape.rank; i++) {
                in += slices[i].first * in_strides[i] * bytes;
                /* A single element is never stepped from, and its step may be any number. */
                in_strides[i] = slices[i].count > 1 ? in_strides[i] * slices[i].step : 0;
        }
        copy_box(binding->pace, &node->outputs[0].shape, binding->outputs[0], out_strides, in, in_strides, (size_t)bytes);
        return 0;
}

int sl_ref_transpose(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t out_strides[SL_RANK_MAX], in_strides[SL_RANK_MAX], permuted[SL_RANK_MAX];
        int64_t bytes = plain_strides(&node->inputs[0], in_strides);
        uint32_t rank = node->inputs[0].shape.rank;

        plain_strides(&node->outputs[0], out_strides);
        for (uint32_t i = 0; i < rank; i++)
                permuted[i] = in_strides[sl_attrs_ints(&node->attrs, SL_ATTR_PERM, i, (int64_t)rank - 1 - i)];
        copy_box(binding->pace, &node->outputs[0].shape, binding->outputs[0], out_strides, binding->inputs[0], permuted,
                (size_t)bytes);
        return 0;
}

int sl_ref_reorder(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t out_strides[SL_RANK_MAX], in_strides[SL_RANK_MAX];

        sl_tensor_strides(&node->inputs[0], in_strides);
        sl_tensor_strides(&node->outputs[0], out_strides);
        copy_box(binding->pace, &node->outputs[0].shape, binding->outputs[0], out_strides, binding->inputs[0], in_strides,
                sl_dtype_bytes(node->inputs[0].dtype));
        return 0;
}

int sl_ref_expand(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct sl_ref_walk walk;

        sl_ref_walk_init(&walk, &node->outputs[0].shape, 2, binding->pace);
        sl_ref_walk_broadcast(&walk, 0, &node->outputs[0].shape);
        sl_ref_walk_broadcast(&walk, 1, &node->inputs[0].shape);
        sl_ref_walk_copy(&walk, binding->outputs[0], binding->inputs[0], sl_dtype_bytes(node->inputs[0].dtype));
        return 0;
}

int sl_ref_tile(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        int64_t strides[SL_RANK_MAX], bytes = plain_strides(&node->inputs[0], strides);
        char *out = binding->outputs[0];
        struct sl_ref_walk walk;

        sl_ref_walk_init(&walk, &node->outputs[0].shape, 0, binding->pace);
        for (; walk.left; sl_ref_walk_next(&walk), out += bytes) {
                int64_t at = 0;

                for (uint32_t i = 0; i < in->rank; i++)
                        at += walk.index[i] % in->dims[i] * strides[i];
                memcpy(out, (const char *)binding->inputs[0] + at * bytes, (size_t)bytes);
        }
        return 0;
}

enum { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };

/* Where element @i of the padded dimension comes from; -1 for the constant. @dim is above 0 when a mode looks for elements. */
static int64_t pad_source(int64_t mode, int64_t i, int64_t dim)
{
        if (i >= 0 && i < dim)
                return i;
        switch (mode) {
        case PAD_REFLECT:
                return i < 0 ? -i : 2 * (dim - 1) - i;
        case PAD_EDGE:
                return i < 0 ? 0 : dim - 1;
        case PAD_WRAP:
                return (i % dim + dim) % dim;
        default:
                return -1;
        }
}

int sl_ref_pad(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_tensor *in = &node->inputs[0];
        int64_t begin[SL_RANK_MAX], end[SL_RANK_MAX], strides[SL_RANK_MAX], bytes = plain_strides(in, strides);
        int64_t mode = sl_attrs_int(&node->attrs, SL_ATTR_MODE, PAD_CONSTANT);
        double value = sl_attrs_float(&node->attrs, SL_ATTR_VALUE, 0);
        uint64_t fill = 0;
        struct sl_ref_walk walk;
        int r = sl_pads_read(node, begin, end, NULL);

        sl_ref_store(&fill, 0, in->dtype, value);
        sl_ref_walk_init(&walk, &node->outputs[0].shape, 0, binding->pace);
        for (char *out = binding->outputs[0]; walk.left && !r; sl_ref_walk_next(&walk), out += bytes) {
                const char *from = binding->inputs[0];

                for (uint32_t i = 0; i < in->shape.rank && from; i++) {
                        int64_t source = pad_source(mode, walk.index[i] - begin[i], in->shape.dims[i]);

                        from = source < 0 ? NULL : from + source * strides[i] * bytes;
                }
                memcpy(out, from ? from : (const char *)&fill, (size_t)bytes);
        }
        return r;
}

/* An odd element more is cut off, or filled in, at the end. Where there is no element, other dimensions may be of any size. */
int sl_ref_center_crop_pad(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t out_strides[SL_RANK_MAX], in_strides[SL_RANK_MAX], bytes = plain_strides(&node->inputs[0], in_strides);
        const char *in = binding->inputs[0];
        char *out = binding->outputs[0];
        struct sl_shape common = {.rank = node->inputs[0].shape.rank};

        plain_strides(&node->outputs[0], out_strides);
        memset(out, 0, sl_tensor_bytes(&node->outputs[0]));
        for (uint32_t i = 0; i < common.rank; i++) {
                int64_t from = node->inputs[0].shape.dims[i], to = node->outputs[0].shape.dims[i];

                common.dims[i] = from < to ? from : to;
        }
        if (sl_shape_elements(&common) == 0)
                return 0;
        for (uint32_t i = 0; i < common.rank; i++) {
                int64_t from = node->inputs[0].shape.dims[i], to = node->outputs[0].shape.dims[i];

                in += (from - common.dims[i]) / 2 * in_strides[i] * bytes;
                out += (to - common.dims[i]) / 2 * out_strides[i] * bytes;
        }
        copy_box(binding->pace, &common, out, out_strides, in, in_strides, (size_t)bytes);
        return 0;
}
