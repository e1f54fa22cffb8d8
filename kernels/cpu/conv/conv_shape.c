/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/conv/conv_shape.h"

#include "cpu/base/operator.h"

bool sl_conv_shape_read_real(const struct sl_node_desc *node, struct sl_conv_shape *ret_shape)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0], *f = sl_cpu_input(node, 1),
                               *bias = sl_cpu_input(node, 2);
        const int64_t *in = x->shape.dims, *out = y->shape.dims, groups = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);
        struct sl_conv_shape shape = {.dtype = x->dtype, .groups = groups};

        if (!f || x->shape.rank != 4 || !sl_cpu_is_real(x) || y->layout != SL_LAYOUT_CHANNELS_LAST || groups < 1)
                return false;
        if (y->dtype != x->dtype || f->dtype != x->dtype || (bias && bias->dtype != x->dtype))
                return false;
        if (sl_cpu_is_empty(x) || sl_cpu_is_empty(y) || sl_cpu_is_empty(f))
                return false;
        if (f->shape.rank != 4 || in[1] != f->shape.dims[1] * groups || out[1] != f->shape.dims[0] || out[1] % groups)
                return false;
        if (sl_window_read(node, &shape.window, NULL) || !sl_cpu_epilogue_plan(node, &shape.epilogue))
                return false;
        shape.channels = in[1] / groups;
        shape.filters = out[1] / groups;
        shape.batch = in[0];
        shape.height = in[2];
        shape.width = in[3];
        shape.out_height = out[2];
        shape.out_width = out[3];
        shape.has_bias = bias != NULL;
        shape.residual = shape.epilogue.has_residual ? node->n_inputs - 1 : 0;
        *ret_shape = shape;
        return true;
}

bool sl_conv_shape_read(const struct sl_node_desc *node, struct sl_conv_shape *ret_shape)
{
        return sl_cpu_is_f32(&node->inputs[0]) && sl_conv_shape_read_real(node, ret_shape);
}
