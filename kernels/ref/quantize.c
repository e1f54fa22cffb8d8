/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers in few bits. What ONNX says in single precision (a division by the scale, a product of scales) is done in single
 * precision, so that ties round as they do elsewhere; sums of products are exact.
 */
#include "shape/quantize.h"

#include "element.h"
#include "kernels.h"
#include "span.h"
#include "walk.h"

static int64_t load_integer(const void *data, int64_t i, uint32_t dtype)
{
        return data ? (int64_t)sl_ref_load_bits(data, i, dtype) : 0;
}

static const void *optional(const struct sl_node_desc *node, const struct sl_binding *binding, uint32_t index)
{
        return index < node->n_inputs && node->inputs[index].dtype != SL_DTYPE_NONE ? binding->inputs[index] : NULL;
}

/* Floats of 8 bits are no integers before they are rounded; a zero point moves them as any number. */
static void store_small(const struct sl_node_desc *node, const struct sl_binding *binding, int64_t i, double value)
{
        ((uint8_t *)binding->outputs[0])[i] =
                sl_ref_to_small(value, node->outputs[0].dtype, sl_attrs_int(&node->attrs, SL_ATTR_SATURATE, 1), SL_REF_ROUND_UP);
}

/* Nearest, ties to even; then the type's limits. A NaN is the least, as with ONNX Runtime and ONNX's reference. */
static void store_rounded(void *out, int64_t i, uint32_t dtype, double value, int64_t zero)
{
        if (sl_dtype_is_float(dtype))
                sl_ref_store(out, i, dtype, value);
        else if (isnan(value))
                sl_ref_store_bits(out, i, dtype, sl_ref_saturate((double)-INFINITY, dtype));
        else
                sl_ref_store_bits(out, i, dtype, sl_ref_saturate(nearbyint(value) + (double)zero, dtype));
}

int sl_ref_quantize(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t n = (int64_t)sl_shape_elements(&node->inputs[0].shape);
        const void *zero = optional(node, binding, 2);
        uint32_t from = node->inputs[0].dtype, to = node->outputs[0].dtype;
        bool is_small_float = sl_dtype_is_small(to) && sl_dtype_is_float(to);
        struct sl_scales scales = {.block = 0};

        sl_scales_read(node, &scales, NULL);
        for (int64_t i = 0; i < n && sl_pace_on(binding->pace, 1); i++) {
                int64_t at = sl_scale_of(&scales, i);
                double x = sl_ref_load(binding->inputs[0], i, from);
                double scale = sl_ref_load(binding->inputs[1], at, node->inputs[1].dtype);

                x = from == SL_DTYPE_F64 ? x / scale : (double)((float)x / (float)scale);
                if (is_small_float)
                        store_small(node, binding, i, x + (zero ? sl_ref_load(zero, at, to) : 0));
                else
                        store_rounded(binding->outputs[0], i, to, x, sl_dtype_is_float(to) ? 0 : load_integer(zero, at, to));
        }
        return 0;
}

int sl_ref_dequantize(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t n = (int64_t)sl_shape_elements(&node->inputs[0].shape);
        const void *zero = optional(node, binding, 2);
        uint32_t from = node->inputs[0].dtype;
        struct sl_scales scales = {.block = 0};

        sl_scales_read(node, &scales, NULL);
        for (int64_t i = 0; i < n && sl_pace_on(binding->pace, 1); i++) {
                int64_t at = sl_scale_of(&scales, i);
                double x = sl_ref_load(binding->inputs[0], i, from) - (zero ? sl_ref_load(zero, at, from) : 0);

                sl_ref_store(binding->outputs[0], i, node->outputs[0].dtype,
                        x * sl_ref_load(binding->inputs[1], at, node->inputs[1].dtype));
        }
        return 0;
}

int sl_ref_dynamic_quantize(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t n = (int64_t)sl_shape_elements(&node->inputs[0].shape);
        const float *x = binding->inputs[0];
        float least = 0, most = 0, scale;
        int64_t zero;

        for (int64_t i = 0; i < n && sl_pace_on(binding->pace, 1); i++) {
                least = x[i] < least ? x[i] : least;
                most = x[i] > most ? x[i] : most;
        }
        scale = (most - least) / 255;
        zero = (int64_t)(scale > 0 ? sl_ref_saturate((double)nearbyintf(-least / scale), SL_DTYPE_U8) : 0);
        for (int64_t i = 0; i < n && sl_pace_on(binding->pace, 1); i++)
                store_rounded(binding->outputs[0], i, SL_DTYPE_U8, scale > 0 ? (double)(x[i] / scale) : 0, zero);
        if (node->n_outputs > 1)
                *(float *)binding->outputs[1] = scale;
        if (node->n_outputs > 2)
                *(uint8_t *)binding->outputs[2] = (uint8_t)zero;
        return 0;
}

/* One number for all, or one for each. */
static int64_t place(const struct sl_tensor *tensor, int64_t i)
{
        return tensor->shape.rank && tensor->shape.dims[0] > 1 ? i : 0;
}

/* The operands of a product: where the tensors and their zero points lie among the inputs, and the scales if there are any. */
struct operands {
        const struct sl_node_desc *node;
        const struct sl_binding *binding;
        uint32_t a, a_zero, b, b_zero;
        bool requantizes; /* a_zero - 1 and b_zero - 1 are scales, 6 and 7 those of the result */
};

static struct operands operands_of(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        bool requantizes = node->op == SL_OP_QLINEAR_MATMUL || node->op == SL_OP_QLINEAR_CONV;

        if (requantizes)
                return (struct operands){node, binding, 0, 2, 3, 5, true};
        return (struct operands){node, binding, 0, 2, 1, 3, false};
}

static int64_t zero_of(const struct operands *o, uint32_t input, int64_t i)
{
        const void *zero = optional(o->node, o->binding, input);

        return zero ? load_integer(zero, place(&o->node->inputs[input], i), o->node->inputs[input].dtype) : 0;
}

static double scale_of(const struct operands *o, uint32_t input, int64_t i)
{
        return sl_ref_load(o->binding->inputs[input], place(&o->node->inputs[input], i), o->node->inputs[input].dtype);
}

/* @sum is that of row @i and column (or filter) @j. */
static void finish(const struct operands *o, int64_t at, int64_t i, int64_t j, int64_t sum)
{
        uint32_t dtype = o->node->outputs[0].dtype;
        float factor;

        if (!o->requantizes) {
                sl_ref_store_bits(o->binding->outputs[0], at, dtype, (uint64_t)sum);
                return;
        }
        factor = (float)scale_of(o, o->a_zero - 1, i) * (float)scale_of(o, o->b_zero - 1, j) / (float)scale_of(o, 6, 0);
        store_rounded(o->binding->outputs[0], at, dtype, (double)((float)sum * factor), zero_of(o, 7, 0));
}

/* One product of matrices; strides as in a dense matrix. */
static void multiply(
        const struct operands *o, int64_t rows, int64_t columns, int64_t inner, int64_t a_at, int64_t b_at, int64_t y_at)
{
        uint32_t a_type = o->node->inputs[o->a].dtype, b_type = o->node->inputs[o->b].dtype;

        for (int64_t i = 0; i < rows && sl_pace_on(o->binding->pace, 1); i++)
                for (int64_t j = 0; j < columns && sl_pace_on(o->binding->pace, 1); j++) {
                        int64_t a_zero = zero_of(o, o->a_zero, i), b_zero = zero_of(o, o->b_zero, j), sum = 0;

                        for (int64_t k = 0; k < inner && sl_pace_on(o->binding->pace, 1); k++)
                                sum += (load_integer(o->binding->inputs[o->a], a_at + i * inner + k, a_type) - a_zero) *
                                       (load_integer(o->binding->inputs[o->b], b_at + k * columns + j, b_type) - b_zero);
                        finish(o, y_at + i * columns + j, i, j, sum);
                }
}

int sl_ref_matmul_integer(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct operands o = operands_of(node, binding);
        const struct sl_shape *a = &node->inputs[o.a].shape, *b = &node->inputs[o.b].shape;
        int64_t rows = a->rank > 1 ? a->dims[a->rank - 2] : 1, columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
        int64_t inner = a->dims[a->rank - 1], y_at = 0;
        struct sl_shape batch = node->outputs[0].shape, lead_a = *a, lead_b = *b;
        struct sl_ref_walk walk;

        batch.rank -= (a->rank > 1) + (b->rank > 1);
        lead_a.rank = a->rank > 2 ? a->rank - 2 : 0;
        lead_b.rank = b->rank > 2 ? b->rank - 2 : 0;
        sl_ref_walk_init(&walk, &batch, 2, binding->pace);
        sl_ref_walk_broadcast(&walk, 0, &lead_a);
        sl_ref_walk_broadcast(&walk, 1, &lead_b);
        for (; walk.left; sl_ref_walk_next(&walk), y_at += rows * columns)
                multiply(&o, rows, columns, inner, walk.offsets[0] * rows * inner, walk.offsets[1] * inner * columns, y_at);
        return 0;
}

/* The sum under one window: @x_at and @w_at are the first elements of its channels. */
static int64_t window_sum(const struct operands *o, const struct sl_ref_span *span, const struct sl_ref_taps *taps,
        int64_t channels, int64_t x_at, int64_t w_at, int64_t x_zero, int64_t w_zero)
{
        const struct sl_window *w = &span->window;
        int64_t kernel = w->kernel[0] * w->kernel[1] * w->kernel[2], sum = 0;
        uint64_t row = 1 + (uint64_t)(taps->last[2] - taps->first[2]);

        for (int64_t c = 0; c < channels; c++)
                for (int64_t z = taps->first[0]; z < taps->last[0]; z++)
                        for (int64_t y = taps->first[1]; y < taps->last[1] && sl_pace_on(o->binding->pace, row); y++)
                                for (int64_t x = taps->first[2]; x < taps->last[2]; x++) {
                                        int64_t in_z = taps->start[0] + z * w->dilation[0];
                                        int64_t in_y = taps->start[1] + y * w->dilation[1];
                                        int64_t in_x = taps->start[2] + x * w->dilation[2];
                                        int64_t in = x_at + c * span->in_size + (in_z * span->in[1] + in_y) * span->in[2] + in_x;
                                        int64_t at = w_at + c * kernel + (z * w->kernel[1] + y) * w->kernel[2] + x;

                                        sum += (load_integer(o->binding->inputs[o->a], in, o->node->inputs[o->a].dtype) - x_zero) *
                                               (load_integer(o->binding->inputs[o->b], at, o->node->inputs[o->b].dtype) - w_zero);
                                }
        return sum;
}

int sl_ref_conv_integer(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct operands o = operands_of(node, binding);
        const struct sl_shape *x = &node->inputs[o.a].shape, *w = &node->inputs[o.b].shape;
        int64_t filters = w->dims[0], channels = w->dims[1], kernel = 1, x_zero = zero_of(&o, o.a_zero, 0);
        int64_t of_group = filters / sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);
        const int32_t *bias = o.requantizes ? optional(node, binding, 8) : NULL;
        struct sl_ref_span span;

        for (uint32_t i = 2; i < w->rank; i++)
                kernel *= w->dims[i];
        sl_ref_span_read(node, &span);
        for (int64_t plane = 0; plane < x->dims[0] * filters; plane++) {
                int64_t n = plane / filters, m = plane % filters, w_zero = zero_of(&o, o.b_zero, m);
                int64_t first = n * x->dims[1] + m / of_group * channels;

                for (int64_t p = 0; p < span.out_size && sl_pace_on(binding->pace, 1); p++) {
                        struct sl_ref_taps taps;

                        sl_ref_span_at(&span, p, &taps);
                        finish(&o, plane * span.out_size + p, 0, m,
                                (bias ? bias[m] : 0) + window_sum(&o, &span, &taps, channels, first * span.in_size,
                                                               m * channels * kernel, x_zero, w_zero));
                }
        }
        return 0;
}
