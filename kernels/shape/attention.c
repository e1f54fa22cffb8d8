/* SPDX-License-Identifier: Apache-2.0 */
#include "attention.h"

#include "rules.h"

#include <inttypes.h>

static const char *const names[] = {"queries", "keys", "values"};

static int read_attributes(const struct sl_node_desc *node, struct sl_attention *a, struct sl_error *error)
{
        a->heads = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 0);
        a->depth = sl_attrs_ints(&node->attrs, SL_ATTR_SHAPE, 0, 0);
        a->width = sl_attrs_ints(&node->attrs, SL_ATTR_SHAPE, 1, 0);
        a->scale = sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1.0);
        a->guard = sl_attrs_int(&node->attrs, SL_ATTR_GUARD, 0) != 0;
        for (uint32_t i = 0; i < 3; i++)
                a->first[i] = sl_attrs_ints(&node->attrs, SL_ATTR_STARTS, i, 0);
        if (a->heads >= 1 && a->heads <= INT32_MAX && a->depth >= 1 && a->depth <= INT32_MAX && a->width >= 1 &&
                a->width <= INT32_MAX)
                return 0;
        return sl_error_set(error, EINVAL, "%" PRId64 " heads of %" PRId64 " and %" PRId64 ", wants 1 to %d of each", a->heads,
                a->depth, a->width, INT32_MAX);
}

/* The heads lie inside the rows, and the rows are of one batch. */
static int check_rows(const struct sl_node_desc *node, uint32_t input, struct sl_attention *a, struct sl_error *error)
{
        const struct sl_shape *shape = &node->inputs[input].shape;
        int64_t columns = a->heads * (input == SL_ATTENTION_VALUES ? a->width : a->depth);

        if (node->inputs[input].dtype != node->inputs[0].dtype || shape->rank != 3)
                return sl_error_set(error, EINVAL, "the %s have rank %u, want 3 and one type for all", names[input], shape->rank);
        if (a->first[input] < 0 || (sl_dim_known(shape->dims[2]) && a->first[input] > shape->dims[2] - columns))
                return sl_error_set(error, EINVAL, "the %s are %" PRId64 " columns from %" PRId64 " on, of %" PRId64, names[input],
                        columns, a->first[input], shape->dims[2]);
        if (sl_dim_merge(a->batch, shape->dims[0], &a->batch) ||
                sl_dim_merge(*(input ? &a->keys : &a->rows), shape->dims[1], input ? &a->keys : &a->rows))
                return sl_error_set(error, EINVAL, "the %s are [%" PRId64 ",%" PRId64 ",...], which contradicts the others",
                        names[input], shape->dims[0], shape->dims[1]);
        return 0;
}

int sl_attention_read(const struct sl_node_desc *node, struct sl_attention *ret_attention, struct sl_error *error)
{
        struct sl_attention a = {.batch = SL_DIM_UNKNOWN, .rows = SL_DIM_UNKNOWN, .keys = SL_DIM_UNKNOWN};
        int r = read_attributes(node, &a, error);

        for (uint32_t i = 0; i < 3 && !r; i++)
                r = check_rows(node, i, &a, error);
        if (!r && sl_input_present(node, SL_ATTENTION_MASK)) {
                struct sl_shape scores = {4, {a.batch, a.heads, a.rows, a.keys}};

                r = node->inputs[SL_ATTENTION_MASK].dtype == SL_DTYPE_F32 ? 0 : sl_same_dtype(node, SL_ATTENTION_MASK, error);
                r = r ? r : sl_shape_fits(&node->inputs[SL_ATTENTION_MASK].shape, &scores, "the mask", error);
        }
        if (!r)
                *ret_attention = a;
        return r;
}

int sl_shape_row_attention(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_attention a;
        int r = sl_attention_read(node, &a, error);

        if (r)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = (struct sl_shape){3, {a.batch, a.rows, a.heads * a.width}};
        return 0;
}
