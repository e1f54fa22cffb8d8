/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations beside those of norm.c: over one axis, over groups of channels, and over what the axes say. */
#include "element.h"
#include "kernels.h"
#include "walk.h"

static int64_t product(const struct sl_shape *shape, uint32_t from, uint32_t to)
{
        int64_t elements = 1;

        for (uint32_t i = from; i < to; i++)
                elements *= shape->dims[i];
        return elements;
}

/* Elements of a column along an axis: at + k * step for k below size. */
struct column {
        int64_t outer, inner, size;
};

static struct column column_of(const struct sl_node_desc *node)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1);
        uint32_t at = (uint32_t)(axis < 0 ? axis + in->rank : axis);

        return (struct column){product(in, 0, at), product(in, at + 1, in->rank), in->dims[at]};
}

int sl_ref_hardmax(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct column c = column_of(node);
        uint32_t dtype = node->inputs[0].dtype;

        for (int64_t i = 0; i < c.outer * c.inner && sl_pace_on(binding->pace, 1); i++) {
                int64_t first = i / c.inner * c.size * c.inner + i % c.inner, best = 0;

                for (int64_t k = 1; k < c.size && sl_pace_on(binding->pace, 1); k++)
                        if (sl_ref_load(binding->inputs[0], first + k * c.inner, dtype) >
                                sl_ref_load(binding->inputs[0], first + best * c.inner, dtype))
                                best = k;
                for (int64_t k = 0; k < c.size && sl_pace_on(binding->pace, 1); k++)
                        sl_ref_store(binding->outputs[0], first + k * c.inner, dtype, k == best);
        }
        return 0;
}

int sl_ref_lp_norm(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct column c = column_of(node);
        uint32_t dtype = node->inputs[0].dtype;
        bool absolute = sl_attrs_int(&node->attrs, SL_ATTR_P, 2) == 1;

        for (int64_t i = 0; i < c.outer * c.inner && sl_pace_on(binding->pace, 1); i++) {
                int64_t first = i / c.inner * c.size * c.inner + i % c.inner;
                double norm = 0;

                for (int64_t k = 0; k < c.size && sl_pace_on(binding->pace, 1); k++) {
                        double x = sl_ref_load(binding->inputs[0], first + k * c.inner, dtype);

                        norm += absolute ? fabs(x) : x * x;
                }
                norm = absolute ? norm : sqrt(norm);
                for (int64_t k = 0; k < c.size && sl_pace_on(binding->pace, 1); k++) {
                        double x = sl_ref_load(binding->inputs[0], first + k * c.inner, dtype);

                        sl_ref_store(binding->outputs[0], first + k * c.inner, dtype, norm == 0 ? 0 : x / norm);
                }
        }
        return 0;
}

int sl_ref_rms_norm(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *shape = &node->inputs[0].shape;
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), i = 0;
        int64_t size = product(shape, (uint32_t)(axis < 0 ? axis + shape->rank : axis), shape->rank);
        double epsilon = sl_attrs_float(&node->attrs, SL_ATTR_EPSILON, 1e-5), factor = 0;
        uint32_t dtype = node->inputs[0].dtype;
        struct sl_ref_walk walk;

        sl_ref_walk_init(&walk, shape, 1, binding->pace);
        sl_ref_walk_broadcast(&walk, 0, &node->inputs[1].shape);
        for (; walk.left; sl_ref_walk_next(&walk), i++) {
                double squares = 0;

                for (int64_t k = 0; k < size && i % size == 0 && sl_pace_on(binding->pace, 1); k++) {
                        double x = sl_ref_load(binding->inputs[0], i + k, dtype);

                        squares += x * x;
                }
                if (i % size == 0)
                        factor = 1 / sqrt(squares / (double)size + epsilon);
                sl_ref_store(binding->outputs[0], i, node->outputs[0].dtype,
                        sl_ref_load(binding->inputs[0], i, dtype) * factor *
                                sl_ref_load(binding->inputs[1], walk.offsets[0], node->inputs[1].dtype));
        }
        return 0;
}

/* Of @count elements from @at on. */
static void moments(
        struct sl_pace *pace, const void *data, int64_t at, int64_t count, uint32_t dtype, double *ret_mean, double *ret_variance)
{
        double sum = 0, squares = 0;

        for (int64_t i = 0; i < count && sl_pace_on(pace, 1); i++)
                sum += sl_ref_load(data, at + i, dtype);
        *ret_mean = sum / (double)count;
        for (int64_t i = 0; i < count && sl_pace_on(pace, 1); i++) {
                double distance = sl_ref_load(data, at + i, dtype) - *ret_mean;

                squares += distance * distance;
        }
        *ret_variance = squares / (double)count;
}

/* Scale and shift are per channel, or (opset 18) per group. */
int sl_ref_group_norm(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        int64_t groups = sl_attrs_int(&node->attrs, SL_ATTR_NUM_GROUPS, 1), channels = in->dims[1] / groups;
        int64_t inner = product(in, 2, in->rank), size = channels * inner;
        bool by_channel = node->inputs[1].shape.dims[0] == in->dims[1];
        double epsilon = sl_attrs_float(&node->attrs, SL_ATTR_EPSILON, 1e-5);
        uint32_t dtype = node->inputs[0].dtype;

        for (int64_t g = 0; g < in->dims[0] * groups && size && sl_pace_on(binding->pace, 1); g++) {
                double mean, variance;

                moments(binding->pace, binding->inputs[0], g * size, size, dtype, &mean, &variance);
                for (int64_t i = 0; i < size && sl_pace_on(binding->pace, 1); i++) {
                        int64_t at = by_channel ? g % groups * channels + i / inner : g % groups;
                        double x = (sl_ref_load(binding->inputs[0], g * size + i, dtype) - mean) / sqrt(variance + epsilon);

                        sl_ref_store(binding->outputs[0], g * size + i, dtype,
                                x * sl_ref_load(binding->inputs[1], at, node->inputs[1].dtype) +
                                        sl_ref_load(binding->inputs[2], at, node->inputs[2].dtype));
                }
        }
        return 0;
}

/* Bit i of @mask: dimension i is reduced. The two walks are over the dimensions that stay, and within over those that go. */
int sl_ref_mean_variance_norm(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        const struct sl_attr *axes = sl_attrs_find(&node->attrs, SL_ATTR_AXES);
        int64_t strides[SL_RANK_MAX], usual[] = {0, 2, 3};
        uint32_t count = axes ? axes->count : 3, dtype = node->inputs[0].dtype;
        struct sl_shape stays = *in, goes = *in;
        struct sl_ref_walk outer, inner;

        for (uint32_t i = 0; i < in->rank; i++)
                goes.dims[i] = 1;
        for (uint32_t i = 0; i < count; i++) {
                int64_t axis = axes ? axes->ints[i] : usual[i];

                axis += axis < 0 ? in->rank : 0;
                goes.dims[axis] = in->dims[axis];
                stays.dims[axis] = 1;
        }
        sl_tensor_strides(&node->inputs[0], strides);
        sl_ref_walk_init(&outer, &stays, 1, binding->pace);
        sl_ref_walk_strides(&outer, 0, strides);
        sl_ref_walk_init(&inner, &goes, 1, binding->pace);
        sl_ref_walk_strides(&inner, 0, strides);
        for (; outer.left; sl_ref_walk_next(&outer)) {
                double n = (double)sl_shape_elements(&goes), sum = 0, squares = 0, deviation;

                for (sl_ref_walk_rewind(&inner); inner.left; sl_ref_walk_next(&inner))
                        sum += sl_ref_load(binding->inputs[0], outer.offsets[0] + inner.offsets[0], dtype);
                for (sl_ref_walk_rewind(&inner); inner.left; sl_ref_walk_next(&inner)) {
                        double x = sl_ref_load(binding->inputs[0], outer.offsets[0] + inner.offsets[0], dtype) - sum / n;

                        squares += x * x;
                }
                deviation = sqrt(squares / n) + 1e-9;
                for (sl_ref_walk_rewind(&inner); inner.left; sl_ref_walk_next(&inner)) {
                        int64_t at = outer.offsets[0] + inner.offsets[0];

                        sl_ref_store(
                                binding->outputs[0], at, dtype, (sl_ref_load(binding->inputs[0], at, dtype) - sum / n) / deviation);
                }
        }
        return 0;
}
