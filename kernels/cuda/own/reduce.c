/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, global pools among them: the dimensions that stay and those that go. */
#include "shape/reduce.h"

#include "cuda/own/builder.h"

#include <errno.h>

#define FEW_RESULTS 4096 /* threads that would leave most of a GPU idle: then many share a result, whatever their order in memory  \
                          */
#define MANY        64

static const int kinds[SL_OP_COUNT] = {
        [SL_OP_REDUCE_SUM] = 1 + SL_OWN_REDUCE_SUM,
        [SL_OP_REDUCE_MEAN] = 1 + SL_OWN_REDUCE_MEAN,
        [SL_OP_REDUCE_MAX] = 1 + SL_OWN_REDUCE_MAX,
        [SL_OP_REDUCE_MIN] = 1 + SL_OWN_REDUCE_MIN,
        [SL_OP_REDUCE_PROD] = 1 + SL_OWN_REDUCE_PROD,
        [SL_OP_REDUCE_L1] = 1 + SL_OWN_REDUCE_L1,
        [SL_OP_REDUCE_L2] = 1 + SL_OWN_REDUCE_L2,
        [SL_OP_REDUCE_SUM_SQUARE] = 1 + SL_OWN_REDUCE_SUM_SQUARE,
        [SL_OP_REDUCE_LOG_SUM] = 1 + SL_OWN_REDUCE_LOG_SUM,
        [SL_OP_REDUCE_LOG_SUM_EXP] = 1 + SL_OWN_REDUCE_LOG_SUM_EXP,
        [SL_OP_GLOBAL_AVERAGE_POOL] = 1 + SL_OWN_REDUCE_MEAN,
        [SL_OP_GLOBAL_MAX_POOL] = 1 + SL_OWN_REDUCE_MAX,
        [SL_OP_GLOBAL_LP_POOL] = 1 + SL_OWN_REDUCE_POWERS,
};

uint32_t sl_own_group(uint64_t size, bool in_a_row)
{
        if (!in_a_row || size <= 4)
                return 1;
        return size > 1024 ? 256 : 32;
}

/* The dimensions of @in that are in @mask, or those that are not; the innermost in memory last where @mask has them. */
static void box_of_mask(const struct sl_tensor *in, uint32_t mask, bool goes, struct sl_own_box *ret_box)
{
        int64_t strides[SL_RANK_MAX];

        sl_tensor_strides(in, strides);
        *ret_box = (struct sl_own_box){.n_tensors = 1};
        for (uint32_t d = 0; d < in->shape.rank; d++) {
                uint32_t at = goes ? sl_own_dimension_at(in, d) : d;

                if ((mask >> at & 1) != goes)
                        continue;
                ret_box->sizes[ret_box->rank] = in->shape.dims[at];
                ret_box->strides[0][ret_box->rank++] = strides[at];
        }
        sl_own_collapse(ret_box);
}

static uint32_t fill_dims(const struct sl_own_box *box, struct sl_own_divisor *ret_dims, uint32_t *ret_strides)
{
        for (uint32_t d = 0; d < box->rank; d++) {
                ret_dims[d] = sl_own_divide_by((uint64_t)box->sizes[box->rank - 1 - d]);
                ret_strides[d] = (uint32_t)box->strides[0][box->rank - 1 - d];
        }
        return box->rank;
}

static uint64_t size_of(const struct sl_own_box *box)
{
        uint64_t size = 1;

        for (uint32_t d = 0; d < box->rank; d++)
                size *= (uint64_t)box->sizes[d];
        return size;
}

static uint32_t vector_of(const struct sl_own_box *stays, const struct sl_own_box *goes, uint32_t dtype)
{
        int64_t wide = 16 / (int64_t)sl_dtype_bytes(dtype);

        if (goes->rank > 1 || goes->strides[0][0] != 1 || goes->sizes[0] % wide)
                return 1;
        for (uint32_t d = 0; d < stays->rank; d++)
                if (stays->strides[0][d] % wide)
                        return 1;
        return (uint32_t)wide;
}

static void set_boxes(struct sl_own_reduce *a, const struct sl_own_box *stays, const struct sl_own_box *goes)
{
        a->results = (uint32_t)size_of(stays);
        a->count = (uint32_t)size_of(goes);
        a->n_stays = fill_dims(stays, a->stays, a->stay_strides);
        a->n_goes = fill_dims(goes, a->goes, a->go_strides);
}

static void add_reduce(
        struct sl_own_builder *builder, const struct sl_node_desc *node, uint32_t kernel, struct sl_own_reduce *a, uint32_t mask)
{
        struct sl_own_box stays, goes;
        struct sl_own_launch *launch;

        box_of_mask(&node->inputs[0], mask, false, &stays);
        box_of_mask(&node->inputs[0], mask, true, &goes);
        a->dtype = node->inputs[0].dtype;
        set_boxes(a, &stays, &goes);
        a->vector = vector_of(&stays, &goes, a->dtype);
        a->group = sl_own_group(a->count, goes.strides[0][goes.rank - 1] == 1);
        if (a->group == 1 && a->results < FEW_RESULTS && a->count > MANY)
                a->group = 32;
        if (kernel == SL_OWN_KERNEL_reduce_integers)
                a->group = 32;
        launch = sl_own_add(builder, kernel, a, sizeof(*a), (uint64_t)a->results * a->group);
        sl_own_slot(launch, offsetof(struct sl_own_reduce, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_reduce, in), SL_OWN_INPUT, 0, 0);
}

int sl_own_plan_mean_variance(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_attr *axes = sl_attrs_find(&node->attrs, SL_ATTR_AXES);
        uint32_t mask = 0, rank = node->inputs[0].shape.rank;
        static const int64_t usual[] = {0, 2, 3};
        struct sl_own_box stays, goes;
        struct sl_own_reduce a = {.dtype = node->inputs[0].dtype};
        struct sl_own_launch *launch;

        if (!sl_own_is_float(a.dtype) || node->inputs[0].layout != SL_LAYOUT_PLAIN || node->outputs[0].layout != SL_LAYOUT_PLAIN)
                return -ENOTSUP;
        for (uint32_t i = 0; i < (axes ? axes->count : 3); i++) {
                int64_t axis = axes ? axes->ints[i] : usual[i];

                mask |= 1u << (axis < 0 ? axis + rank : axis);
        }
        box_of_mask(&node->inputs[0], mask, false, &stays);
        box_of_mask(&node->inputs[0], mask, true, &goes);
        set_boxes(&a, &stays, &goes);
        launch = sl_own_add(builder, sl_own_kernel_of(SL_OWN_KERNEL_standardize_f32, a.dtype), &a, sizeof(a),
                (uint64_t)a.results * SL_OWN_BLOCK);
        sl_own_slot(launch, offsetof(struct sl_own_reduce, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_reduce, in), SL_OWN_INPUT, 0, 0);
        return 0;
}

int sl_own_plan_hardmax(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_shape *shape = &node->inputs[0].shape;
        uint32_t axis = sl_own_axis(node, -1);
        uint64_t inner = 1;
        struct sl_own_hardmax a = {.size = (uint32_t)shape->dims[axis], .dtype = node->inputs[0].dtype};
        struct sl_own_launch *launch;

        if (!sl_own_is_float(a.dtype) || !a.size || node->inputs[0].layout != SL_LAYOUT_PLAIN)
                return -ENOTSUP;
        for (uint32_t d = axis + 1; d < shape->rank; d++)
                inner *= (uint64_t)shape->dims[d];
        a.inner = sl_own_divide_by(inner);
        a.lines = (uint32_t)(sl_shape_elements(shape) / a.size);
        launch = sl_own_add(builder, SL_OWN_KERNEL_hardmax, &a, sizeof(a), a.lines);
        sl_own_slot(launch, offsetof(struct sl_own_hardmax, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_hardmax, in), SL_OWN_INPUT, 0, 0);
        return 0;
}

static bool integers_have(uint32_t op, uint32_t dtype)
{
        if (dtype == SL_DTYPE_BOOL)
                return op == SL_OP_REDUCE_MAX || op == SL_OP_REDUCE_MIN;
        return op != SL_OP_REDUCE_L2 && op != SL_OP_REDUCE_LOG_SUM && op != SL_OP_REDUCE_LOG_SUM_EXP;
}

int sl_own_plan_reduce(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        struct sl_own_reduce a = {.kind = (uint32_t)kinds[node->op] - 1};
        uint32_t dtype = node->inputs[0].dtype, mask;

        if (node->outputs[0].layout != SL_LAYOUT_PLAIN || node->outputs[0].dtype != dtype || sl_reduced_axes(node, &mask, NULL))
                return -ENOTSUP;
        if (!sl_own_is_float(dtype) && (sl_dtype_is_float(dtype) || !integers_have(node->op, dtype)))
                return -ENOTSUP;
        add_reduce(builder, node,
                sl_own_is_float(dtype) ? sl_own_kernel_of(SL_OWN_KERNEL_reduce_f32, dtype) : SL_OWN_KERNEL_reduce_integers, &a,
                mask);
        return 0;
}

/* One place for each channel has the same bytes in either layout. */
int sl_own_plan_global_pool(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        struct sl_own_reduce a = {.kind = (uint32_t)kinds[node->op] - 1, .p = (float)sl_attrs_int(&node->attrs, SL_ATTR_P, 2)};
        uint32_t dtype = node->inputs[0].dtype;

        if (!sl_own_is_float(dtype))
                return -ENOTSUP;
        add_reduce(builder, node, sl_own_kernel_of(SL_OWN_KERNEL_reduce_f32, dtype), &a, (1u << node->inputs[0].shape.rank) - 4);
        return 0;
}

int sl_own_plan_argreduce(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        const struct sl_shape *shape = &node->inputs[0].shape;
        uint32_t axis = sl_own_axis(node, 0), dtype = node->inputs[0].dtype;
        uint64_t inner = 1, size = (uint64_t)shape->dims[axis], elements = sl_shape_elements(shape);
        struct sl_own_arg a = {.dtype = dtype, .largest = node->op == SL_OP_ARG_MAX, .size = (uint32_t)size};
        struct sl_own_launch *launch;

        if ((sl_dtype_is_float(dtype) && !sl_own_is_float(dtype)) || dtype == SL_DTYPE_U64 || dtype == SL_DTYPE_BOOL || !size ||
                node->inputs[0].layout != SL_LAYOUT_PLAIN)
                return -ENOTSUP;
        for (uint32_t d = axis + 1; d < shape->rank; d++)
                inner *= (uint64_t)shape->dims[d];
        a.last = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0) != 0;
        a.inner = sl_own_divide_by(inner);
        a.lines = (uint32_t)(elements / size);
        a.group = inner == 1 && size > 4 ? 32 : 1;
        launch = sl_own_add(builder, sl_own_is_float(dtype) ? SL_OWN_KERNEL_arg_floats : SL_OWN_KERNEL_arg_integers, &a, sizeof(a),
                (uint64_t)a.lines * a.group);
        sl_own_slot(launch, offsetof(struct sl_own_arg, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_arg, in), SL_OWN_INPUT, 0, 0);
        return 0;
}
