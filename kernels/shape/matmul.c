/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <inttypes.h>

static int check_inner(int64_t a, int64_t b, struct sl_error *error)
{
        int64_t merged;

        if (sl_dim_merge(a, b, &merged))
                return sl_error_set(error, EINVAL, "input 0 has %" PRId64 " columns, input 1 has %" PRId64 " rows", a, b);
        return 0;
}

int sl_shape_gemm(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *a = &node->inputs[0].shape, *b = &node->inputs[1].shape;
        uint32_t trans_a = sl_attrs_int(&node->attrs, SL_ATTR_TRANS_A, 0) != 0;
        uint32_t trans_b = sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0) != 0;
        int r = sl_same_dtype(node, 1, error);

        if (r)
                return r;
        if (a->rank != 2 || b->rank != 2)
                return sl_error_set(error, EINVAL, "inputs 0 and 1 have ranks %u and %u, want 2", a->rank, b->rank);
        r = check_inner(a->dims[!trans_a], b->dims[trans_b], error);
        if (r)
                return r;
        struct sl_shape out = {.rank = 2, .dims = {a->dims[trans_a], b->dims[!trans_b]}};
        if (sl_input_present(node, 2)) {
                r = sl_same_dtype(node, 2, error);
                r = r ? r : sl_shape_fits(&node->inputs[2].shape, &out, "input 2", error);
        }
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = out;
        return r;
}

/* A vector counts as a row on the left and as a column on the right, and that dimension goes away again. */
static int multiply_shapes(const struct sl_shape *a, const struct sl_shape *b, struct sl_shape *ret_shape, struct sl_error *error)
{
        struct sl_shape lead_a = *a, lead_b = *b;
        int64_t inner_a = a->dims[a->rank - 1], inner_b = b->dims[b->rank > 1 ? b->rank - 2 : 0];
        int r = check_inner(inner_a, inner_b, error);

        lead_a.rank = a->rank > 1 ? a->rank - 2 : 0;
        lead_b.rank = b->rank > 1 ? b->rank - 2 : 0;
        r = r ? r : sl_shape_join(&lead_a, &lead_b, ret_shape, error);
        if (r)
                return r;
        if (a->rank > 1)
                ret_shape->dims[ret_shape->rank++] = a->dims[a->rank - 2];
        if (b->rank > 1)
                ret_shape->dims[ret_shape->rank++] = b->dims[b->rank - 1];
        return 0;
}

/* A vector, or one for each matrix of a stack of them: [lanes, 1, columns]. */
static int check_bias(const struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *b = &node->inputs[1].shape, *bias = &node->inputs[2].shape;
        int64_t merged;

        if (b->rank < 2)
                return sl_error_set(error, EINVAL, "input 2 is a bias, but input 1 has rank %u, wants 2 at least", b->rank);
        if (bias->rank == 3 && b->rank == 3 && node->outputs[0].shape.rank == 3 && bias->dims[1] == 1 &&
                !sl_dim_merge(bias->dims[0], b->dims[0], &merged) &&
                !sl_dim_merge(bias->dims[0], node->outputs[0].shape.dims[0], &merged) &&
                !sl_dim_merge(bias->dims[2], b->dims[2], &merged))
                return 0;
        return sl_vector_of(node, 2, b->dims[b->rank - 1], error);
}

int sl_shape_matmul(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *a = &node->inputs[0].shape, *b = &node->inputs[1].shape;
        int r = sl_same_dtype(node, 1, error);

        if (r)
                return r;
        if (!a->rank || !b->rank)
                return sl_error_set(error, EINVAL, "input %d is a scalar", a->rank ? 1 : 0);
        node->outputs[0].dtype = node->inputs[0].dtype;
        r = multiply_shapes(a, b, &node->outputs[0].shape, error);
        if (r || !sl_input_present(node, 2))
                return r;
        r = sl_same_dtype(node, 2, error);
        return r ? r : check_bias(node, error);
}
