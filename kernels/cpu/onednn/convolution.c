/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conv of rank 3 to 5: groups, dilation and uneven pads in either layout, through oneDNN.
 */
#include "cpu/onednn/describe.h"
#include "shape/window.h"

struct sl_strided sl_describe_filters(const struct sl_tensor *weights, int64_t groups)
{
        int64_t dims[SL_STRIDED_RANK_MAX] = {groups, weights->shape.dims[0] / groups};
        uint32_t rank = weights->shape.rank;

        if (groups == 1)
                return sl_describe_tensor(weights);
        for (uint32_t i = 1; i < rank; i++)
                dims[i + 1] = weights->shape.dims[i];
        return sl_describe_dense(weights->dtype, rank + 1, dims);
}

void sl_describe_window(const struct sl_window *window, struct sl_primitive_spec *spec)
{
        for (uint32_t i = 0; i < SL_SPATIAL_MAX; i++) {
                bool there = i < window->rank;

                spec->strides[i] = there ? window->stride[i] : 1;
                spec->dilations[i] = there ? window->dilation[i] : 1;
                spec->pads_begin[i] = there ? window->pad_begin[i] : 0;
                spec->pads_end[i] = there ? window->pad_end[i] : 0;
        }
}

static bool is_convolution(const struct sl_node_desc *node, const struct sl_window *window)
{
        const struct sl_tensor *x = &node->inputs[0], *w = sl_cpu_input(node, 1), *y = &node->outputs[0];
        int64_t groups = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);

        if (!w || !sl_cpu_is_real(x) || w->dtype != x->dtype || y->dtype != x->dtype || w->layout != SL_LAYOUT_PLAIN)
                return false;
        if (w->shape.rank != x->shape.rank || y->shape.rank != x->shape.rank || window->rank + 2 != x->shape.rank)
                return false;
        if (groups < 1 || w->shape.dims[0] % groups || w->shape.dims[1] * groups != x->shape.dims[1])
                return false;
        return !sl_cpu_is_empty(x) && !sl_cpu_is_empty(w) && !sl_cpu_is_empty(y);
}

bool sl_cpu_describe_convolution(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        struct sl_primitive_spec *spec = &call->spec;
        const struct sl_tensor *bias = sl_cpu_input(node, 2);
        struct sl_window window;

        if (sl_window_read(node, &window, NULL) || !is_convolution(node, &window))
                return false;
        spec->kind = SL_PRIMITIVE_CONVOLUTION;
        /* oneDNN has only reference code from one layout to the other, so the input is turned first. */
        struct sl_tensor source = node->inputs[0];
        if (!sl_cpu_same_layout(&source, &node->outputs[0])) {
                source.layout = node->outputs[0].layout;
                call->turned = source;
        }
        spec->source = sl_describe_tensor(&source);
        spec->weights = sl_describe_filters(&node->inputs[1], sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1));
        spec->result = sl_describe_tensor(&node->outputs[0]);
        call->input_of[SL_ARGUMENT_WEIGHTS] = 1;
        if (bias) {
                if (bias->dtype != node->inputs[0].dtype)
                        return false;
                spec->bias = sl_describe_tensor(bias);
                call->input_of[SL_ARGUMENT_BIAS] = 2;
        }
        sl_describe_window(&window, spec);
        return sl_describe_epilogue(node, call);
}

void sl_describe_evened(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        struct sl_tensor source = node->inputs[0], weights = node->inputs[1];
        int64_t groups = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);

        if (call->spec.kind != SL_PRIMITIVE_CONVOLUTION || !sl_evening_plan(node, &call->evening))
                return;
        source.layout = SL_LAYOUT_CHANNELS_LAST;
        source.shape.dims[1] += groups;
        weights.shape.dims[1]++;
        call->turned = source;
        call->spec.source = sl_describe_tensor(&source);
        call->spec.weights = sl_describe_filters(&weights, groups);
}
