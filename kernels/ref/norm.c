/* SPDX-License-Identifier: Apache-2.0 */
#include "element.h"
#include "epilogue.h"
#include "kernels.h"
#include "walk.h"

/* Mean and variance of @count elements from @at on. */
static void moments(
        struct sl_pace *pace, const void *data, int64_t at, int64_t count, uint32_t dtype, double *ret_mean, double *ret_variance)
{
        double sum = 0, squares = 0, mean;

        for (int64_t i = 0; i < count && sl_pace_on(pace, 1); i++)
                sum += sl_ref_load(data, at + i, dtype);
        mean = sum / (double)count;
        for (int64_t i = 0; i < count && sl_pace_on(pace, 1); i++) {
                double distance = sl_ref_load(data, at + i, dtype) - mean;

                squares += distance * distance;
        }
        *ret_mean = mean;
        *ret_variance = squares / (double)count;
}

static int64_t product(const struct sl_shape *shape, uint32_t from, uint32_t to)
{
        int64_t elements = 1;

        for (uint32_t i = from; i < to; i++)
                elements *= shape->dims[i];
        return elements;
}

/* @size elements of channel @c, from @from of input @input on to @to of the output. The statistics are the last four inputs. */
static void scale_plane(const struct sl_node_desc *node, const struct sl_binding *binding, int64_t c, uint32_t input, int64_t from,
        int64_t to, int64_t size)
{
        double epsilon = sl_attrs_float(&node->attrs, SL_ATTR_EPSILON, 1e-5), statistics[4];
        uint32_t dtype = node->inputs[0].dtype, first = node->n_inputs - 4;

        for (uint32_t i = 0; i < 4; i++)
                statistics[i] = sl_ref_load(binding->inputs[first + i], c, node->inputs[first + i].dtype);
        for (int64_t i = 0; i < size && sl_pace_on(binding->pace, 1); i++) {
                double distance = sl_ref_load(binding->inputs[input], from + i, dtype) - statistics[2];

                sl_ref_store(binding->outputs[0], to + i, dtype,
                        sl_ref_activate(&node->epilogue, distance / sqrt(statistics[3] + epsilon) * statistics[0] + statistics[1]));
        }
}

/* One input or several, side by side along the channels. */
int sl_ref_normalized_concat(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *shape = &node->outputs[0].shape;
        int64_t size = product(shape, 2, shape->rank), first = 0;

        for (uint32_t i = 0; i + 4 < node->n_inputs; i++) {
                int64_t channels = node->inputs[i].shape.dims[1];

                for (int64_t n = 0; n < shape->dims[0]; n++)
                        for (int64_t c = 0; c < channels && sl_pace_on(binding->pace, 1); c++)
                                scale_plane(node, binding, first + c, i, (n * channels + c) * size,
                                        (n * shape->dims[1] + first + c) * size, size);
                first += channels;
        }
        return 0;
}

int sl_ref_batch_norm(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        return sl_ref_normalized_concat(node, binding);
}

int sl_ref_instance_norm(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *shape = &node->inputs[0].shape;
        int64_t channels = shape->dims[1], size = product(shape, 2, shape->rank);
        double epsilon = sl_attrs_float(&node->attrs, SL_ATTR_EPSILON, 1e-5);
        uint32_t dtype = node->inputs[0].dtype;

        for (int64_t plane = 0; plane < shape->dims[0] * channels && sl_pace_on(binding->pace, 1); plane++) {
                double scale = sl_ref_load(binding->inputs[1], plane % channels, node->inputs[1].dtype);
                double shift = sl_ref_load(binding->inputs[2], plane % channels, node->inputs[2].dtype);
                double mean, variance;

                moments(binding->pace, binding->inputs[0], plane * size, size, dtype, &mean, &variance);
                for (int64_t i = plane * size; i < (plane + 1) * size && sl_pace_on(binding->pace, 1); i++) {
                        double x = sl_ref_load(binding->inputs[0], i, dtype);

                        sl_ref_store(binding->outputs[0], i, dtype, (x - mean) / sqrt(variance + epsilon) * scale + shift);
                }
        }
        return 0;
}

int sl_ref_layer_norm(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *shape = &node->inputs[0].shape;
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1);
        uint32_t first = (uint32_t)(axis < 0 ? axis + shape->rank : axis), dtype = node->inputs[0].dtype;
        int64_t size = product(shape, first, shape->rank), i = 0;
        double epsilon = sl_attrs_float(&node->attrs, SL_ATTR_EPSILON, 1e-5), mean = 0, variance = 0;
        bool shifted = node->n_inputs > 2 && node->inputs[2].dtype != SL_DTYPE_NONE;
        struct sl_ref_walk walk;

        sl_ref_walk_init(&walk, shape, 2, binding->pace);
        sl_ref_walk_broadcast(&walk, 0, &node->inputs[1].shape);
        if (shifted)
                sl_ref_walk_broadcast(&walk, 1, &node->inputs[2].shape);
        for (; walk.left; sl_ref_walk_next(&walk), i++) {
                double x = sl_ref_load(binding->inputs[0], i, dtype);

                if (i % size == 0) {
                        moments(binding->pace, binding->inputs[0], i, size, dtype, &mean, &variance);
                        if (node->n_outputs > 1)
                                sl_ref_store(binding->outputs[1], i / size, node->outputs[1].dtype, mean);
                        if (node->n_outputs > 2)
                                sl_ref_store(binding->outputs[2], i / size, node->outputs[2].dtype, 1 / sqrt(variance + epsilon));
                }
                x = (x - mean) / sqrt(variance + epsilon) * sl_ref_load(binding->inputs[1], walk.offsets[0], node->inputs[1].dtype);
                if (shifted)
                        x += sl_ref_load(binding->inputs[2], walk.offsets[1], node->inputs[2].dtype);
                sl_ref_store(binding->outputs[0], i, dtype, x);
        }
        return 0;
}

int sl_ref_lrn(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *shape = &node->inputs[0].shape;
        int64_t channels = shape->dims[1], inner = product(shape, 2, shape->rank), total = shape->dims[0] * channels * inner;
        int64_t size = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 1), before = (size - 1) / 2, after = size / 2;
        double alpha = sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1e-4), beta = sl_attrs_float(&node->attrs, SL_ATTR_BETA, 0.75);
        double bias = sl_attrs_float(&node->attrs, SL_ATTR_VALUE, 1);
        uint32_t dtype = node->inputs[0].dtype;

        for (int64_t i = 0; i < total && sl_pace_on(binding->pace, 1); i++) {
                int64_t channel = i / inner % channels;
                int64_t first = channel < before ? -channel : -before;
                int64_t last = channels - 1 - channel < after ? channels - 1 - channel : after;
                double squares = 0;

                for (int64_t k = first; k <= last && sl_pace_on(binding->pace, 1); k++) {
                        double x = sl_ref_load(binding->inputs[0], i + k * inner, dtype);

                        squares += x * x;
                }
                double x = sl_ref_load(binding->inputs[0], i, dtype);
                sl_ref_store(binding->outputs[0], i, dtype, x / pow(bias + alpha / (double)size * squares, beta));
        }
        return 0;
}
