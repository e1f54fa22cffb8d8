/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions that cuDNN does not compute; what is left of the epilogue is a chain behind them. */
#include "cuda/own/builder.h"
#include "shape/window.h"

#include <errno.h>

static bool tensors_fit(const struct sl_node_desc *node)
{
        uint32_t dtype = node->inputs[0].dtype;

        if (!sl_own_is_float(dtype) || node->inputs[0].layout != node->outputs[0].layout ||
                node->inputs[1].layout != SL_LAYOUT_PLAIN)
                return false;
        for (uint32_t i = 1; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE && node->inputs[i].dtype != dtype)
                        return false;
        return true;
}

int sl_own_plan_convolve(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_shape *x = &node->inputs[0].shape, *y = &node->outputs[0].shape;
        uint64_t groups = (uint64_t)sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);
        struct sl_own_convolve a = {.results = (uint32_t)sl_shape_elements(y),
                .transposed = node->op == SL_OP_CONV_TRANSPOSE,
                .channels_last = node->inputs[0].layout == SL_LAYOUT_CHANNELS_LAST,
                .channels = (uint32_t)x->dims[1],
                .group_channels = (uint32_t)((uint64_t)x->dims[1] / groups),
                .group_filters = (uint32_t)((uint64_t)y->dims[1] / groups),
                .lanes = node->op == SL_OP_LANED_CONV ? (uint32_t)groups : 0,
                .filters = sl_own_divide_by((uint64_t)y->dims[1])};
        bool biased = node->n_inputs - (node->epilogue.has_residual != 0) > 2 && node->inputs[2].dtype != SL_DTYPE_NONE;
        struct sl_own_launch *launch;

        if (!tensors_fit(node) || sl_own_window_read(node, &a.window))
                return -ENOTSUP;
        launch = sl_own_add(builder, sl_own_kernel_of(SL_OWN_KERNEL_convolve_f32, node->inputs[0].dtype), &a, sizeof(a), a.results);
        sl_own_slot(launch, offsetof(struct sl_own_convolve, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_convolve, x), SL_OWN_INPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_convolve, w), SL_OWN_INPUT, 1, 0);
        if (biased)
                sl_own_slot(launch, offsetof(struct sl_own_convolve, bias), SL_OWN_INPUT, 2, 0);
        if (!node->epilogue.has_residual && node->epilogue.activation == SL_ACT_NONE)
                return 0;
        return sl_own_build_finish(builder, node, -1);
}
