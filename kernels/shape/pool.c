/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"
#include "window.h"

#include <inttypes.h>

/* A window that lies in the padding alone would have nothing to look at. */
static int check_pads(const struct sl_window *window, struct sl_error *error)
{
        for (uint32_t i = 0; i < window->rank; i++) {
                int64_t reach = (window->kernel[i] - 1) * window->dilation[i] + 1;
                int64_t pad = window->pad_begin[i] > window->pad_end[i] ? window->pad_begin[i] : window->pad_end[i];

                if (pad >= reach)
                        return sl_error_set(error, EINVAL,
                                "padding %" PRId64 " of spatial dimension %u is not below the window's %" PRId64, pad, i, reach);
        }
        return 0;
}

int sl_shape_pool(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_tensor *in = &node->inputs[0];
        struct sl_tensor *out = &node->outputs[0];
        struct sl_window window;
        int r = sl_window_read(node, &window, error);

        r = r ? r : check_pads(&window, error);
        if (r)
                return r;
        out->dtype = in->dtype;
        out->shape = (struct sl_shape){.rank = in->shape.rank, .dims = {in->shape.dims[0], in->shape.dims[1]}};
        for (uint32_t i = 0; i < window.rank && !r; i++)
                r = sl_window_positions(&window, i, in->shape.dims[i + 2], &out->shape.dims[i + 2], error);
        if (node->n_outputs > 1)
                node->outputs[1] = (struct sl_tensor){.dtype = SL_DTYPE_I64, .shape = out->shape};
        return r;
}

/* One spatial dimension before it was pooled. */
static int unpooled_size(const struct sl_window *window, uint32_t i, int64_t size, int64_t *ret_size, struct sl_error *error)
{
        int64_t grown;

        *ret_size = SL_DIM_UNKNOWN;
        if (!sl_dim_known(size))
                return 0;
        if (__builtin_mul_overflow(size - 1, window->stride[i], &grown) || __builtin_add_overflow(grown, window->kernel[i], &grown))
                return sl_error_set(error, EOVERFLOW, "spatial dimension %u of the output exceeds 64 bits", i);
        grown -= window->pad_begin[i] + window->pad_end[i];
        if (grown < 0)
                return sl_error_set(error, EINVAL, "the padding of spatial dimension %u leaves %" PRId64 " elements", i, grown);
        *ret_size = grown;
        return 0;
}

int sl_unpooled_shape(const struct sl_node_desc *node, struct sl_shape *ret_shape, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        struct sl_shape shape = *in;
        struct sl_window window;
        int r = sl_window_read(node, &window, error);

        for (uint32_t i = 0; i < window.rank && !r; i++)
                r = unpooled_size(&window, i, in->dims[i + 2], &shape.dims[i + 2], error);
        if (!r)
                *ret_shape = shape;
        return r;
}

int sl_shape_max_unpool(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_attr *told = sl_attrs_find(&node->attrs, SL_ATTR_OUTPUT_SHAPE);
        struct sl_shape *out = &node->outputs[0].shape;
        char text[SL_SHAPE_TEXT_BYTES], other[SL_SHAPE_TEXT_BYTES];
        int64_t merged;
        bool same;
        int r = sl_unpooled_shape(node, out, error);

        if (r)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        same = node->inputs[1].shape.rank == out->rank && node->inputs[1].dtype == SL_DTYPE_I64;
        for (uint32_t i = 0; i < out->rank && same; i++)
                same = !sl_dim_merge(node->inputs[0].shape.dims[i], node->inputs[1].shape.dims[i], &merged);
        if (!same)
                return sl_error_set(error, EINVAL, "input 1 is %s of %s, wants int64 of %s", sl_dtype_name(node->inputs[1].dtype),
                        sl_shape_print(&node->inputs[1].shape, text), sl_shape_print(&node->inputs[0].shape, other));
        if (told && (told->type != SL_ATTR_TYPE_INTS || told->count != out->rank))
                return sl_error_set(error, EINVAL, "attribute output_shape has %u elements, wants %u", told->count, out->rank);
        for (uint32_t i = 0; i < out->rank; i++) {
                if (told && told->ints[i] < 0)
                        return sl_error_set(error, EINVAL, "attribute output_shape has the element %" PRId64, told->ints[i]);
                if (told)
                        out->dims[i] = told->ints[i];
                else if (sl_input_present(node, 2))
                        out->dims[i] = SL_DIM_UNKNOWN;
        }
        return 0;
}

int sl_shape_global_pool(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;

        if (in->rank < 3)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants 3 at least", in->rank);
        for (uint32_t i = 2; i < in->rank; i++)
                if (!in->dims[i])
                        return sl_error_set(error, EINVAL, "input 0 has no elements along dimension %u", i);
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = (struct sl_shape){.rank = in->rank, .dims = {in->dims[0], in->dims[1], 1, 1, 1, 1, 1, 1}};
        return 0;
}
