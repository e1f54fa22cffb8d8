/* SPDX-License-Identifier: Apache-2.0 */
/* Pools, normalisation by channel, resizing: images in either layout. */
#include "cuda/own/builder.h"
#include "shape/resize.h"
#include "shape/window.h"

#include <errno.h>

#define REACH_MAX (1 << 28) /* of a window, so that places are 32 bits wide */

static uint64_t product(const struct sl_shape *shape, uint32_t from, uint32_t to)
{
        uint64_t elements = 1;

        for (uint32_t i = from; i < to; i++)
                elements *= (uint64_t)shape->dims[i];
        return elements;
}

static bool is_last(const struct sl_tensor *tensor)
{
        return tensor->layout == SL_LAYOUT_CHANNELS_LAST;
}

/* The window along spatial dimension @i of a, which is @from of the node's; false where it reaches too far. */
static bool set_window(
        struct sl_own_window *a, uint32_t i, const struct sl_node_desc *node, const struct sl_window *w, uint32_t from)
{
        int64_t in = node->inputs[0].shape.dims[2 + from], out = node->outputs[0].shape.dims[2 + from];

        if (w->kernel[from] > REACH_MAX || w->dilation[from] > REACH_MAX || w->kernel[from] * w->dilation[from] > REACH_MAX ||
                w->pad_begin[from] > REACH_MAX || w->pad_end[from] > REACH_MAX || w->stride[from] > REACH_MAX || in > REACH_MAX ||
                out > REACH_MAX || w->stride[from] * out > REACH_MAX)
                return false;
        a->in_size[i] = (int32_t)in;
        a->out_size[i] = sl_own_divide_by((uint64_t)out);
        a->kernel[i] = (int32_t)w->kernel[from];
        a->stride[i] = (int32_t)w->stride[from];
        a->dilation[i] = (int32_t)w->dilation[from];
        a->pad_begin[i] = (int32_t)w->pad_begin[from];
        a->pad_end[i] = (int32_t)w->pad_end[from];
        return true;
}

int sl_own_window_read(const struct sl_node_desc *node, struct sl_own_window *a)
{
        struct sl_window window = {.rank = 0};
        uint32_t missing;

        if (sl_window_read(node, &window, NULL))
                return -ENOTSUP;
        missing = SL_OWN_SPATIAL - window.rank;
        for (uint32_t i = 0; i < missing; i++) {
                a->in_size[i] = a->kernel[i] = a->stride[i] = a->dilation[i] = 1;
                a->out_size[i] = sl_own_divide_by(1);
        }
        for (uint32_t i = missing; i < SL_OWN_SPATIAL; i++)
                if (!set_window(a, i, node, &window, i - missing))
                        return -ENOTSUP;
        return 0;
}

/* The kernel for elements of that type, or -ENOTSUP. */
static int pool_kernel(uint32_t op, uint32_t dtype)
{
        if (sl_own_is_float(dtype))
                return (int)sl_own_kernel_of(SL_OWN_KERNEL_pool_f32, dtype);
        if (op == SL_OP_MAX_POOL && dtype == SL_DTYPE_U8)
                return SL_OWN_KERNEL_pool_u8;
        return op == SL_OP_MAX_POOL && dtype == SL_DTYPE_I8 ? SL_OWN_KERNEL_pool_i8 : -ENOTSUP;
}

/* Channels that a thread takes at once: 16 bytes of them, but no more than 8. */
static uint32_t vector_of(uint64_t channels, uint32_t dtype)
{
        uint64_t wide = 16 / sl_dtype_bytes(dtype);

        wide = wide < 8 ? wide : 8;
        return channels % wide ? 1 : (uint32_t)wide;
}

int sl_own_plan_pool(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_tensor *in = &node->inputs[0], *out = &node->outputs[0];
        struct sl_own_pool a = {.kind = node->op == SL_OP_MAX_POOL       ? SL_OWN_POOL_MAX
                                        : node->op == SL_OP_AVERAGE_POOL ? SL_OWN_POOL_AVERAGE
                                                                         : SL_OWN_POOL_POWERS,
                .channels_last = is_last(in),
                .results = (uint32_t)sl_shape_elements(&out->shape),
                .padding_too = sl_attrs_int(&node->attrs, SL_ATTR_COUNT_INCLUDE_PAD, 0) != 0,
                .by_columns = sl_attrs_int(&node->attrs, SL_ATTR_STORAGE_ORDER, 0) != 0,
                .p = (float)sl_attrs_int(&node->attrs, SL_ATTR_P, 2),
                .channels = sl_own_divide_by((uint64_t)in->shape.dims[1])};
        int kernel = pool_kernel(node->op, in->dtype);
        struct sl_own_launch *launch;

        if (kernel < 0 || in->layout != out->layout || (node->n_outputs > 1 && a.channels_last) ||
                sl_own_window_read(node, &a.window))
                return -ENOTSUP;
        a.vector = a.channels_last ? vector_of((uint64_t)in->shape.dims[1], in->dtype) : 1;
        launch = sl_own_add(builder, (uint32_t)kernel, &a, sizeof(a), a.results / a.vector);
        sl_own_slot(launch, offsetof(struct sl_own_pool, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_pool, in), SL_OWN_INPUT, 0, 0);
        if (node->n_outputs > 1)
                sl_own_slot(launch, offsetof(struct sl_own_pool, places), SL_OWN_OUTPUT, 1, 0);
        return 0;
}

static void set_scale_vector(struct sl_own_scale *a, const struct sl_tensor *in, uint64_t inner)
{
        uint64_t wide = 16 / sl_dtype_bytes(in->dtype), channels = (uint64_t)in->shape.dims[1];
        bool fits =
                a->channels_last ? channels % wide == 0 && a->out_channels % wide == 0 && a->first % wide == 0 : inner % wide == 0;

        a->vector = fits ? (uint32_t)wide : 1;
}

/* Channels [@first, ...) of the output are those of input @i. */
static void add_scale(struct sl_own_builder *builder, const struct sl_node_desc *node, uint32_t i, uint32_t first)
{
        const struct sl_tensor *in = &node->inputs[i];
        uint64_t inner = product(&in->shape, 2, in->shape.rank);
        uint32_t statistics = node->n_inputs - 4;
        struct sl_own_scale a = {.elements = (uint32_t)sl_shape_elements(&in->shape),
                .channels_last = is_last(in),
                .first = first,
                .out_channels = (uint32_t)node->outputs[0].shape.dims[1],
                .inner = sl_own_divide_by(inner),
                .channels = sl_own_divide_by((uint64_t)in->shape.dims[1]),
                .epsilon = (float)sl_attrs_float(&node->attrs, SL_ATTR_EPSILON, 1e-5)};
        struct sl_own_launch *launch;

        if (!a.elements)
                return;
        set_scale_vector(&a, in, inner);
        a.active = sl_own_activation(&node->epilogue, &a.activation);
        for (uint32_t k = 0; k < 4; k++)
                a.dtypes[k] = node->inputs[statistics + k].dtype;
        launch = sl_own_add(builder, sl_own_kernel_of(SL_OWN_KERNEL_scale_f32, in->dtype), &a, sizeof(a), a.elements / a.vector);
        sl_own_slot(launch, offsetof(struct sl_own_scale, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_scale, in), SL_OWN_INPUT, i, 0);
        for (uint32_t k = 0; k < 4; k++)
                sl_own_slot(
                        launch, offsetof(struct sl_own_scale, statistics) + k * sizeof(void *), SL_OWN_INPUT, statistics + k, 0);
}

/* BatchNormalization, and the same of a Concat: one launch for each input. */
int sl_own_plan_scale(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        uint32_t dtype = node->inputs[0].dtype, n_images = node->n_inputs - 4, first = 0;

        if (node->epilogue.has_residual || node->epilogue.activation > SL_ACT_ELU || node->inputs[0].shape.rank < 2)
                return -ENOTSUP;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (!sl_own_is_float(node->inputs[i].dtype) ||
                        (i < n_images && (node->inputs[i].dtype != dtype || node->inputs[i].layout != node->outputs[0].layout)))
                        return -ENOTSUP;
        for (uint32_t i = 0; i < n_images; i++) {
                add_scale(builder, node, i, first);
                first += (uint32_t)node->inputs[i].shape.dims[1];
        }
        return 0;
}

int sl_own_plan_lrn(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_tensor *in = &node->inputs[0];
        int64_t size = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 1), before = (size - 1) / 2, after = size / 2;
        struct sl_own_lrn a = {.elements = (uint32_t)sl_shape_elements(&in->shape),
                .channels_last = is_last(in),
                .inner = sl_own_divide_by(product(&in->shape, 2, in->shape.rank)),
                .channels = sl_own_divide_by((uint64_t)in->shape.dims[1]),
                .before = (int32_t)(before < INT32_MAX ? before : INT32_MAX),
                .after = (int32_t)(after < INT32_MAX ? after : INT32_MAX),
                .alpha = (float)(sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1e-4) / (double)size),
                .beta = (float)sl_attrs_float(&node->attrs, SL_ATTR_BETA, 0.75),
                .bias = (float)sl_attrs_float(&node->attrs, SL_ATTR_VALUE, 1)};
        struct sl_own_launch *launch;

        if (!sl_own_is_float(in->dtype) || in->layout != node->outputs[0].layout)
                return -ENOTSUP;
        launch = sl_own_add(builder, sl_own_kernel_of(SL_OWN_KERNEL_lrn_f32, in->dtype), &a, sizeof(a), a.elements);
        sl_own_slot(launch, offsetof(struct sl_own_lrn, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_lrn, in), SL_OWN_INPUT, 0, 0);
        return 0;
}

/* As far as the filter of an axis reaches: farther where it is widened against aliasing. */
static float support_of(const struct sl_resize *r, uint32_t axis)
{
        float shrink = r->antialias && r->scale[axis] < 1 ? r->scale[axis] : 1;

        return (r->mode == SL_RESIZE_CUBIC ? 2.0f : 1.0f) / shrink;
}

static void set_axes(struct sl_own_resize *a, const struct sl_node_desc *node, const struct sl_resize *r)
{
        int64_t strides[SL_RANK_MAX];

        sl_tensor_strides(&node->inputs[0], strides);
        a->n_axes = r->rank;
        for (uint32_t d = 0; d < r->rank; d++) {
                uint32_t at = sl_own_dimension_at(&node->outputs[0], r->rank - 1 - d);

                a->axes[d] = (struct sl_own_resize_axis){.out = sl_own_divide_by((uint64_t)r->out[at]),
                        .in = (uint32_t)r->in[at],
                        .stride = (uint32_t)strides[at],
                        .keeps = sl_resize_keeps(r, at),
                        .scale = r->scale[at],
                        .extent = r->extent[at],
                        .crop_start = r->crop_start[at],
                        .crop_end = r->crop_end[at],
                        .support = support_of(r, at)};
        }
}

int sl_own_plan_resize(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        uint32_t dtype = node->inputs[0].dtype;
        struct sl_resize r = {.rank = 0};
        struct sl_own_resize a = {.elements = (uint32_t)sl_shape_elements(&node->outputs[0].shape),
                .bytes = (uint32_t)sl_dtype_bytes(dtype),
                .dtype = dtype};
        struct sl_own_launch *launch;

        if (node->inputs[0].layout != node->outputs[0].layout || sl_resize_read(node, &r, NULL))
                return -ENOTSUP;
        a.linear = r.mode == SL_RESIZE_LINEAR;
        a.cubic = r.mode == SL_RESIZE_CUBIC;
        a.coefficient = r.coefficient;
        if (r.mode != SL_RESIZE_NEAREST && !sl_own_is_float(dtype))
                return -ENOTSUP;
        a.transform = r.transform;
        a.nearest = r.nearest;
        a.exclude_outside = r.exclude_outside;
        a.extrapolation = sl_own_bits((double)r.extrapolation, dtype);
        set_axes(&a, node, &r);
        launch = sl_own_add(builder, a.cubic || (a.linear && r.antialias) ? SL_OWN_KERNEL_resize_filter : SL_OWN_KERNEL_resize, &a,
                sizeof(a), a.elements);
        sl_own_slot(launch, offsetof(struct sl_own_resize, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_resize, in), SL_OWN_INPUT, 0, 0);
        return 0;
}

int sl_own_plan_grid_sample(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_shape *in = &node->inputs[0].shape, *out = &node->outputs[0].shape;
        struct sl_own_grid_sample a = {.elements = (uint32_t)sl_shape_elements(out),
                .rank = in->rank - 2,
                .mode = (uint32_t)sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0),
                .padding = (uint32_t)sl_attrs_int(&node->attrs, SL_ATTR_PADDING_MODE, 0),
                .corners = sl_attrs_int(&node->attrs, SL_ATTR_ALIGN_CORNERS, 0) != 0,
                .dtype = node->inputs[0].dtype,
                .grid_dtype = node->inputs[1].dtype,
                .positions = sl_own_divide_by(product(out, 2, out->rank)),
                .channels = sl_own_divide_by((uint64_t)out->dims[1]),
                .size = {1, 1, 1}};
        struct sl_own_launch *launch;

        if (!sl_own_is_float(a.dtype) || !sl_own_is_float(a.grid_dtype) || a.rank > SL_OWN_SPATIAL || is_last(&node->inputs[0]) ||
                is_last(&node->outputs[0]))
                return -ENOTSUP;
        for (uint32_t d = 0; d < a.rank; d++)
                a.size[SL_OWN_SPATIAL - a.rank + d] = (int32_t)in->dims[2 + d];
        launch = sl_own_add(builder, SL_OWN_KERNEL_grid_sample, &a, sizeof(a), a.elements);
        sl_own_slot(launch, offsetof(struct sl_own_grid_sample, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_grid_sample, in), SL_OWN_INPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_grid_sample, grid), SL_OWN_INPUT, 1, 0);
        return 0;
}
