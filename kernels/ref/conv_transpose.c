/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvTranspose, seen from the output: each of its pixels collects the pixels of the input whose window reaches it.
 */
#include "element.h"
#include "kernels.h"
#include "span.h"

struct transpose {
        struct sl_ref_span span;
        const struct sl_binding *binding;
        uint32_t dtype;
        int64_t kernel_size, group_channels, group_filters;
};

/* Where the input's pixel for tap @k of output coordinate @o lies along dimension @i; -1: nowhere. */
static int64_t source(const struct sl_ref_span *span, uint32_t i, int64_t o, int64_t k)
{
        int64_t at = o + span->window.pad_begin[i] - k * span->window.dilation[i];

        if (at < 0 || at % span->window.stride[i] || at / span->window.stride[i] >= span->in[i])
                return -1;
        return at / span->window.stride[i];
}

/* The sum over the group's channels for one input pixel and one tap. */
static double pixel_dot(const struct transpose *t, int64_t x_at, int64_t w_at)
{
        double sum = 0;

        for (int64_t c = 0; c < t->group_channels && sl_pace_on(t->binding->pace, 1); c++)
                sum += sl_ref_load(t->binding->inputs[0], x_at + c * t->span.in_size, t->dtype) *
                       sl_ref_load(t->binding->inputs[1], w_at + c * t->group_filters * t->kernel_size, t->dtype);
        return sum;
}

static double pixel(const struct transpose *t, int64_t position, int64_t x_at, int64_t w_at)
{
        const struct sl_ref_span *span = &t->span;
        const int64_t *kernel = span->window.kernel;
        int64_t out[SL_SPATIAL_MAX] = {
                position / (span->out[1] * span->out[2]), position / span->out[2] % span->out[1], position % span->out[2]};
        double sum = 0;

        for (int64_t z = 0; z < kernel[0]; z++)
                for (int64_t y = 0; y < kernel[1] && sl_pace_on(t->binding->pace, (uint64_t)kernel[2]); y++)
                        for (int64_t x = 0; x < kernel[2]; x++) {
                                int64_t in_z = source(span, 0, out[0], z), in_y = source(span, 1, out[1], y);
                                int64_t in_x = source(span, 2, out[2], x);

                                if (in_z >= 0 && in_y >= 0 && in_x >= 0)
                                        sum += pixel_dot(t, x_at + (in_z * span->in[1] + in_y) * span->in[2] + in_x,
                                                w_at + (z * kernel[1] + y) * kernel[2] + x);
                        }
        return sum;
}

int sl_ref_conv_transpose(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *x = &node->inputs[0].shape, *w = &node->inputs[1].shape;
        int64_t group = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1), filters = node->outputs[0].shape.dims[1];
        bool biased = node->n_inputs > 2 && node->inputs[2].dtype != SL_DTYPE_NONE;
        struct transpose t = {.binding = binding,
                .dtype = node->inputs[0].dtype,
                .kernel_size = 1,
                .group_channels = x->dims[1] / group,
                .group_filters = w->dims[1]};

        for (uint32_t i = 2; i < w->rank; i++)
                t.kernel_size *= w->dims[i];
        sl_ref_span_read(node, &t.span);
        for (int64_t plane = 0; plane < x->dims[0] * filters && sl_pace_on(binding->pace, 1); plane++) {
                int64_t n = plane / filters, m = plane % filters, first = m / t.group_filters * t.group_channels;
                int64_t w_at = (first * t.group_filters + m % t.group_filters) * t.kernel_size;
                double bias = biased ? sl_ref_load(binding->inputs[2], m, t.dtype) : 0;

                for (int64_t p = 0; p < t.span.out_size && sl_pace_on(binding->pace, 1); p++)
                        sl_ref_store(binding->outputs[0], plane * t.span.out_size + p, t.dtype,
                                bias + pixel(&t, p, (n * x->dims[1] + first) * t.span.in_size, w_at));
        }
        return 0;
}
