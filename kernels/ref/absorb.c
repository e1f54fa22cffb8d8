/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters become attributes once their values are known: while a model is compiled, or node by node while it runs.
 */
#include "absorb.h"

#include "base/error.h"
#include "element.h"

#include <errno.h>
#include <string.h>

struct source {
        const struct sl_tensor *tensor;
        const void *data;
};

static bool is_reduce(uint32_t op)
{
        return (op >= SL_OP_REDUCE_MEAN && op <= SL_OP_REDUCE_LOG_SUM_EXP) || op == SL_OP_REDUCE_LOG_SUM;
}

static int read_ints(const struct source *source, int64_t ints[SL_ATTR_INTS_MAX], uint32_t *ret_count)
{
        uint64_t count = sl_shape_elements(&source->tensor->shape);
        uint32_t dtype = source->tensor->dtype;

        if (source->tensor->shape.rank > 1 || count > SL_ATTR_INTS_MAX)
                return -E2BIG;
        if (dtype != SL_DTYPE_I64 && dtype != SL_DTYPE_I32)
                return -EINVAL;
        for (uint32_t i = 0; i < count; i++)
                ints[i] = (int64_t)sl_ref_load_bits(source->data, i, dtype);
        *ret_count = (uint32_t)count;
        return 0;
}

static int absorb_ints(struct sl_node_desc *node, uint32_t attr, const struct source *source)
{
        int64_t ints[SL_ATTR_INTS_MAX];
        uint32_t count;
        int r = read_ints(source, ints, &count);

        if (r < 0)
                return r;
        /* Empty axes of a reduction mean what absent ones mean. */
        if (!count && is_reduce(node->op))
                return 0;
        return sl_attrs_set_ints(&node->attrs, attr, ints, count);
}

static int absorb_int(struct sl_node_desc *node, uint32_t attr, const struct source *source)
{
        int64_t ints[SL_ATTR_INTS_MAX];
        uint32_t count;
        int r = read_ints(source, ints, &count);

        if (r < 0)
                return r;
        return count == 1 ? sl_attrs_set_int(&node->attrs, attr, ints[0]) : -EINVAL;
}

static int absorb_floats(struct sl_node_desc *node, uint32_t attr, const struct source *source, bool scalar)
{
        uint64_t count = sl_shape_elements(&source->tensor->shape);
        double floats[SL_ATTR_INTS_MAX];

        if (scalar && count != 1)
                return -EINVAL;
        if ((!scalar && source->tensor->shape.rank > 1) || count > SL_ATTR_INTS_MAX)
                return -E2BIG;
        if (!sl_dtype_bytes(source->tensor->dtype))
                return -EINVAL;
        for (uint32_t i = 0; i < count; i++)
                floats[i] = sl_ref_load(source->data, i, source->tensor->dtype);
        return scalar ? sl_attrs_set_float(&node->attrs, attr, floats[0])
                      : sl_attrs_set_floats(&node->attrs, attr, floats, (uint32_t)count);
}

static int absorb_input(struct sl_node_desc *node, uint32_t input, uint32_t attr, const void *data)
{
        struct source source = {&node->inputs[input], data};

        switch (sl_op_parameter_type(node->op, input)) {
        case SL_ATTR_TYPE_INT:
                return absorb_int(node, attr, &source);
        case SL_ATTR_TYPE_FLOAT:
                return absorb_floats(node, attr, &source, true);
        case SL_ATTR_TYPE_FLOATS:
                return absorb_floats(node, attr, &source, false);
        default:
                return absorb_ints(node, attr, &source);
        }
}

/* Pads of some axes become pads of all of them, which is what kernels know. */
static int spread_pads(struct sl_node_desc *node)
{
        const struct sl_attr *axes = sl_attrs_find(&node->attrs, SL_ATTR_AXES), *pads = sl_attrs_find(&node->attrs, SL_ATTR_PADS);
        int64_t all[SL_ATTR_INTS_MAX] = {0};
        uint32_t rank = node->inputs[0].shape.rank, count;

        if (!axes || !pads || node->inputs[0].dtype == SL_DTYPE_NONE)
                return 0;
        count = axes->count;
        if (pads->count != 2 * count)
                return -EINVAL;
        for (uint32_t i = 0; i < count; i++) {
                int64_t axis = axes->ints[i] < 0 ? axes->ints[i] + rank : axes->ints[i];

                if (axis < 0 || axis >= rank)
                        return -EINVAL;
                all[axis] = pads->ints[i];
                all[axis + rank] = pads->ints[i + count];
        }
        sl_attrs_remove(&node->attrs, SL_ATTR_AXES);
        return sl_attrs_set_ints(&node->attrs, SL_ATTR_PADS, all, 2 * rank);
}

static bool any_pending(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE && sl_op_parameter(node->op, i) >= 0)
                        return true;
        return false;
}

int sl_op_absorb(struct sl_node_desc *node, const void *const *data, struct sl_error *error)
{
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                int attr = data[i] && node->inputs[i].dtype != SL_DTYPE_NONE ? sl_op_parameter(node->op, i) : -ENOENT;
                int r = attr < 0 ? 0 : absorb_input(node, i, (uint32_t)attr, data[i]);

                if (r < 0)
                        return sl_error_set(error, -r, "its %s has a wrong type, rank or length (at most %d)",
                                sl_attr_name((uint32_t)attr), SL_ATTR_INTS_MAX);
                if (attr >= 0)
                        node->inputs[i] = (struct sl_tensor){0};
        }
        while (node->n_inputs > 0 && node->inputs[node->n_inputs - 1].dtype == SL_DTYPE_NONE)
                node->n_inputs--;
        if (node->op == SL_OP_PAD && !any_pending(node) && spread_pads(node) < 0)
                return sl_error_set(error, EINVAL, "its pads and axes do not fit the rank");
        return 0;
}
