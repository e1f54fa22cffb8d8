/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators on bytes that stand for real numbers: exact sums of products in 64 bits, the rest in double, one rounding at the end
 * (to the nearest, ties to even).
 */
#include "element.h"
#include "epilogue.h"
#include "kernels.h"
#include "span.h"

struct quantized {
        const struct sl_node_desc *node;
        struct sl_pace *pace;
        const void *x, *w, *residual;
        const float *scale;
        const int32_t *bias;
        void *y;
        int64_t x_zero, addend_zero, y_zero, scale_step;
        double addend_scale, y_scale;
        uint32_t x_dtype, addend_dtype, y_dtype;
};

static int64_t load_byte(const void *data, int64_t i, uint32_t dtype)
{
        return (int64_t)sl_ref_load_bits(data, i, dtype);
}

static void store_real(const struct quantized *q, int64_t at, double value)
{
        value = sl_ref_activate(&q->node->epilogue, value);
        if (q->y_dtype != SL_DTYPE_F32)
                value = nearbyint(value / q->y_scale) + (double)q->y_zero;
        sl_ref_store(q->y, at, q->y_dtype, value);
}

static void store_sum(const struct quantized *q, int64_t at, int64_t channel, int64_t sum)
{
        double value = (double)q->scale[channel * q->scale_step] * (double)(sum + (q->bias ? q->bias[channel] : 0));

        if (q->residual && q->addend_dtype == SL_DTYPE_F32)
                value += (double)((const float *)q->residual)[at];
        else if (q->residual)
                value += q->addend_scale * (double)(load_byte(q->residual, at, q->addend_dtype) - q->addend_zero);
        store_real(q, at, value);
}

static void read_node(const struct sl_node_desc *node, const struct sl_binding *binding, struct quantized *q)
{
        uint32_t last = node->n_inputs - 1;

        *q = (struct quantized){
                .node = node,
                .pace = binding->pace,
                .x = binding->inputs[0],
                .y = binding->outputs[0],
                .x_zero = sl_attrs_int(&node->attrs, SL_ATTR_X_ZERO, 0),
                .addend_zero = sl_attrs_int(&node->attrs, SL_ATTR_ADDEND_ZERO, 0),
                .y_zero = sl_attrs_int(&node->attrs, SL_ATTR_Y_ZERO, 0),
                .addend_scale = sl_attrs_float(&node->attrs, SL_ATTR_ADDEND_SCALE, 1.0),
                .y_scale = sl_attrs_float(&node->attrs, SL_ATTR_Y_SCALE, 1.0),
                .x_dtype = node->inputs[0].dtype,
                .addend_dtype = node->inputs[last].dtype,
                .y_dtype = node->outputs[0].dtype,
        };
        if (node->op == SL_OP_QUANTIZED_ADD)
                return;
        q->w = binding->inputs[1];
        q->scale = binding->inputs[2];
        q->scale_step = node->inputs[2].shape.dims[0] != 1;
        q->residual = node->epilogue.has_residual ? binding->inputs[last] : NULL;
        if (node->n_inputs - (node->epilogue.has_residual != 0) > 3 && node->inputs[3].dtype != SL_DTYPE_NONE)
                q->bias = binding->inputs[3];
}

/* One channel of the image under one channel of the filter; padding stands for zero, so it adds nothing. */
static int64_t window_sum(const struct quantized *q, const struct sl_ref_span *span, const struct sl_ref_taps *taps,
        int64_t image_at, int64_t filter_at)
{
        const struct sl_window *w = &span->window;
        uint64_t row = 1 + (uint64_t)(taps->last[2] - taps->first[2]);
        int64_t sum = 0;

        for (int64_t z = taps->first[0]; z < taps->last[0]; z++)
                for (int64_t y = taps->first[1]; y < taps->last[1] && sl_pace_on(q->pace, row); y++)
                        for (int64_t x = taps->first[2]; x < taps->last[2]; x++) {
                                int64_t in_z = taps->start[0] + z * w->dilation[0], in_y = taps->start[1] + y * w->dilation[1];
                                int64_t in_x = taps->start[2] + x * w->dilation[2];
                                int64_t at = image_at + (in_z * span->in[1] + in_y) * span->in[2] + in_x;

                                sum += (load_byte(q->x, at, q->x_dtype) - q->x_zero) *
                                       ((const int8_t *)q->w)[filter_at + (z * w->kernel[1] + y) * w->kernel[2] + x];
                        }
        return sum;
}

int sl_ref_quantized_conv(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *x = &node->inputs[0].shape, *w = &node->inputs[1].shape;
        int64_t filters = w->dims[0], depth = w->dims[1], kernel_size = 1, at = 0;
        int64_t group_filters = filters / sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);
        struct sl_ref_taps taps;
        struct sl_ref_span span;
        struct quantized q;

        read_node(node, binding, &q);
        sl_ref_span_read(node, &span);
        for (uint32_t i = 2; i < w->rank; i++)
                kernel_size *= w->dims[i];
        for (int64_t n = 0; n < x->dims[0]; n++)
                for (int64_t m = 0; m < filters; m++)
                        for (int64_t p = 0; p < span.out_size && sl_pace_on(binding->pace, 1); p++, at++) {
                                int64_t channel = n * x->dims[1] + m / group_filters * depth, sum = 0;

                                sl_ref_span_at(&span, p, &taps);
                                for (int64_t k = 0; k < depth; k++)
                                        sum += window_sum(
                                                &q, &span, &taps, (channel + k) * span.in_size, (m * depth + k) * kernel_size);
                                store_sum(&q, at, m, sum);
                        }
        return 0;
}

int sl_ref_quantized_matmul(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        bool trans = sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0) != 0;
        const struct sl_shape *x = &node->inputs[0].shape, *y = &node->outputs[0].shape;
        int64_t inner = x->dims[x->rank - 1], columns = y->dims[y->rank - 1];
        int64_t elements = (int64_t)sl_shape_elements(y);
        struct quantized q;

        read_node(node, binding, &q);
        for (int64_t at = 0; at < elements && sl_pace_on(binding->pace, 1); at++) {
                int64_t row = at / columns, column = at % columns, sum = 0;

                for (int64_t k = 0; k < inner && sl_pace_on(binding->pace, 1); k++)
                        sum += (load_byte(q.x, row * inner + k, q.x_dtype) - q.x_zero) *
                               ((const int8_t *)q.w)[trans ? column * inner + k : k * columns + column];
                store_sum(&q, at, column, sum);
        }
        return 0;
}

int sl_ref_quantized_add(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const void *addend = node->n_inputs > 1 && node->inputs[1].dtype != SL_DTYPE_NONE ? binding->inputs[1] : NULL;
        double x_scale = sl_attrs_float(&node->attrs, SL_ATTR_X_SCALE, 1.0);
        int64_t elements = (int64_t)sl_shape_elements(&node->outputs[0].shape);
        struct quantized q;

        read_node(node, binding, &q);
        for (int64_t i = 0; i < elements && sl_pace_on(binding->pace, 1); i++) {
                double value = x_scale * (double)(load_byte(q.x, i, q.x_dtype) - q.x_zero);

                if (addend)
                        value += q.addend_scale * (double)(load_byte(addend, i, q.addend_dtype) - q.addend_zero);
                store_real(&q, i, value);
        }
        return 0;
}
