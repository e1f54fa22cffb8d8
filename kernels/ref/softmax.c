/* SPDX-License-Identifier: Apache-2.0 */
#include "element.h"
#include "kernels.h"

/* One line of @count elements, @stride apart. Reads an element before it writes it: the output may be the input. */
static void softmax_line(
        struct sl_pace *pace, const void *in, void *out, int64_t at, int64_t count, int64_t stride, uint32_t dtype, bool logarithm)
{
        double largest = -(double)INFINITY, sum = 0;

        for (int64_t i = 0; i < count && sl_pace_on(pace, 1); i++)
                largest = fmax(largest, sl_ref_load(in, at + i * stride, dtype));
        for (int64_t i = 0; i < count && sl_pace_on(pace, 1); i++)
                sum += exp(sl_ref_load(in, at + i * stride, dtype) - largest);
        for (int64_t i = 0; i < count && sl_pace_on(pace, 1); i++) {
                double x = sl_ref_load(in, at + i * stride, dtype) - largest;

                sl_ref_store(out, at + i * stride, dtype, logarithm ? x - log(sum) : exp(x) / sum);
        }
}

int sl_ref_softmax(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *shape = &node->inputs[0].shape;
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), outer = 1, inner = 1;

        axis += axis < 0 ? shape->rank : 0;
        for (uint32_t i = 0; i < axis; i++)
                outer *= shape->dims[i];
        for (uint32_t i = (uint32_t)axis + 1; i < shape->rank; i++)
                inner *= shape->dims[i];
        for (int64_t o = 0; o < outer && sl_pace_on(binding->pace, 1); o++)
                for (int64_t i = 0; i < inner && sl_pace_on(binding->pace, 1); i++)
                        softmax_line(binding->pace, binding->inputs[0], binding->outputs[0], o * shape->dims[axis] * inner + i,
                                shape->dims[axis], inner, node->inputs[0].dtype, node->op == SL_OP_LOG_SOFTMAX);
        return 0;
}
