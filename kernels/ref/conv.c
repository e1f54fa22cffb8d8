/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"
#include "element.h"
#include "epilogue.h"
#include "kernels.h"
#include "shape/mbconv.h"
#include "span.h"

/* One channel of the image under one channel of the filter. */
static inline __attribute__((always_inline)) double window_dot(struct sl_pace *pace, const struct sl_ref_span *span,
        const struct sl_ref_taps *taps, const void *image, int64_t image_at, const void *filter, int64_t filter_at, uint32_t dtype)
{
        const struct sl_window *w = &span->window;
        uint64_t columns = 1 + (uint64_t)(taps->last[2] - taps->first[2]);
        double sum = 0;

        for (int64_t z = taps->first[0]; z < taps->last[0]; z++) {
                for (int64_t y = taps->first[1]; y < taps->last[1] && sl_pace_on(pace, columns); y++) {
                        int64_t in_z = taps->start[0] + z * w->dilation[0], in_y = taps->start[1] + y * w->dilation[1];
                        int64_t row = image_at + (in_z * span->in[1] + in_y) * span->in[2] + taps->start[2];
                        int64_t filter_row = filter_at + (z * w->kernel[1] + y) * w->kernel[2];

                        for (int64_t x = taps->first[2]; x < taps->last[2]; x++)
                                sum += sl_ref_load(image, row + x * w->dilation[2], dtype) *
                                       sl_ref_load(filter, filter_row + x, dtype);
                }
        }
        return sum;
}

/* Everything of one launch that does not change from pixel to pixel. */
struct conv {
        struct sl_ref_span span;
        const struct sl_epilogue *epilogue;
        struct sl_pace *pace;
        const void *image, *filter, *bias, *residual;
        void *out;
        int64_t channels, group_channels, filters, group_filters, kernel_size;
        int64_t channel_step; /* from one channel of a group to the next */
};

/* The first channel of the image that filter @m reads. */
static int64_t first_channel_of(const struct conv *c, int64_t m)
{
        return c->channel_step > 1 ? m % c->channel_step : m / c->group_filters * c->group_channels;
}

/* All pixels of filter @m for sample @n. */
static inline __attribute__((always_inline)) void conv_plane(const struct conv *c, int64_t n, int64_t m, uint32_t dtype)
{
        int64_t first_channel = n * c->channels + first_channel_of(c, m);
        int64_t out_at = (n * c->filters + m) * c->span.out_size;
        double bias = c->bias ? sl_ref_load(c->bias, m, dtype) : 0;

        for (int64_t p = 0; p < c->span.out_size && sl_pace_on(c->pace, 1); p++) {
                struct sl_ref_taps taps;
                double sum = bias;

                sl_ref_span_at(&c->span, p, &taps);
                for (int64_t k = 0; k < c->group_channels; k++)
                        sum += window_dot(c->pace, &c->span, &taps, c->image,
                                (first_channel + k * c->channel_step) * c->span.in_size, c->filter,
                                (m * c->group_channels + k) * c->kernel_size, dtype);
                if (c->residual)
                        sum += sl_ref_load(c->residual, out_at + p, dtype);
                sl_ref_store(c->out, out_at + p, dtype, sl_ref_activate(c->epilogue, sum));
        }
}

/* @dtype is a constant in each call, so that the innermost loop is free of switches. */
static inline __attribute__((always_inline)) void conv_all(const struct conv *c, int64_t samples, uint32_t dtype)
{
        for (int64_t n = 0; n < samples; n++)
                for (int64_t m = 0; m < c->filters && sl_pace_on(c->pace, 1); m++)
                        conv_plane(c, n, m, dtype);
}

/* @channel_step: 1, or the number of groups, whose channels interleave. */
static int run_conv(const struct sl_node_desc *node, int64_t channel_step, const struct sl_binding *binding)
{
        const struct sl_shape *x = &node->inputs[0].shape, *w = &node->inputs[1].shape;
        uint32_t n_plain = node->n_inputs - (node->epilogue.has_residual != 0);
        struct conv c = {
                .epilogue = &node->epilogue,
                .pace = binding->pace,
                .image = binding->inputs[0],
                .filter = binding->inputs[1],
                .bias = n_plain > 2 ? binding->inputs[2] : NULL,
                .residual = node->epilogue.has_residual ? binding->inputs[node->n_inputs - 1] : NULL,
                .out = binding->outputs[0],
                .channels = x->dims[1],
                .group_channels = w->dims[1],
                .filters = w->dims[0],
                .group_filters = w->dims[0] / sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1),
                .kernel_size = 1,
                .channel_step = channel_step,
        };

        for (uint32_t i = 2; i < w->rank; i++)
                c.kernel_size *= w->dims[i];
        sl_ref_span_read(node, &c.span);
        switch (node->inputs[0].dtype) {
        case SL_DTYPE_F32:
                conv_all(&c, x->dims[0], SL_DTYPE_F32);
                break;
        case SL_DTYPE_F64:
                conv_all(&c, x->dims[0], SL_DTYPE_F64);
                break;
        case SL_DTYPE_BF16:
                conv_all(&c, x->dims[0], SL_DTYPE_BF16);
                break;
        default:
                conv_all(&c, x->dims[0], node->inputs[0].dtype);
                break;
        }
        return 0;
}

int sl_ref_conv(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        return run_conv(node, 1, binding);
}

int sl_ref_laned_conv(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        return run_conv(node, sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1), binding);
}

/* What one part leaves for the next. */
static size_t image_bytes(const struct sl_node_desc *conv)
{
        return sl_align_up(sl_tensor_bytes(&conv->outputs[0]), SL_LINE_BYTES);
}

size_t sl_ref_scratch_mbconv(const struct sl_node_desc *node)
{
        struct sl_node_desc conv;
        size_t bytes = 0;

        for (int part = 0; part < (int)sl_mbconv_last(node); part++)
                if (sl_mbconv_has(node, part) && !sl_mbconv_conv(node, part, &conv, NULL))
                        bytes += image_bytes(&conv);
        return bytes;
}

/* One part after the other. */
int sl_ref_mbconv(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        uint32_t last = sl_mbconv_last(node);
        const void *image = binding->inputs[SL_MBCONV_IMAGE];
        char *scratch = binding->scratch;
        struct sl_node_desc conv;

        for (uint32_t part = 0; part <= last; part++) {
                uint32_t weights = sl_mbconv_weights(part);
                void *out = part == last ? binding->outputs[0] : scratch;

                if (!sl_mbconv_has(node, part) || sl_mbconv_conv(node, part, &conv, NULL))
                        continue;
                sl_ref_conv(&conv, &(struct sl_binding){.inputs = (const void *const[]){image, binding->inputs[weights],
                                                                conv.inputs[2].dtype ? binding->inputs[weights + 1] : NULL,
                                                                binding->inputs[node->n_inputs - 1]},
                                           .outputs = &out,
                                           .pace = binding->pace});
                image = out;
                scratch += part == last ? 0 : image_bytes(&conv);
        }
        return 0;
}
