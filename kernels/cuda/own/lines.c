/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and normalisations: which lines a tensor has, and how many threads share one. */
#include "cuda/own/builder.h"

#include <errno.h>

static uint64_t product(const struct sl_shape *shape, uint32_t from, uint32_t to)
{
        uint64_t elements = 1;

        for (uint32_t i = from; i < to; i++)
                elements *= (uint64_t)shape->dims[i];
        return elements;
}

/* Lines of @size elements, @inner apart, that fill the tensor. */
static struct sl_own_lines lines_of(const struct sl_node_desc *node, uint32_t kind, uint64_t size, uint64_t inner)
{
        uint64_t elements = sl_shape_elements(&node->inputs[0].shape), wide = 16 / sl_dtype_bytes(node->inputs[0].dtype);

        return (struct sl_own_lines){.kind = kind,
                .lines = (uint32_t)(size ? elements / size : 0),
                .size = (uint32_t)size,
                .group = sl_own_group(size, inner == 1),
                .vector = inner == 1 && size % wide == 0 ? (uint32_t)wide : 1,
                .inner = sl_own_divide_by(inner),
                .lines_modulo = sl_own_divide_by(1),
                .k_divisor = sl_own_divide_by(1),
                .epsilon = (float)sl_attrs_float(&node->attrs, SL_ATTR_EPSILON, 1e-5)};
}

static struct sl_own_launch *add_lines(
        struct sl_own_builder *builder, const struct sl_node_desc *node, const struct sl_own_lines *a)
{
        uint32_t kernel = sl_own_kernel_of(SL_OWN_KERNEL_lines_f32, node->inputs[0].dtype);
        struct sl_own_launch *launch = sl_own_add(builder, kernel, a, sizeof(*a), (uint64_t)a->lines * a->group);

        sl_own_slot(launch, offsetof(struct sl_own_lines, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_lines, in), SL_OWN_INPUT, 0, 0);
        return launch;
}

static bool is_plain(const struct sl_node_desc *node)
{
        return node->inputs[0].layout == SL_LAYOUT_PLAIN && node->outputs[0].layout == SL_LAYOUT_PLAIN;
}

/* One axis of input 0 is the lines. */
static int add_axis(struct sl_own_builder *builder, const struct sl_node_desc *node, uint32_t kind)
{
        const struct sl_shape *shape = &node->inputs[0].shape;
        uint32_t axis = sl_own_axis(node, -1);
        struct sl_own_lines a;

        if (!sl_own_is_float(node->inputs[0].dtype) || !is_plain(node))
                return -ENOTSUP;
        a = lines_of(node, kind, (uint64_t)shape->dims[axis], product(shape, axis + 1, shape->rank));
        a.absolute = sl_attrs_int(&node->attrs, SL_ATTR_P, 2) == 1;
        add_lines(builder, node, &a);
        return 0;
}

int sl_own_plan_softmax(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        return add_axis(builder, node, node->op == SL_OP_SOFTMAX ? SL_OWN_SOFTMAX : SL_OWN_LOG_SOFTMAX);
}

int sl_own_plan_lp_norm(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        return add_axis(builder, node, SL_OWN_LP_NORM);
}

/* Scale and shift, with the types that they have. */
static void add_affine(struct sl_own_launch *launch, const struct sl_node_desc *node)
{
        sl_own_slot(launch, offsetof(struct sl_own_lines, scale), SL_OWN_INPUT, 1, 0);
        if (sl_own_is_there(node, 2))
                sl_own_slot(launch, offsetof(struct sl_own_lines, shift), SL_OWN_INPUT, 2, 0);
}

static bool affine_is_float(const struct sl_node_desc *node)
{
        return sl_own_is_float(node->inputs[0].dtype) && sl_own_is_float(node->inputs[1].dtype) &&
               node->outputs[0].dtype == node->inputs[0].dtype &&
               (!sl_own_is_there(node, 2) || sl_own_is_float(node->inputs[2].dtype));
}

/* Is @tensor one number for each element of a line, or one for all? -1: it is something else. */
static int step_of(const struct sl_tensor *tensor, const struct sl_shape *shape, uint32_t axis)
{
        uint64_t elements = sl_shape_elements(&tensor->shape);
        uint32_t missing = shape->rank - tensor->shape.rank;

        if (elements == 1)
                return 0;
        for (uint32_t d = 0; d < tensor->shape.rank; d++)
                if (tensor->shape.dims[d] != (d + missing < axis ? 1 : shape->dims[d + missing]))
                        return -1;
        return elements == product(shape, axis, shape->rank) ? 1 : -1;
}

/* LayerNormalization and RMSNormalization: lines are the dimensions from the axis on. */
static int add_layers(struct sl_own_builder *builder, const struct sl_node_desc *node, uint32_t kind)
{
        const struct sl_shape *shape = &node->inputs[0].shape;
        uint32_t axis = sl_own_axis(node, -1);
        struct sl_own_lines a = lines_of(node, kind, product(shape, axis, shape->rank), 1);
        struct sl_own_launch *launch;
        int step = step_of(&node->inputs[1], shape, axis);

        if (!affine_is_float(node) || !is_plain(node) || step < 0)
                return -ENOTSUP;
        if (sl_own_is_there(node, 2) && step_of(&node->inputs[2], shape, axis) != step)
                return -ENOTSUP;
        a.k_step = (uint32_t)step;
        a.scale_dtype = node->inputs[1].dtype;
        a.shift_dtype = sl_own_is_there(node, 2) ? node->inputs[2].dtype : 0;
        a.mean_dtype = node->n_outputs > 1 ? node->outputs[1].dtype : node->n_outputs > 2 ? node->outputs[2].dtype : SL_DTYPE_F32;
        if (!sl_own_is_float(a.mean_dtype))
                return -ENOTSUP;
        launch = add_lines(builder, node, &a);
        add_affine(launch, node);
        if (node->n_outputs > 1)
                sl_own_slot(launch, offsetof(struct sl_own_lines, mean), SL_OWN_OUTPUT, 1, 0);
        if (node->n_outputs > 2)
                sl_own_slot(launch, offsetof(struct sl_own_lines, deviation), SL_OWN_OUTPUT, 2, 0);
        return 0;
}

int sl_own_plan_layer_norm(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        return add_layers(builder, node, SL_OWN_LAYER_NORM);
}

int sl_own_plan_rms_norm(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        return add_layers(builder, node, SL_OWN_RMS_NORM);
}

/* A line is a plane of a channel; its places are that far apart in the layout. */
int sl_own_plan_instance_norm(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_shape *shape = &node->inputs[0].shape;
        bool last = node->inputs[0].layout == SL_LAYOUT_CHANNELS_LAST;
        struct sl_own_lines a;

        if (!affine_is_float(node) || node->outputs[0].layout != node->inputs[0].layout)
                return -ENOTSUP;
        a = lines_of(node, SL_OWN_LAYER_NORM, product(shape, 2, shape->rank), last ? (uint64_t)shape->dims[1] : 1);
        a.lines_modulo = sl_own_divide_by((uint64_t)shape->dims[1]);
        a.line_step = 1;
        a.scale_dtype = node->inputs[1].dtype;
        a.shift_dtype = node->inputs[2].dtype;
        add_affine(add_lines(builder, node, &a), node);
        return 0;
}

/* Scale and shift are per channel, or (opset 18) per group. */
int sl_own_plan_group_norm(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_shape *shape = &node->inputs[0].shape;
        uint64_t groups = (uint64_t)sl_attrs_int(&node->attrs, SL_ATTR_NUM_GROUPS, 1), inner = product(shape, 2, shape->rank);
        uint64_t channels = (uint64_t)shape->dims[1] / groups;
        bool by_channel = node->inputs[1].shape.dims[0] == shape->dims[1];
        struct sl_own_lines a;

        if (!affine_is_float(node) || !is_plain(node))
                return -ENOTSUP;
        a = lines_of(node, SL_OWN_LAYER_NORM, channels * inner, 1);
        a.lines_modulo = sl_own_divide_by(groups);
        a.line_step = (uint32_t)(by_channel ? channels : 1);
        a.k_step = by_channel;
        a.k_divisor = sl_own_divide_by(inner);
        a.scale_dtype = node->inputs[1].dtype;
        a.shift_dtype = node->inputs[2].dtype;
        add_affine(add_lines(builder, node, &a), node);
        return 0;
}
