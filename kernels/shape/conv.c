/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"
#include "window.h"

#include <inttypes.h>

static int check_channels(const struct sl_node_desc *node, struct sl_error *error)
{
        const int64_t *x = node->inputs[0].shape.dims, *w = node->inputs[1].shape.dims;
        int64_t group = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);

        if (group < 1 || group > INT32_MAX)
                return sl_error_set(error, EINVAL, "attribute group is %" PRId64 ", outside [1,%d]", group, INT32_MAX);
        if (sl_dim_known(w[0]) && w[0] % group)
                return sl_error_set(
                        error, EINVAL, "input 1 has %" PRId64 " output channels, not a multiple of group %" PRId64, w[0], group);
        if (!sl_dim_known(w[1]) || !sl_dim_known(x[1]))
                return 0;
        if (x[1] % group || x[1] / group != w[1])
                return sl_error_set(error, EINVAL,
                        "input 0 has %" PRId64 " channels, input 1 wants %" PRId64 " in each of %" PRId64 " groups", x[1], w[1],
                        group);
        return 0;
}

int sl_shape_conv(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *x = &node->inputs[0].shape, *w = &node->inputs[1].shape;
        struct sl_tensor *out = &node->outputs[0];
        struct sl_window window;
        int r = sl_same_dtype(node, 1, error);

        if (r)
                return r;
        if (x->rank != w->rank)
                return sl_error_set(error, EINVAL, "input 1 has rank %u, input 0 has rank %u", w->rank, x->rank);
        r = sl_window_read(node, &window, error);
        r = r ? r : check_channels(node, error);
        if (!r && sl_input_present(node, 2))
                r = (r = sl_same_dtype(node, 2, error)) ? r : sl_vector_of(node, 2, w->dims[0], error);
        if (r)
                return r;
        out->dtype = node->inputs[0].dtype;
        out->shape = (struct sl_shape){.rank = x->rank, .dims = {x->dims[0], w->dims[0]}};
        for (uint32_t i = 0; i < window.rank && !r; i++)
                r = sl_window_positions(&window, i, x->dims[i + 2], &out->shape.dims[i + 2], error);
        return r;
}

/* Sizes of one spatial dimension grow as those of a convolution shrink. */
static int grown_size(
        const struct sl_node_desc *node, const struct sl_window *window, uint32_t i, int64_t *ret_size, struct sl_error *error)
{
        int64_t size = node->inputs[0].shape.dims[i + 2], extra = sl_attrs_ints(&node->attrs, SL_ATTR_OUTPUT_PADDING, i, 0), grown;

        *ret_size = SL_DIM_UNKNOWN;
        if (!sl_dim_known(size) || !sl_dim_known(window->kernel[i]))
                return 0;
        if (extra < 0 || extra > INT32_MAX)
                return sl_error_set(
                        error, EINVAL, "attribute output_padding has the element %" PRId64 ", outside [0,%d]", extra, INT32_MAX);
        if (__builtin_mul_overflow(size - 1, window->stride[i], &grown) ||
                __builtin_add_overflow(grown, (window->kernel[i] - 1) * window->dilation[i] + 1 + extra, &grown))
                return sl_error_set(error, EOVERFLOW, "spatial dimension %u of the output exceeds 64 bits", i);
        grown -= window->pad_begin[i] + window->pad_end[i];
        if (grown < 0)
                return sl_error_set(error, EINVAL, "the padding of spatial dimension %u leaves %" PRId64 " elements", i, grown);
        *ret_size = grown;
        return 0;
}

int sl_shape_conv_transpose(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *x = &node->inputs[0].shape, *w = &node->inputs[1].shape;
        int64_t group = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1), merged, filters;
        const struct sl_attr *extra = sl_attrs_find(&node->attrs, SL_ATTR_OUTPUT_PADDING);
        struct sl_window window;
        int r = sl_same_dtype(node, 1, error);

        r = r ? r : sl_window_read(node, &window, error);
        if (r)
                return r;
        if (extra && (extra->type != SL_ATTR_TYPE_INTS || extra->count != window.rank))
                return sl_error_set(error, EINVAL, "attribute output_padding has %u elements, wants %u", extra->count, window.rank);
        if (group < 1 || group > INT32_MAX || (sl_dim_known(x->dims[1]) && x->dims[1] % group))
                return sl_error_set(
                        error, EINVAL, "attribute group is %" PRId64 ", input 0 has %" PRId64 " channels", group, x->dims[1]);
        if (sl_dim_merge(x->dims[1], w->dims[0], &merged))
                return sl_error_set(
                        error, EINVAL, "input 0 has %" PRId64 " channels, input 1 wants %" PRId64, x->dims[1], w->dims[0]);
        if (!sl_dim_known(w->dims[1]))
                filters = SL_DIM_UNKNOWN;
        else if (__builtin_mul_overflow(w->dims[1], group, &filters))
                return sl_error_set(error, EOVERFLOW, "the filters of all groups exceed 64 bits");
        if (sl_input_present(node, 2))
                r = (r = sl_same_dtype(node, 2, error)) ? r : sl_vector_of(node, 2, filters, error);
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = (struct sl_shape){.rank = x->rank, .dims = {x->dims[0], filters}};
        for (uint32_t i = 0; i < window.rank && !r; i++)
                r = grown_size(node, &window, i, &node->outputs[0].shape.dims[i + 2], error);
        return r;
}

/* Offsets (or a mask): [samples, @each * offset groups * taps, the output's image]. */
static int check_offsets(
        const struct sl_node_desc *node, uint32_t index, const struct sl_window *window, int64_t each, struct sl_error *error)
{
        const struct sl_shape *shape = &node->inputs[index].shape, *out = &node->outputs[0].shape;
        struct sl_shape want = *out;
        char text[SL_SHAPE_TEXT_BYTES], want_text[SL_SHAPE_TEXT_BYTES];
        bool same = shape->rank == want.rank;
        int64_t merged;

        want.dims[1] = sl_attrs_int(&node->attrs, SL_ATTR_OFFSET_GROUP, 1) * each;
        for (uint32_t i = 0; i < window->rank; i++)
                if (__builtin_mul_overflow(want.dims[1], window->kernel[i], &want.dims[1]))
                        return sl_error_set(error, EOVERFLOW, "the taps of all groups exceed 64 bits");
        for (uint32_t i = 0; i < want.rank && same; i++)
                same = !sl_dim_merge(shape->dims[i], want.dims[i], &merged);
        if (same)
                return sl_same_dtype(node, index, error);
        return sl_error_set(
                error, EINVAL, "input %u is %s, wants %s", index, sl_shape_print(shape, text), sl_shape_print(&want, want_text));
}

int sl_shape_deform_conv(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_node_desc *plain = &(struct sl_node_desc){.op = SL_OP_CONV, .n_inputs = 2, .n_outputs = 1, .attrs = node->attrs};
        int64_t groups = sl_attrs_int(&node->attrs, SL_ATTR_OFFSET_GROUP, 1), channels = node->inputs[0].shape.dims[1];
        struct sl_window window;
        int r;

        plain->inputs[0] = node->inputs[0];
        plain->inputs[1] = node->inputs[1];
        r = sl_shape_conv(plain, error);
        r = r ? r : sl_window_read(node, &window, error);
        if (r)
                return r;
        for (uint32_t i = 0; i < window.rank; i++)
                if ((r = sl_size_wanted(node, 1, i + 2, error)))
                        return r;
        if (node->inputs[0].shape.rank != 4)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants 4", node->inputs[0].shape.rank);
        if (groups < 1 || groups > INT32_MAX || (sl_dim_known(channels) && channels % groups))
                return sl_error_set(
                        error, EINVAL, "attribute offset_group is %" PRId64 ", input 0 has %" PRId64 " channels", groups, channels);
        node->outputs[0] = plain->outputs[0];
        r = check_offsets(node, 2, &window, 2, error);
        if (!r && sl_input_present(node, 3))
                r = (r = sl_same_dtype(node, 3, error)) ? r : sl_vector_of(node, 3, node->inputs[1].shape.dims[0], error);
        if (!r && sl_input_present(node, 4))
                r = check_offsets(node, 4, &window, 1, error);
        return r;
}
