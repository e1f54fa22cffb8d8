/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in few bits: to them, from them, and their sum. */
#include "shape/quantize.h"

#include "cuda/own/builder.h"

#include <errno.h>

static bool is_byte(uint32_t dtype)
{
        return dtype == SL_DTYPE_U8 || dtype == SL_DTYPE_I8;
}

static bool all_lie_alike(const struct sl_node_desc *node, uint32_t n_images)
{
        for (uint32_t i = 0; i < n_images; i++)
                if (node->inputs[i].layout != node->outputs[0].layout)
                        return false;
        return true;
}

/* Scales are counted in the order of the dimensions: another layout goes where there is one scale. */
static int add_scales(struct sl_own_builder *builder, const struct sl_node_desc *node, uint32_t kernel)
{
        struct sl_own_quantize a = {.elements = (uint32_t)sl_shape_elements(&node->inputs[0].shape),
                .from = node->inputs[0].dtype,
                .to = node->outputs[0].dtype,
                .scale_dtype = node->inputs[1].dtype};
        struct sl_scales scales = {.block = 0};
        struct sl_own_launch *launch;

        if (!all_lie_alike(node, 1) || !sl_own_is_float(a.scale_dtype) || sl_scales_read(node, &scales, NULL) ||
                (scales.block && node->inputs[0].layout != SL_LAYOUT_PLAIN))
                return -ENOTSUP;
        a.block = scales.block != 0;
        a.blocks = (uint32_t)scales.blocks;
        a.inner = sl_own_divide_by(scales.block ? (uint64_t)scales.inner : 1);
        a.size = sl_own_divide_by(scales.block ? (uint64_t)scales.size : 1);
        a.block_size = sl_own_divide_by(scales.block ? (uint64_t)scales.block : 1);
        launch = sl_own_add(builder, kernel, &a, sizeof(a), a.elements);
        sl_own_slot(launch, offsetof(struct sl_own_quantize, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_quantize, in), SL_OWN_INPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_quantize, scale), SL_OWN_INPUT, 1, 0);
        if (sl_own_is_there(node, 2))
                sl_own_slot(launch, offsetof(struct sl_own_quantize, zero), SL_OWN_INPUT, 2, 0);
        return 0;
}

int sl_own_plan_quantize(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        uint32_t from = node->inputs[0].dtype;

        if (!is_byte(node->outputs[0].dtype) || (!sl_own_is_float(from) && from != SL_DTYPE_I32))
                return -ENOTSUP;
        return add_scales(builder, node, SL_OWN_KERNEL_quantize);
}

int sl_own_plan_dequantize(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        uint32_t from = node->inputs[0].dtype;

        if ((!is_byte(from) && from != SL_DTYPE_I32) || !sl_own_is_float(node->outputs[0].dtype))
                return -ENOTSUP;
        return add_scales(builder, node, SL_OWN_KERNEL_dequantize);
}

static int32_t zero_of(const struct sl_node_desc *node, uint32_t id)
{
        return (int32_t)sl_attrs_int(&node->attrs, id, 0);
}

static bool zeros_fit(const struct sl_node_desc *node)
{
        static const uint32_t ids[] = {SL_ATTR_X_ZERO, SL_ATTR_ADDEND_ZERO, SL_ATTR_Y_ZERO};

        for (uint32_t i = 0; i < 3; i++)
                if (sl_attrs_int(&node->attrs, ids[i], 0) < -128 || sl_attrs_int(&node->attrs, ids[i], 0) > 255)
                        return false;
        return true;
}

int sl_own_plan_quantized_add(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        bool has_addend = sl_own_is_there(node, 1);
        struct sl_own_quantized_add a = {.elements = (uint32_t)sl_shape_elements(&node->outputs[0].shape),
                .x_dtype = node->inputs[0].dtype,
                .addend_dtype = has_addend ? node->inputs[1].dtype : SL_DTYPE_NONE,
                .y_dtype = node->outputs[0].dtype,
                .x_zero = zero_of(node, SL_ATTR_X_ZERO),
                .addend_zero = zero_of(node, SL_ATTR_ADDEND_ZERO),
                .y_zero = zero_of(node, SL_ATTR_Y_ZERO),
                .x_scale = (float)sl_attrs_float(&node->attrs, SL_ATTR_X_SCALE, 1),
                .addend_scale = (float)sl_attrs_float(&node->attrs, SL_ATTR_ADDEND_SCALE, 1),
                .y_scale = (float)sl_attrs_float(&node->attrs, SL_ATTR_Y_SCALE, 1)};
        struct sl_own_launch *launch;

        if (!is_byte(a.x_dtype) || (has_addend && !is_byte(a.addend_dtype)) || node->epilogue.has_residual || !zeros_fit(node) ||
                (!is_byte(a.y_dtype) && a.y_dtype != SL_DTYPE_F32) || node->epilogue.activation > SL_ACT_ELU ||
                !all_lie_alike(node, has_addend ? 2 : 1))
                return -ENOTSUP;
        a.active = sl_own_activation(&node->epilogue, &a.activation);
        launch = sl_own_add(builder, SL_OWN_KERNEL_quantized_add, &a, sizeof(a), a.elements);
        sl_own_slot(launch, offsetof(struct sl_own_quantized_add, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_quantized_add, x), SL_OWN_INPUT, 0, 0);
        if (has_addend)
                sl_own_slot(launch, offsetof(struct sl_own_quantized_add, addend), SL_OWN_INPUT, 1, 0);
        return 0;
}

static void add_dynamic(struct sl_own_builder *builder, const struct sl_node_desc *node, uint32_t kernel,
        const struct sl_own_dynamic_quantize *a, uint64_t ranges)
{
        static const size_t offsets[] = {offsetof(struct sl_own_dynamic_quantize, out),
                offsetof(struct sl_own_dynamic_quantize, scale), offsetof(struct sl_own_dynamic_quantize, zero)};
        struct sl_own_launch *launch = sl_own_add(builder, kernel, a, sizeof(*a), (uint64_t)a->n_ranges * SL_OWN_BLOCK);

        for (uint32_t i = 0; i < node->n_outputs && i < 3; i++)
                if (node->outputs[i].dtype != SL_DTYPE_NONE)
                        sl_own_slot(launch, offsets[i], SL_OWN_OUTPUT, i, 0);
        sl_own_slot(launch, offsetof(struct sl_own_dynamic_quantize, in), SL_OWN_INPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_dynamic_quantize, ranges), SL_OWN_SCRATCH, 0, ranges);
}

int sl_own_plan_dynamic_quantize(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        uint64_t elements = sl_shape_elements(&node->inputs[0].shape), blocks = (elements + SL_OWN_BLOCK - 1) / SL_OWN_BLOCK;
        struct sl_own_dynamic_quantize a = {
                .elements = (uint32_t)elements, .n_ranges = blocks < SL_OWN_RANGE_BLOCKS ? (uint32_t)blocks : SL_OWN_RANGE_BLOCKS};
        uint64_t ranges;

        if (!elements || !all_lie_alike(node, 1) || node->inputs[0].dtype != SL_DTYPE_F32 || node->outputs[0].dtype != SL_DTYPE_U8)
                return -ENOTSUP;
        ranges = sl_own_scratch(builder, (uint64_t)a.n_ranges * 2 * sizeof(float));
        add_dynamic(builder, node, SL_OWN_KERNEL_dynamic_range, &a, ranges);
        add_dynamic(builder, node, SL_OWN_KERNEL_dynamic_quantize, &a, ranges);
        return 0;
}

int sl_own_build_shift(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_own_shift a = {.elements = (uint32_t)sl_shape_elements(&node->inputs[0].shape),
                .dtype = node->inputs[0].dtype,
                .zero = (int32_t)sl_attrs_int(&node->attrs, SL_ATTR_X_ZERO, 0)};
        struct sl_own_launch *launch;

        if (!is_byte(a.dtype))
                return -ENOTSUP;
        launch = sl_own_add(builder, SL_OWN_KERNEL_shift, &a, sizeof(a), a.elements);
        sl_own_slot(launch, offsetof(struct sl_own_shift, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_shift, in), SL_OWN_INPUT, 0, 0);
        return 0;
}

int64_t sl_cuda_own_int8_zero(const struct sl_node_desc *node)
{
        return sl_attrs_int(&node->attrs, SL_ATTR_X_ZERO, 0) - (node->inputs[0].dtype == SL_DTYPE_U8 ? 128 : 0);
}

/* Rows are places of a window of one tap. */
static void read_rows(const struct sl_node_desc *node, struct sl_own_window *ret_window)
{
        const struct sl_shape *x = &node->inputs[0].shape;
        uint64_t rows = sl_shape_elements(x) / (uint64_t)x->dims[x->rank - 1];

        for (uint32_t d = 0; d < SL_OWN_SPATIAL; d++) {
                ret_window->out_size[d] = sl_own_divide_by(1);
                ret_window->in_size[d] = ret_window->kernel[d] = ret_window->stride[d] = ret_window->dilation[d] = 1;
                ret_window->pad_begin[d] = ret_window->pad_end[d] = 0;
        }
        ret_window->in_size[SL_OWN_SPATIAL - 1] = (int32_t)rows;
        ret_window->out_size[SL_OWN_SPATIAL - 1] = sl_own_divide_by(rows);
}

/* The image, with its padding where that is not 0: a window of one tap goes over all of it. */
static void widen_window(struct sl_own_window *window, bool padded)
{
        for (uint32_t d = 0; d < SL_OWN_SPATIAL; d++) {
                window->kernel[d] = window->stride[d] = window->dilation[d] = 1;
                if (!padded)
                        window->pad_begin[d] = window->pad_end[d] = 0;
                window->out_size[d] = sl_own_divide_by((uint64_t)(window->in_size[d] + window->pad_begin[d] + window->pad_end[d]));
        }
}

static int add_im2col(struct sl_own_builder *builder, const struct sl_node_desc *node, bool image)
{
        const struct sl_shape *x = &node->inputs[0].shape;
        bool conv = node->op == SL_OP_QUANTIZED_CONV;
        uint64_t channels = (uint64_t)x->dims[conv ? 1 : x->rank - 1], words;
        struct sl_own_im2col a = {.flip = node->inputs[0].dtype == SL_DTYPE_U8 ? 0x80808080u : 0,
                .zero = (uint8_t)sl_cuda_own_int8_zero(node) * 0x01010101u,
                .channels = sl_own_divide_by(channels / 4)};
        struct sl_own_launch *launch;

        if (!is_byte(node->inputs[0].dtype) || channels % 4 || (conv && sl_own_window_read(node, &a.window)))
                return -ENOTSUP;
        if (!conv)
                read_rows(node, &a.window);
        else if (image)
                widen_window(&a.window, sl_cuda_own_int8_zero(node) != 0);
        words = channels / 4 * (conv ? (uint64_t)x->dims[0] : 1);
        for (uint32_t d = 0; d < SL_OWN_SPATIAL && words <= INT32_MAX; d++) {
                a.kernel[d] = sl_own_divide_by((uint64_t)a.window.kernel[d]);
                words *= (uint64_t)a.window.kernel[d] * a.window.out_size[d].divisor;
        }
        if (words > INT32_MAX)
                return -ENOTSUP;
        a.words = (uint32_t)words;
        launch = sl_own_add(builder, SL_OWN_KERNEL_im2col, &a, sizeof(a), a.words);
        sl_own_slot(launch, offsetof(struct sl_own_im2col, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_im2col, in), SL_OWN_INPUT, 0, 0);
        return 0;
}

int sl_own_build_int8_image(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        return add_im2col(builder, node, true);
}

int sl_own_build_int8_rows(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        return add_im2col(builder, node, false);
}

static struct sl_own_settle settle_of(const struct sl_node_desc *node)
{
        const struct sl_tensor *y = &node->outputs[0];
        uint32_t channel = node->op == SL_OP_QUANTIZED_CONV ? 1 : y->shape.rank - 1;
        struct sl_own_settle a = {.elements = (uint32_t)sl_shape_elements(&y->shape),
                .scale_step = node->inputs[2].shape.dims[0] != 1,
                .sums_dtype = SL_DTYPE_F32,
                .addend_dtype = node->inputs[node->n_inputs - 1].dtype,
                .y_dtype = y->dtype,
                .addend_zero = (int32_t)sl_attrs_int(&node->attrs, SL_ATTR_ADDEND_ZERO, 0),
                .y_zero = (int32_t)sl_attrs_int(&node->attrs, SL_ATTR_Y_ZERO, 0),
                .addend_scale = sl_attrs_float(&node->attrs, SL_ATTR_ADDEND_SCALE, 1),
                .y_scale = sl_attrs_float(&node->attrs, SL_ATTR_Y_SCALE, 1),
                .channels = sl_own_divide_by((uint64_t)y->shape.dims[channel])};

        a.active = sl_own_activation(&node->epilogue, &a.activation);
        return a;
}

/* Of sums of that type, which are one input more. */
static int add_settling(struct sl_own_builder *builder, const struct sl_node_desc *node, uint32_t sums_dtype)
{
        bool residual = node->epilogue.has_residual != 0;
        struct sl_own_settle a = settle_of(node);
        const struct sl_tensor *addend = &node->inputs[node->n_inputs - 1];
        struct sl_own_launch *launch;

        if ((!is_byte(a.y_dtype) && a.y_dtype != SL_DTYPE_F32) || node->inputs[1].dtype != SL_DTYPE_I8 ||
                node->epilogue.activation > SL_ACT_ELU || (residual && addend->layout != node->outputs[0].layout))
                return -ENOTSUP;
        a.sums_dtype = sums_dtype;
        a.x_zero = (int32_t)sl_cuda_own_int8_zero(node);
        launch = sl_own_add(builder, SL_OWN_KERNEL_settle, &a, sizeof(a), a.elements);
        sl_own_slot(launch, offsetof(struct sl_own_settle, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_settle, sums), SL_OWN_INPUT, node->n_inputs, 0);
        sl_own_slot(launch, offsetof(struct sl_own_settle, scales), SL_OWN_INPUT, 2, 0);
        if (sums_dtype == SL_DTYPE_I32 && a.x_zero)
                sl_own_slot(launch, offsetof(struct sl_own_settle, totals), SL_OWN_INPUT, node->n_inputs + 1, 0);
        if (node->n_inputs - residual > 3 && node->inputs[3].dtype != SL_DTYPE_NONE)
                sl_own_slot(launch, offsetof(struct sl_own_settle, bias), SL_OWN_INPUT, 3, 0);
        if (residual)
                sl_own_slot(launch, offsetof(struct sl_own_settle, addend), SL_OWN_INPUT, node->n_inputs - 1, 0);
        return 0;
}

int sl_own_build_settle(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        return add_settling(builder, node, SL_DTYPE_F32);
}

int sl_own_build_int8_settle(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        return add_settling(builder, node, SL_DTYPE_I32);
}
