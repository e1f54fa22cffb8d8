/* SPDX-License-Identifier: Apache-2.0 */
/* TopK, NonMaxSuppression, running sums. */
#include "cuda/own/builder.h"

#include <errno.h>

#define SORTED_MAX 2048 /* keys of 8 bytes, which every multiprocessor has shared memory for */

static uint64_t power_of_two(uint64_t least)
{
        uint64_t n = 2;

        while (n < least)
                n *= 2;
        return n;
}

/* Lines along the axis: their number and how far their elements are apart. */
static uint64_t lines_along(const struct sl_shape *shape, uint32_t axis, uint64_t *ret_inner)
{
        uint64_t lines = 1;

        *ret_inner = 1;
        for (uint32_t d = 0; d < shape->rank; d++) {
                lines *= d == axis ? 1 : (uint64_t)shape->dims[d];
                *ret_inner *= d > axis ? (uint64_t)shape->dims[d] : 1;
        }
        return lines;
}

/* Values of 64 bits have no key of 32. */
static bool has_key(uint32_t dtype)
{
        return sl_own_is_float(dtype) || (!sl_dtype_is_float(dtype) && sl_dtype_bytes(dtype) <= 4 && dtype != SL_DTYPE_BOOL);
}

int sl_own_plan_top_k(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_tensor *in = &node->inputs[0];
        uint32_t axis = sl_own_axis(node, -1);
        uint64_t k = (uint64_t)sl_attrs_int(&node->attrs, SL_ATTR_K, 0), size = (uint64_t)in->shape.dims[axis], inner, lines;
        struct sl_own_top_k a = {.dtype = in->dtype,
                .bytes = (uint32_t)sl_dtype_bytes(in->dtype),
                .largest = sl_attrs_int(&node->attrs, SL_ATTR_LARGEST, 1) != 0,
                .size = (uint32_t)size,
                .k = (uint32_t)k};
        struct sl_own_launch *launch;

        /* Half of the keys at least are new in each turn. */
        if (!has_key(in->dtype) || in->layout != SL_LAYOUT_PLAIN || (size > SORTED_MAX && k > SORTED_MAX / 2))
                return -ENOTSUP;
        lines = lines_along(&in->shape, axis, &inner);
        a.lines = (uint32_t)lines;
        a.inner = sl_own_divide_by(inner);
        a.sorted = (uint32_t)power_of_two(size < SORTED_MAX ? size : SORTED_MAX);
        launch = sl_own_add(builder, SL_OWN_KERNEL_top_k, &a, sizeof(a), lines * SL_OWN_BLOCK);
        launch->shared_bytes = a.sorted * (uint32_t)sizeof(uint64_t);
        sl_own_slot(launch, offsetof(struct sl_own_top_k, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_top_k, in), SL_OWN_INPUT, 0, 0);
        if (node->n_outputs > 1)
                sl_own_slot(launch, offsetof(struct sl_own_top_k, places), SL_OWN_OUTPUT, 1, 0);
        return 0;
}

int sl_own_plan_cum_sum(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_tensor *in = &node->inputs[0];
        uint32_t axis = sl_own_axis(node, 0);
        uint64_t inner, lines = lines_along(&in->shape, axis, &inner);
        struct sl_own_cum_sum a = {.lines = (uint32_t)lines,
                .size = (uint32_t)in->shape.dims[axis],
                .dtype = in->dtype,
                .exclusive = sl_attrs_int(&node->attrs, SL_ATTR_EXCLUSIVE, 0) != 0,
                .reverse = sl_attrs_int(&node->attrs, SL_ATTR_REVERSE, 0) != 0,
                .inner = sl_own_divide_by(inner)};
        struct sl_own_launch *launch;

        if ((sl_dtype_is_float(in->dtype) && !sl_own_is_float(in->dtype)) || in->dtype == SL_DTYPE_BOOL ||
                in->layout != SL_LAYOUT_PLAIN)
                return -ENOTSUP;
        launch = sl_own_add(builder, SL_OWN_KERNEL_cum_sum, &a, sizeof(a), lines);
        sl_own_slot(launch, offsetof(struct sl_own_cum_sum, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_cum_sum, in), SL_OWN_INPUT, 0, 0);
        return 0;
}

static void add_nms_slots(struct sl_own_launch *launch, const struct sl_node_desc *node, const uint64_t scratch[4])
{
        sl_own_slot(launch, offsetof(struct sl_own_nms, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_nms, made), SL_OWN_MADE, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_nms, boxes), SL_OWN_INPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_nms, scores), SL_OWN_INPUT, 1, 0);
        if (sl_own_is_there(node, 3))
                sl_own_slot(launch, offsetof(struct sl_own_nms, overlap), SL_OWN_INPUT, 3, 0);
        if (sl_own_is_there(node, 4))
                sl_own_slot(launch, offsetof(struct sl_own_nms, least), SL_OWN_INPUT, 4, 0);
        sl_own_slot(launch, offsetof(struct sl_own_nms, keys), SL_OWN_SCRATCH, 0, scratch[0]);
        sl_own_slot(launch, offsetof(struct sl_own_nms, kept), SL_OWN_SCRATCH, 0, scratch[1]);
        sl_own_slot(launch, offsetof(struct sl_own_nms, counts), SL_OWN_SCRATCH, 0, scratch[2]);
        sl_own_slot(launch, offsetof(struct sl_own_nms, suppressed), SL_OWN_SCRATCH, 0, scratch[3]);
}

int sl_own_plan_non_max_suppression(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const int64_t *dims = node->inputs[1].shape.dims;
        uint64_t all = (uint64_t)(dims[0] * dims[1]), n = (uint64_t)dims[2];
        int64_t most = sl_attrs_int(&node->attrs, SL_ATTR_MAX_BOXES, 0);
        struct sl_own_nms a = {.n_boxes = (uint32_t)n,
                .padded = (uint32_t)power_of_two(n),
                .most = (uint32_t)(most < 0 ? 0 : (uint64_t)most < n ? (uint64_t)most : n),
                .room = (uint32_t)node->outputs[0].shape.dims[0],
                .centred = sl_attrs_int(&node->attrs, SL_ATTR_CENTER_POINT_BOX, 0) != 0,
                .n_all = (uint32_t)all,
                .classes = sl_own_divide_by((uint64_t)dims[1])};
        struct sl_own_launch *launch;
        uint64_t scratch[4];

        if (node->inputs[0].dtype != SL_DTYPE_F32 || node->inputs[1].dtype != SL_DTYPE_F32 || all * a.padded > INT32_MAX)
                return -ENOTSUP;
        scratch[0] = sl_own_scratch(builder, all * a.padded * sizeof(uint64_t));
        scratch[1] = sl_own_scratch(builder, all * a.most * sizeof(uint32_t));
        scratch[2] = sl_own_scratch(builder, all * sizeof(uint32_t));
        scratch[3] = sl_own_scratch(builder, all * n);
        if (all) {
                launch = sl_own_add(builder, SL_OWN_KERNEL_nms, &a, sizeof(a), all * SL_OWN_BLOCK);
                add_nms_slots(launch, node, scratch);
        }
        launch = sl_own_add(builder, SL_OWN_KERNEL_nms_rows, &a, sizeof(a), SL_OWN_BLOCK);
        add_nms_slots(launch, node, scratch);
        return 0;
}
