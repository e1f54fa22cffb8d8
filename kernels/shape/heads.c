/* SPDX-License-Identifier: Apache-2.0 */
#include "heads.h"

#include "rules.h"

#include <inttypes.h>
#include <math.h>

/* Heads and the size of one of a tensor of queries, keys or values. */
static int read_heads(const struct sl_node_desc *node, uint32_t input, int64_t told, int64_t *ret_heads, int64_t *ret_size,
        struct sl_error *error)
{
        const struct sl_shape *shape = &node->inputs[input].shape;

        if (shape->rank == 4) {
                *ret_heads = shape->dims[1];
                *ret_size = shape->dims[3];
                return 0;
        }
        if (told < 1 || (sl_dim_known(shape->dims[2]) && shape->dims[2] % told))
                return sl_error_set(
                        error, EINVAL, "input %u has %" PRId64 " columns for %" PRId64 " heads", input, shape->dims[2], told);
        *ret_heads = told;
        *ret_size = sl_dim_known(shape->dims[2]) ? shape->dims[2] / told : SL_DIM_UNKNOWN;
        return 0;
}

static int64_t length_of(const struct sl_node_desc *node, uint32_t input)
{
        const struct sl_shape *shape = &node->inputs[input].shape;

        return shape->dims[shape->rank == 4 ? 2 : 1];
}

static int64_t add_dims(int64_t a, int64_t b)
{
        int64_t sum;

        if (!a || !b)
                return a ? a : b;
        if (!sl_dim_known(a) || !sl_dim_known(b) || __builtin_add_overflow(a, b, &sum))
                return SL_DIM_UNKNOWN;
        return sum;
}

static int expect(const struct sl_node_desc *node, uint32_t input, struct sl_shape want, struct sl_error *error)
{
        const struct sl_shape *shape = &node->inputs[input].shape;
        char text[SL_SHAPE_TEXT_BYTES], want_text[SL_SHAPE_TEXT_BYTES];
        bool same = shape->rank == want.rank;
        int64_t merged;

        for (uint32_t i = 0; i < want.rank && same; i++)
                same = !sl_dim_merge(shape->dims[i], want.dims[i], &merged);
        if (same)
                return 0;
        return sl_error_set(
                error, EINVAL, "input %u is %s, wants %s", input, sl_shape_print(shape, text), sl_shape_print(&want, want_text));
}

static int read_past(const struct sl_node_desc *node, struct sl_heads *a, struct sl_error *error)
{
        bool keys = sl_input_present(node, SL_HEADS_PAST_K), values = sl_input_present(node, SL_HEADS_PAST_V);
        int r;

        if (keys != values)
                return sl_error_set(error, EINVAL, "past keys and past values come together");
        if (!keys)
                return 0;
        if (node->inputs[SL_HEADS_PAST_K].shape.rank != 4)
                return sl_error_set(error, EINVAL, "input 4 has rank %u, wants 4", node->inputs[SL_HEADS_PAST_K].shape.rank);
        a->past = node->inputs[SL_HEADS_PAST_K].shape.dims[2];
        r = expect(node, SL_HEADS_PAST_K, (struct sl_shape){4, {a->batch, a->kv_heads, a->past, a->size}}, error);
        return r ? r : expect(node, SL_HEADS_PAST_V, (struct sl_shape){4, {a->batch, a->kv_heads, a->past, a->v_size}}, error);
}

/* A mask broadcasts to the scores; its last dimension may be shorter than the keys are many. */
static int check_mask(const struct sl_node_desc *node, const struct sl_heads *a, struct sl_error *error)
{
        struct sl_shape scores = {.rank = 4, .dims = {a->batch, a->q_heads, a->q_length, a->length}}, mask;
        uint32_t dtype;

        if (!sl_input_present(node, SL_HEADS_MASK))
                return 0;
        dtype = node->inputs[SL_HEADS_MASK].dtype;
        mask = node->inputs[SL_HEADS_MASK].shape;
        if (dtype != SL_DTYPE_BOOL && !sl_dtype_is_float(dtype))
                return sl_error_set(error, EINVAL, "input 3 is %s, wants bool or a floating type", sl_dtype_name(dtype));
        if (mask.rank < 1)
                return sl_error_set(error, EINVAL, "input 3 is a scalar");
        if (sl_dim_known(a->length) && mask.dims[mask.rank - 1] > a->length)
                return sl_error_set(error, EINVAL, "input 3 has %" PRId64 " columns, there are %" PRId64 " keys",
                        mask.dims[mask.rank - 1], a->length);
        if (mask.dims[mask.rank - 1] != 1)
                mask.dims[mask.rank - 1] = a->length;
        return sl_shape_fits(&mask, &scores, "input 3", error);
}

/* How many of the keys are there, of each sample: instead of past ones, which the caller has put among the keys. */
static int check_filled(const struct sl_node_desc *node, const struct sl_heads *a, struct sl_error *error)
{
        if (!sl_input_present(node, SL_HEADS_FILLED))
                return 0;
        if (sl_input_present(node, SL_HEADS_PAST_K))
                return sl_error_set(error, EINVAL, "input 6 comes without past keys, which are input 4");
        if (node->inputs[SL_HEADS_FILLED].dtype != SL_DTYPE_I64)
                return sl_error_set(
                        error, EINVAL, "input 6 is %s, wants int64", sl_dtype_name(node->inputs[SL_HEADS_FILLED].dtype));
        return sl_vector_of(node, SL_HEADS_FILLED, a->batch, error);
}

static int read_window(const struct sl_node_desc *node, struct sl_heads *a, struct sl_error *error)
{
        a->left = sl_attrs_int(&node->attrs, SL_ATTR_LEFT_WINDOW, -1);
        a->right = sl_attrs_int(&node->attrs, SL_ATTR_RIGHT_WINDOW, -1);
        if (a->left >= -1 && a->right >= -1)
                return 0;
        return sl_error_set(error, EINVAL, "the window reaches %" PRId64 " to the left and %" PRId64 " to the right, at least -1",
                a->left, a->right);
}

int sl_heads_read(const struct sl_node_desc *node, struct sl_heads *ret_heads, struct sl_error *error)
{
        const struct sl_shape *q = &node->inputs[0].shape, *k = &node->inputs[1].shape, *v = &node->inputs[2].shape;
        struct sl_heads a = {.flat = q->rank == 3};
        int64_t told = sl_attrs_int(&node->attrs, SL_ATTR_KV_NUM_HEADS, 0), k_size, v_heads, merged;
        int r;

        if ((q->rank != 3 && q->rank != 4) || k->rank != q->rank || v->rank != q->rank)
                return sl_error_set(
                        error, EINVAL, "inputs 0 to 2 have ranks %u, %u and %u, want 3 or 4", q->rank, k->rank, v->rank);
        r = read_heads(node, 0, sl_attrs_int(&node->attrs, SL_ATTR_Q_NUM_HEADS, 0), &a.q_heads, &a.size, error);
        r = r ? r : read_heads(node, 1, told, &a.kv_heads, &k_size, error);
        r = r ? r : read_heads(node, 2, told, &v_heads, &a.v_size, error);
        if (r)
                return r;
        a.q_length = length_of(node, 0);
        a.new_length = length_of(node, 1);
        if (sl_dim_merge(a.size, k_size, &a.size) || sl_dim_merge(v_heads, a.kv_heads, &merged) ||
                sl_dim_merge(q->dims[0], k->dims[0], &a.batch) || sl_dim_merge(a.batch, v->dims[0], &a.batch) ||
                sl_dim_merge(a.new_length, length_of(node, 2), &a.new_length))
                return sl_error_set(error, EINVAL, "queries, keys and values do not fit each other");
        if (sl_dim_known(a.q_heads) && sl_dim_known(a.kv_heads) && (!a.kv_heads || a.q_heads % a.kv_heads))
                return sl_error_set(error, EINVAL, "%" PRId64 " heads of queries share %" PRId64 " of keys", a.q_heads, a.kv_heads);
        r = read_past(node, &a, error);
        a.length = add_dims(a.past, a.new_length);
        a.causal = sl_attrs_int(&node->attrs, SL_ATTR_IS_CAUSAL, 0);
        a.softcap = sl_attrs_float(&node->attrs, SL_ATTR_SOFTCAP, 0);
        a.shown = sl_attrs_int(&node->attrs, SL_ATTR_QK_MODE, 0);
        a.scale = sl_attrs_float(&node->attrs, SL_ATTR_SCALE, a.size > 0 ? 1 / sqrt((double)a.size) : 1);
        for (uint32_t i = 1; i <= SL_HEADS_PAST_V && !r; i++)
                if (i != SL_HEADS_MASK && i != SL_HEADS_V && i != SL_HEADS_PAST_V && sl_input_present(node, i))
                        r = sl_same_dtype(node, i, error);
        r = r ? r : check_mask(node, &a, error);
        r = r ? r : check_filled(node, &a, error);
        r = r ? r : read_window(node, &a, error);
        if (!r)
                *ret_heads = a;
        return r;
}

int sl_shape_attention(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_heads a;
        int r = sl_heads_read(node, &a, error);
        int64_t columns = SL_DIM_UNKNOWN;

        if (r)
                return r;
        if (sl_input_present(node, SL_HEADS_PAST_V) && node->inputs[SL_HEADS_PAST_V].dtype != node->inputs[SL_HEADS_V].dtype)
                return sl_error_set(error, EINVAL, "past and new values have different types");
        if (sl_dim_known(a.q_heads) && sl_dim_known(a.v_size) && __builtin_mul_overflow(a.q_heads, a.v_size, &columns))
                return sl_error_set(error, EOVERFLOW, "the columns of the output exceed 64 bits");
        const struct sl_shape shapes[] = {a.flat ? (struct sl_shape){3, {a.batch, a.q_length, columns}}
                                                 : (struct sl_shape){4, {a.batch, a.q_heads, a.q_length, a.v_size}},
                {4, {a.batch, a.kv_heads, a.length, a.size}}, {4, {a.batch, a.kv_heads, a.length, a.v_size}},
                {4, {a.batch, a.q_heads, a.q_length, a.length}}};

        for (uint32_t i = 0; i < node->n_outputs; i++) {
                node->outputs[i].dtype = node->inputs[i == 2 ? SL_HEADS_V : 0].dtype;
                node->outputs[i].shape = shapes[i];
        }
        return 0;
}

/* Input [batch, heads, sequence, size] or [batch, sequence, heads * size]; caches of cosines and sines; positions. */
int sl_shape_rotary_embedding(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *x = &node->inputs[0].shape, *cosines = &node->inputs[1].shape;
        int64_t heads = sl_attrs_int(&node->attrs, SL_ATTR_NUM_HEADS, 0), size, rotated, length, columns;
        bool by_position = sl_input_present(node, 3);
        int r = sl_same_dtype(node, 1, error);

        r = r ? r : sl_same_dtype(node, 2, error);
        r = r ? r : sl_size_wanted(node, 0, x->rank == 4 ? 3 : 2, error);
        if (r)
                return r;
        if (x->rank != 4 && (x->rank != 3 || heads < 1 || x->dims[2] % heads))
                return sl_error_set(error, EINVAL, "input 0 has rank %u, and %" PRId64 " heads", x->rank, heads);
        size = x->rank == 4 ? x->dims[3] : x->dims[2] / heads;
        length = x->dims[x->rank == 4 ? 2 : 1];
        rotated = sl_attrs_int(&node->attrs, SL_ATTR_ROTARY_DIM, 0);
        rotated = rotated ? rotated : size;
        if (rotated < 0 || rotated > size || rotated % 2)
                return sl_error_set(
                        error, EINVAL, "%" PRId64 " of %" PRId64 " elements are to be rotated, in pairs", rotated, size);
        /* The caches may be wider than what is rotated. */
        if (!cosines->rank || (sl_dim_known(cosines->dims[cosines->rank - 1]) && cosines->dims[cosines->rank - 1] < rotated / 2))
                return sl_error_set(error, EINVAL, "input 1 has fewer than %" PRId64 " columns", rotated / 2);
        columns = cosines->dims[cosines->rank - 1];
        r = by_position ? expect(node, 3, (struct sl_shape){2, {x->dims[0], length}}, error)
                        : expect(node, 1, (struct sl_shape){3, {x->dims[0], length, columns}}, error);
        r = r ? r : expect(node, 2, *cosines, error);
        if (!r && by_position && (cosines->rank != 2 || node->inputs[3].dtype != SL_DTYPE_I64))
                return sl_error_set(error, EINVAL, "with positions, input 1 wants rank 2 and input 3 int64");
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = *x;
        return r;
}
