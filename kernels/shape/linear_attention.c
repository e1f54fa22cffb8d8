/* SPDX-License-Identifier: Apache-2.0 */
#include "linear_attention.h"

#include "rules.h"

#include <inttypes.h>
#include <math.h>

static int read_columns(const struct sl_node_desc *node, uint32_t input, int64_t heads, int64_t *ret_size, struct sl_error *error)
{
        int64_t columns = node->inputs[input].shape.dims[2];

        if (!sl_dim_known(columns))
                return sl_error_set(error, ENOTSUP, "the columns of input %u are not known", input);
        if (columns % heads)
                return sl_error_set(error, EINVAL, "input %u has %" PRId64 " columns for %" PRId64 " heads", input, columns, heads);
        *ret_size = columns / heads;
        return 0;
}

/* All sequences are of rank 3, of one batch and one length. */
static int read_sequences(const struct sl_node_desc *node, struct sl_linear *a, struct sl_error *error)
{
        a->batch = node->inputs[0].shape.dims[0];
        a->length = node->inputs[0].shape.dims[1];
        for (uint32_t i = 0; i <= SL_LINEAR_BETA; i++) {
                const struct sl_shape *shape = &node->inputs[i].shape;
                int r;

                if (i == SL_LINEAR_PAST || !sl_input_present(node, i))
                        continue;
                if (shape->rank != 3)
                        return sl_error_set(error, EINVAL, "input %u has rank %u, wants 3", i, shape->rank);
                r = sl_same_dtype(node, i, error);
                if (r)
                        return r;
                if (sl_dim_merge(a->batch, shape->dims[0], &a->batch) || sl_dim_merge(a->length, shape->dims[1], &a->length))
                        return sl_error_set(error, EINVAL, "inputs 0 and %u differ in batch or length", i);
        }
        return 0;
}

static int read_gates(const struct sl_node_desc *node, struct sl_linear *a, struct sl_error *error)
{
        bool decay = sl_input_present(node, SL_LINEAR_DECAY), beta = sl_input_present(node, SL_LINEAR_BETA);
        int64_t columns;
        int r = sl_size_wanted(node, SL_LINEAR_DECAY, 2, error);

        r = r ? r : sl_size_wanted(node, SL_LINEAR_BETA, 2, error);
        if (r)
                return r;
        if (a->gated != decay || a->delta != beta)
                return sl_error_set(error, EINVAL, "the update rule %s input 4 and %s input 5", a->gated ? "wants" : "has no",
                        a->delta ? "wants" : "has no");
        if (decay) {
                columns = node->inputs[SL_LINEAR_DECAY].shape.dims[2];
                a->one_decay = columns == a->kv_heads;
                if (columns != a->kv_heads && columns != a->kv_heads * a->size)
                        return sl_error_set(error, EINVAL, "input 4 has %" PRId64 " columns, wants %" PRId64 " or %" PRId64,
                                columns, a->kv_heads, a->kv_heads * a->size);
        }
        if (beta) {
                columns = node->inputs[SL_LINEAR_BETA].shape.dims[2];
                a->one_beta = columns == 1;
                if (columns != 1 && columns != a->kv_heads)
                        return sl_error_set(
                                error, EINVAL, "input 5 has %" PRId64 " columns, wants %" PRId64 " or 1", columns, a->kv_heads);
        }
        return 0;
}

static int check_past(const struct sl_node_desc *node, const struct sl_linear *a, struct sl_error *error)
{
        const struct sl_shape want = {4, {a->batch, a->kv_heads, a->size, a->v_size}};
        const struct sl_shape *past = &node->inputs[SL_LINEAR_PAST].shape;
        char text[SL_SHAPE_TEXT_BYTES], want_text[SL_SHAPE_TEXT_BYTES];
        bool same = past->rank == 4;
        int64_t merged;

        if (!sl_input_present(node, SL_LINEAR_PAST))
                return 0;
        for (uint32_t i = 0; i < 4 && same; i++)
                same = !sl_dim_merge(past->dims[i], want.dims[i], &merged);
        if (!same)
                return sl_error_set(
                        error, EINVAL, "input 3 is %s, wants %s", sl_shape_print(past, text), sl_shape_print(&want, want_text));
        if (!sl_dtype_is_float(node->inputs[SL_LINEAR_PAST].dtype))
                return sl_error_set(
                        error, EINVAL, "input 3 is %s, wants a floating type", sl_dtype_name(node->inputs[SL_LINEAR_PAST].dtype));
        return 0;
}

int sl_linear_read(const struct sl_node_desc *node, struct sl_linear *ret_linear, struct sl_error *error)
{
        int64_t mode = sl_attrs_int(&node->attrs, SL_ATTR_MODE, SL_LINEAR_GATED_DELTA), k_size = 0;
        struct sl_linear a = {.q_heads = sl_attrs_int(&node->attrs, SL_ATTR_Q_NUM_HEADS, 0),
                .kv_heads = sl_attrs_int(&node->attrs, SL_ATTR_KV_NUM_HEADS, 0),
                .gated = mode == SL_LINEAR_GATED || mode == SL_LINEAR_GATED_DELTA,
                .delta = mode == SL_LINEAR_DELTA || mode == SL_LINEAR_GATED_DELTA};
        int r = read_sequences(node, &a, error);

        if (r)
                return r;
        if (mode < SL_LINEAR_PLAIN || mode > SL_LINEAR_GATED_DELTA)
                return sl_error_set(error, EINVAL, "attribute mode is %" PRId64 ", outside [0,3]", mode);
        if (a.q_heads < 1 || a.kv_heads < 1 || a.q_heads % a.kv_heads)
                return sl_error_set(error, EINVAL, "%" PRId64 " heads of queries share %" PRId64 " of keys", a.q_heads, a.kv_heads);
        r = read_columns(node, SL_LINEAR_Q, a.q_heads, &a.size, error);
        r = r ? r : read_columns(node, SL_LINEAR_K, a.kv_heads, &k_size, error);
        r = r ? r : read_columns(node, SL_LINEAR_V, a.kv_heads, &a.v_size, error);
        if (!r && k_size != a.size)
                r = sl_error_set(error, EINVAL, "heads of queries have size %" PRId64 ", of keys %" PRId64, a.size, k_size);
        r = r ? r : read_gates(node, &a, error);
        r = r ? r : check_past(node, &a, error);
        a.scale = sl_attrs_float(&node->attrs, SL_ATTR_SCALE, 0);
        if (a.scale == 0)
                a.scale = a.size > 0 ? 1 / sqrt((double)a.size) : 1;
        if (!r)
                *ret_linear = a;
        return r;
}

int sl_shape_linear_attention(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_linear a;
        int64_t columns;
        int r = sl_linear_read(node, &a, error);

        if (r)
                return r;
        if (__builtin_mul_overflow(a.q_heads, a.v_size, &columns))
                return sl_error_set(error, EOVERFLOW, "the columns of the output exceed 64 bits");
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = (struct sl_shape){3, {a.batch, a.length, columns}};
        if (node->n_outputs > 1) {
                node->outputs[1].dtype =
                        sl_input_present(node, SL_LINEAR_PAST) ? node->inputs[SL_LINEAR_PAST].dtype : node->inputs[0].dtype;
                node->outputs[1].shape = (struct sl_shape){4, {a.batch, a.kv_heads, a.size, a.v_size}};
        }
        return 0;
}
