/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DeformConv: a convolution of images whose taps are displaced by offsets that come as data. A tap between pixels is interpolated
 * from the four around it; what lies outside the image is 0.
 */
#include "element.h"
#include "kernels.h"
#include "span.h"

struct deform {
        struct sl_ref_span span;
        const struct sl_binding *binding;
        uint32_t dtype;
        bool masked;
        int64_t taps, offset_groups, channels, group_channels, filters;
};

static double image_at(const struct deform *d, int64_t plane, double y, double x)
{
        int64_t rows = d->span.in[1], columns = d->span.in[2];
        double value = 0;

        if (!(y > -1 && y < (double)rows && x > -1 && x < (double)columns))
                return 0;
        for (int i = 0; i < 4; i++) {
                int64_t row = (int64_t)floor(y) + i / 2, column = (int64_t)floor(x) + i % 2;
                double weight = (1 - fabs(y - (double)row)) * (1 - fabs(x - (double)column));

                if (row >= 0 && row < rows && column >= 0 && column < columns)
                        value += weight *
                                 sl_ref_load(d->binding->inputs[0], plane * d->span.in_size + row * columns + column, d->dtype);
        }
        return value;
}

/* Channel @c of sample @n under the filter that starts at @w_at, for output pixel @p. */
static double channel_sum(const struct deform *d, int64_t n, int64_t c, int64_t w_at, int64_t p)
{
        const struct sl_window *w = &d->span.window;
        int64_t group = n * d->offset_groups + c / (d->channels / d->offset_groups), size = d->span.out_size;
        double sum = 0;

        for (int64_t t = 0; t < d->taps && sl_pace_on(d->binding->pace, 4); t++) {
                int64_t ky = t / w->kernel[2], kx = t % w->kernel[2];
                int64_t at = ((group * d->taps + t) * 2) * size + p;
                double y = (double)(p / d->span.out[2] * w->stride[1] - w->pad_begin[1] + ky * w->dilation[1]);
                double x = (double)(p % d->span.out[2] * w->stride[2] - w->pad_begin[2] + kx * w->dilation[2]);
                double mask = d->masked ? sl_ref_load(d->binding->inputs[4], (group * d->taps + t) * size + p, d->dtype) : 1;

                y += sl_ref_load(d->binding->inputs[2], at, d->dtype);
                x += sl_ref_load(d->binding->inputs[2], at + size, d->dtype);
                sum += mask * sl_ref_load(d->binding->inputs[1], w_at + t, d->dtype) * image_at(d, n * d->channels + c, y, x);
        }
        return sum;
}

int sl_ref_deform_conv(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *x = &node->inputs[0].shape, *w = &node->inputs[1].shape;
        bool biased = node->n_inputs > 3 && node->inputs[3].dtype != SL_DTYPE_NONE;
        int64_t of_group = w->dims[0] / sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);
        struct deform d = {.binding = binding,
                .dtype = node->inputs[0].dtype,
                .masked = node->n_inputs > 4 && node->inputs[4].dtype != SL_DTYPE_NONE,
                .taps = w->dims[2] * w->dims[3],
                .offset_groups = sl_attrs_int(&node->attrs, SL_ATTR_OFFSET_GROUP, 1),
                .channels = x->dims[1],
                .group_channels = w->dims[1],
                .filters = w->dims[0]};

        sl_ref_span_read(node, &d.span);
        for (int64_t i = 0; i < x->dims[0] * d.filters * d.span.out_size && sl_pace_on(binding->pace, 1); i++) {
                int64_t p = i % d.span.out_size, m = i / d.span.out_size % d.filters, n = i / d.span.out_size / d.filters;
                double sum = biased ? sl_ref_load(binding->inputs[3], m, d.dtype) : 0;

                for (int64_t k = 0; k < d.group_channels && sl_pace_on(binding->pace, 1); k++)
                        sum += channel_sum(&d, n, m / of_group * d.group_channels + k, (m * d.group_channels + k) * d.taps, p);
                sl_ref_store(binding->outputs[0], i, d.dtype, sum);
        }
        return 0;
}
