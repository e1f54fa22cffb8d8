/* SPDX-License-Identifier: Apache-2.0 */
#include "shape/reduce.h"

#include "element.h"
#include "kernels.h"
#include "walk.h"

/* The running result over elements of one output; which member counts is decided by the type. */
struct reduction {
        uint32_t op, dtype;
        double f, largest; /* largest: the first pass of LogSumExp */
        uint64_t bits;
        int64_t count;
};

static bool computes_in_double(uint32_t op, uint32_t dtype)
{
        return sl_dtype_is_float(dtype) || op == SL_OP_REDUCE_L2 || op == SL_OP_REDUCE_LOG_SUM_EXP || op == SL_OP_REDUCE_LOG_SUM;
}

static void start_reduction(struct reduction *reduction)
{
        bool is_unsigned = sl_ref_is_unsigned(reduction->dtype);

        reduction->f = 0;
        reduction->bits = 0;
        reduction->count = 0;
        if (reduction->op == SL_OP_REDUCE_PROD) {
                reduction->f = 1;
                reduction->bits = 1;
        }
        if (reduction->op == SL_OP_REDUCE_MAX) {
                reduction->f = -(double)INFINITY;
                reduction->bits = is_unsigned ? 0 : sl_ref_saturate(reduction->f, reduction->dtype);
        }
        if (reduction->op == SL_OP_REDUCE_MIN) {
                reduction->f = (double)INFINITY;
                reduction->bits = sl_ref_saturate(reduction->f, reduction->dtype);
        }
}

static void add_float(struct reduction *reduction, double x)
{
        switch (reduction->op) {
        case SL_OP_REDUCE_MAX:
                reduction->f = isnan(x) || x > reduction->f ? x : reduction->f;
                break;
        case SL_OP_REDUCE_MIN:
                reduction->f = isnan(x) || x < reduction->f ? x : reduction->f;
                break;
        case SL_OP_REDUCE_PROD:
                reduction->f *= x;
                break;
        case SL_OP_REDUCE_L1:
                reduction->f += fabs(x);
                break;
        case SL_OP_REDUCE_L2:
        case SL_OP_REDUCE_SUM_SQUARE:
                reduction->f += x * x;
                break;
        case SL_OP_REDUCE_LOG_SUM_EXP:
                reduction->f += exp(x - reduction->largest);
                break;
        default:
                reduction->f += x;
                break;
        }
}

static void add_bits(struct reduction *reduction, uint64_t x)
{
        bool is_unsigned = sl_ref_is_unsigned(reduction->dtype);
        bool less = is_unsigned ? x < reduction->bits : (int64_t)x < (int64_t)reduction->bits;

        switch (reduction->op) {
        case SL_OP_REDUCE_MAX:
                reduction->bits = less ? reduction->bits : x;
                break;
        case SL_OP_REDUCE_MIN:
                reduction->bits = less ? x : reduction->bits;
                break;
        case SL_OP_REDUCE_PROD:
                reduction->bits *= x;
                break;
        case SL_OP_REDUCE_L1:
                reduction->bits += !is_unsigned && (int64_t)x < 0 ? -x : x;
                break;
        case SL_OP_REDUCE_SUM_SQUARE:
                reduction->bits += x * x;
                break;
        default:
                reduction->bits += x;
                break;
        }
}

static void store_float(const struct reduction *reduction, void *out, int64_t i)
{
        double result = reduction->f;

        if (reduction->op == SL_OP_REDUCE_MEAN)
                result /= (double)reduction->count;
        else if (reduction->op == SL_OP_REDUCE_L2)
                result = sqrt(result);
        else if (reduction->op == SL_OP_REDUCE_LOG_SUM)
                result = log(result);
        else if (reduction->op == SL_OP_REDUCE_LOG_SUM_EXP)
                result = reduction->largest + log(result);
        sl_ref_store(out, i, reduction->dtype, result);
}

static void store_bits(const struct reduction *reduction, void *out, int64_t i)
{
        uint64_t result = reduction->bits;

        if (reduction->op == SL_OP_REDUCE_MEAN && reduction->count)
                result = sl_ref_is_unsigned(reduction->dtype) ? result / (uint64_t)reduction->count
                                                              : (uint64_t)((int64_t)result / reduction->count);
        sl_ref_store_bits(out, i, reduction->dtype, result);
}

/* The largest finite element, 0 when there is none: keeps exp() in range. */
static double find_largest(const void *in, int64_t base, struct sl_ref_walk *inner, uint32_t dtype)
{
        double largest = -(double)INFINITY;

        for (sl_ref_walk_rewind(inner); inner->left; sl_ref_walk_next(inner))
                largest = fmax(largest, sl_ref_load(in, base + inner->offsets[0], dtype));
        return isfinite(largest) ? largest : 0;
}

static void reduce_one(struct reduction *reduction, const void *in, int64_t base, struct sl_ref_walk *inner, void *out, int64_t i)
{
        bool in_double = computes_in_double(reduction->op, reduction->dtype);

        start_reduction(reduction);
        if (reduction->op == SL_OP_REDUCE_LOG_SUM_EXP)
                reduction->largest = find_largest(in, base, inner, reduction->dtype);
        for (sl_ref_walk_rewind(inner); inner->left; sl_ref_walk_next(inner), reduction->count++) {
                if (in_double)
                        add_float(reduction, sl_ref_load(in, base + inner->offsets[0], reduction->dtype));
                else
                        add_bits(reduction, sl_ref_load_bits(in, base + inner->offsets[0], reduction->dtype));
        }
        if (in_double)
                store_float(reduction, out, i);
        else
                store_bits(reduction, out, i);
}

/* Two walks over the input: the outer one over the dimensions that stay, the inner one over those of @mask. */
static void start_walks(
        struct sl_pace *pace, const struct sl_tensor *in, uint32_t mask, struct sl_ref_walk *outer, struct sl_ref_walk *inner)
{
        struct sl_shape stays = in->shape, goes = in->shape;
        int64_t strides[SL_RANK_MAX];

        sl_tensor_strides(in, strides);
        for (uint32_t i = 0; i < in->shape.rank; i++) {
                if (mask & 1u << i)
                        stays.dims[i] = 1;
                else
                        goes.dims[i] = 1;
        }
        sl_ref_walk_init(outer, &stays, 1, pace);
        sl_ref_walk_strides(outer, 0, strides);
        sl_ref_walk_init(inner, &goes, 1, pace);
        sl_ref_walk_strides(inner, 0, strides);
}

int sl_ref_reduce(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct reduction reduction = {.op = node->op, .dtype = node->inputs[0].dtype};
        struct sl_ref_walk outer, inner;
        uint32_t mask;
        int r = sl_reduced_axes(node, &mask, NULL);

        if (r)
                return r;
        start_walks(binding->pace, &node->inputs[0], mask, &outer, &inner);
        for (int64_t i = 0; outer.left; sl_ref_walk_next(&outer), i++)
                reduce_one(&reduction, binding->inputs[0], outer.offsets[0], &inner, binding->outputs[0], i);
        return 0;
}

/* Is element @a before element @b in the order that is looked for? A NaN comes before all numbers. */
static bool precedes(const void *in, int64_t a, int64_t b, uint32_t dtype, bool max)
{
        if (sl_dtype_is_float(dtype)) {
                double x = sl_ref_load(in, a, dtype), y = sl_ref_load(in, b, dtype);

                if (isnan(x) || isnan(y))
                        return isnan(x) && !isnan(y);
                return max ? x > y : x < y;
        }
        uint64_t x = sl_ref_load_bits(in, a, dtype), y = sl_ref_load_bits(in, b, dtype);
        if (sl_ref_is_unsigned(dtype))
                return max ? x > y : x < y;
        return max ? (int64_t)x > (int64_t)y : (int64_t)x < (int64_t)y;
}

int sl_ref_argreduce(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        bool max = node->op == SL_OP_ARG_MAX, last = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0);
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), *out = binding->outputs[0];
        const void *in = binding->inputs[0];
        uint32_t dtype = node->inputs[0].dtype;
        struct sl_ref_walk outer, inner;

        axis += axis < 0 ? node->inputs[0].shape.rank : 0;
        start_walks(binding->pace, &node->inputs[0], 1u << axis, &outer, &inner);
        for (; outer.left; sl_ref_walk_next(&outer), out++) {
                int64_t best = outer.offsets[0];

                *out = 0;
                for (sl_ref_walk_rewind(&inner); inner.left; sl_ref_walk_next(&inner)) {
                        int64_t at = outer.offsets[0] + inner.offsets[0];

                        if (last ? precedes(in, best, at, dtype, max) : !precedes(in, at, best, dtype, max))
                                continue;
                        best = at;
                        *out = inner.index[axis];
                }
        }
        return 0;
}
