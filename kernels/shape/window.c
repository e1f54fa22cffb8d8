/* SPDX-License-Identifier: Apache-2.0 */
#include "window.h"

#include "rules.h"

#include <inttypes.h>

/* Sizes, strides and pads above this are nonsense and could overflow the arithmetic below. */
#define VALUE_MAX INT32_MAX

static int read_list(const struct sl_node_desc *node, uint32_t id, uint32_t length, int64_t least, int64_t fallback,
        int64_t *ret_values, struct sl_error *error)
{
        const struct sl_attr *attr = sl_attrs_find(&node->attrs, id);

        if (attr && (attr->type != SL_ATTR_TYPE_INTS || attr->count != length))
                return sl_error_set(error, EINVAL, "attribute %s has %u elements, wants %u", sl_attr_name(id), attr->count, length);
        for (uint32_t i = 0; i < length; i++) {
                ret_values[i] = attr ? attr->ints[i] : fallback;
                if (ret_values[i] < least || ret_values[i] > VALUE_MAX)
                        return sl_error_set(error, EINVAL, "attribute %s has the element %" PRId64 ", outside [%" PRId64 ",%d]",
                                sl_attr_name(id), ret_values[i], least, VALUE_MAX);
        }
        return 0;
}

uint32_t sl_window_weights(uint32_t op)
{
        switch (op) {
        case SL_OP_CONV:
        case SL_OP_LANED_CONV:
        case SL_OP_QUANTIZED_CONV:
        case SL_OP_CONV_INTEGER:
        case SL_OP_CONV_TRANSPOSE:
        case SL_OP_DEFORM_CONV:
                return 1;
        case SL_OP_QLINEAR_CONV:
                return 3;
        default:
                return 0;
        }
}

static int read_conv_kernel(const struct sl_node_desc *node, struct sl_window *window, struct sl_error *error)
{
        const struct sl_shape *weights = &node->inputs[sl_window_weights(node->op)].shape;
        bool given = sl_attrs_find(&node->attrs, SL_ATTR_KERNEL_SHAPE);
        int64_t kernel[SL_SPATIAL_MAX];
        int r = given ? read_list(node, SL_ATTR_KERNEL_SHAPE, window->rank, 1, 1, kernel, error) : 0;

        if (r)
                return r;
        if (weights->rank != node->inputs[0].shape.rank)
                return sl_error_set(
                        error, EINVAL, "the weights have rank %u, input 0 has rank %u", weights->rank, node->inputs[0].shape.rank);
        for (uint32_t i = 0; i < window->rank; i++) {
                int64_t dim = weights->dims[i + 2];

                if (sl_dim_merge(dim, given ? kernel[i] : SL_DIM_UNKNOWN, &window->kernel[i]))
                        return sl_error_set(error, EINVAL,
                                "input 1 has kernel size %" PRId64 ", attribute kernel_shape says %" PRId64, dim, kernel[i]);
                if (window->kernel[i] == 0 || window->kernel[i] > VALUE_MAX)
                        return sl_error_set(error, EINVAL, "input 1 has kernel size %" PRId64 ", outside [1,%d]", dim, VALUE_MAX);
        }
        return 0;
}

static int read_pool_kernel(const struct sl_node_desc *node, struct sl_window *window, struct sl_error *error)
{
        if (!sl_attrs_find(&node->attrs, SL_ATTR_KERNEL_SHAPE))
                return sl_error_set(error, EINVAL, "attribute kernel_shape is missing");
        return read_list(node, SL_ATTR_KERNEL_SHAPE, window->rank, 1, 1, window->kernel, error);
}

int64_t sl_window_same_padding(int64_t size, int64_t kernel, int64_t stride, int64_t dilation)
{
        int64_t reach = (kernel - 1) * dilation + 1;
        int64_t rest = stride == 1 || size % stride == 0 ? stride : size % stride;

        return reach > rest ? reach - rest : 0;
}

/* Along what is not known yet there is no padding, and no number of windows either. */
static void pad_same(const struct sl_shape *shape, bool lower, struct sl_window *window)
{
        for (uint32_t i = 0; i < window->rank; i++) {
                int64_t size = shape->dims[i + 2], total = 0;

                if (sl_dim_known(size) && sl_dim_known(window->kernel[i]))
                        total = sl_window_same_padding(size, window->kernel[i], window->stride[i], window->dilation[i]);
                window->pad_begin[i] = lower ? total - total / 2 : total / 2;
                window->pad_end[i] = total - window->pad_begin[i];
        }
}

int sl_window_read(const struct sl_node_desc *node, struct sl_window *ret_window, struct sl_error *error)
{
        uint32_t rank = node->inputs[0].shape.rank;
        struct sl_window window = {.rank = rank - 2, .ceil = sl_attrs_int(&node->attrs, SL_ATTR_CEIL_MODE, 0)};
        int64_t pads[2 * SL_SPATIAL_MAX], same;
        int r;

        if (rank < 3 || rank > 2 + SL_SPATIAL_MAX)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, outside [3,%d]", rank, 2 + SL_SPATIAL_MAX);
        r = sl_window_weights(node->op) ? read_conv_kernel(node, &window, error) : read_pool_kernel(node, &window, error);
        r = r ? r : read_list(node, SL_ATTR_STRIDES, window.rank, 1, 1, window.stride, error);
        r = r ? r : read_list(node, SL_ATTR_DILATIONS, window.rank, 1, 1, window.dilation, error);
        r = r ? r : read_list(node, SL_ATTR_PADS, 2 * window.rank, 0, 0, pads, error);
        if (r)
                return r;
        for (uint32_t i = 0; i < window.rank; i++) {
                window.pad_begin[i] = pads[i];
                window.pad_end[i] = pads[window.rank + i];
        }
        same = sl_attrs_int(&node->attrs, SL_ATTR_SAME, SL_WINDOW_NOT_SAME);
        if (same != SL_WINDOW_NOT_SAME)
                pad_same(&node->inputs[0].shape, same == SL_WINDOW_SAME_LOWER, &window);
        *ret_window = window;
        return 0;
}

int sl_window_positions(const struct sl_window *window, uint32_t i, int64_t size, int64_t *ret_positions, struct sl_error *error)
{
        int64_t stride = window->stride[i], padded;
        int64_t reach = (window->kernel[i] - 1) * window->dilation[i] + 1;

        if (!sl_dim_known(size) || !sl_dim_known(window->kernel[i])) {
                *ret_positions = SL_DIM_UNKNOWN;
                return 0;
        }
        if (size > INT64_MAX / 2)
                return sl_error_set(error, EOVERFLOW, "input 0 has spatial size %" PRId64, size);
        padded = size + window->pad_begin[i] + window->pad_end[i];
        if (padded < reach)
                return sl_error_set(error, EINVAL,
                        "input 0 has %" PRId64 " elements with padding along spatial dimension %u, the window needs %" PRId64,
                        padded, i, reach);
        int64_t positions = (padded - reach + (window->ceil ? stride - 1 : 0)) / stride + 1;
        /* The last window must start inside the input or the padding before it. */
        if (window->ceil && (positions - 1) * stride >= size + window->pad_begin[i])
                positions--;
        *ret_positions = positions;
        return 0;
}
