/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention and RotaryEmbedding. The scores of one query lie in scratch, as doubles. A query without any key that it may look at
 * gets zeros.
 */
#include "shape/heads.h"

#include "element.h"
#include "kernels.h"
#include "walk.h"

#include <errno.h>
#include <string.h>

struct attention {
        const struct sl_node_desc *node;
        const struct sl_binding *binding;
        struct sl_heads form;
        struct sl_ref_walk mask; /* for its strides */
        int64_t mask_columns;
};

static bool present(const struct sl_node_desc *node, uint32_t input)
{
        return input < node->n_inputs && node->inputs[input].dtype != SL_DTYPE_NONE;
}

size_t sl_ref_scratch_attention(const struct sl_node_desc *node)
{
        struct sl_heads form = {.length = 0};

        sl_heads_read(node, &form, NULL);
        return (size_t)form.length * sizeof(double);
}

/* Element @i of head @head at place @at of an input of queries, keys or values. */
static int64_t offset_of(
        const struct attention *a, int64_t batch, int64_t head, int64_t at, int64_t heads, int64_t length, int64_t size)
{
        if (a->form.flat)
                return ((batch * length + at) * heads + head) * size;
        return ((batch * heads + head) * length + at) * size;
}

/* The key or value of that place: first those of the past. */
static double load_cached(const struct attention *a, uint32_t input, int64_t batch, int64_t head, int64_t at, int64_t i)
{
        int64_t past = a->form.past, size = input == SL_HEADS_K ? a->form.size : a->form.v_size;
        uint32_t dtype = a->node->inputs[input].dtype;

        if (at < past)
                return sl_ref_load(a->binding->inputs[input + SL_HEADS_PAST_K - SL_HEADS_K],
                        ((batch * a->form.kv_heads + head) * past + at) * size + i, dtype);
        return sl_ref_load(a->binding->inputs[input],
                offset_of(a, batch, head, at - past, a->form.kv_heads, a->form.new_length, size) + i, dtype);
}

/* Whether the query may look at the key, which lies so far ahead of the query's own place. */
static bool sees(const struct attention *a, int64_t filled, int64_t query, int64_t key)
{
        const struct sl_heads *f = &a->form;
        bool told = present(a->node, SL_HEADS_FILLED);
        int64_t ahead = key - query - (told ? filled - f->q_length : f->past);

        if (told && key >= filled)
                return false;
        return !(f->causal && ahead > 0) && !(f->left >= 0 && -ahead > f->left) && !(f->right >= 0 && ahead > f->right);
}

/* What the mask adds to a score: 0, -infinity, or what it says. */
static double mask_at(const struct attention *a, int64_t batch, int64_t head, int64_t query, int64_t key)
{
        uint32_t dtype = present(a->node, SL_HEADS_MASK) ? a->node->inputs[SL_HEADS_MASK].dtype : 0;
        const int64_t *strides = a->mask.strides[0];
        int64_t at = batch * strides[0] + head * strides[1] + query * strides[2] + key * strides[3];
        double value = 0;

        if (!dtype)
                return 0;
        if (key >= a->mask_columns && a->mask_columns != 1)
                return -(double)INFINITY;
        value = sl_ref_load(a->binding->inputs[SL_HEADS_MASK], at, dtype);
        return dtype != SL_DTYPE_BOOL ? value : value != 0 ? 0 : -(double)INFINITY;
}

static void show(const struct attention *a, int64_t mode, int64_t at, double value)
{
        if (a->node->n_outputs > 3 && a->form.shown == mode)
                sl_ref_store(a->binding->outputs[3], at, a->node->outputs[3].dtype, value);
}

/* Scores of one query, masked. */
static void score(const struct attention *a, int64_t batch, int64_t head, int64_t query, int64_t filled, double *scores)
{
        const struct sl_heads *f = &a->form;
        int64_t q_at = offset_of(a, batch, head, query, f->q_heads, f->q_length, f->size);
        int64_t row = ((batch * f->q_heads + head) * f->q_length + query) * f->length;

        for (int64_t key = 0; key < f->length && sl_pace_on(a->binding->pace, 4); key++) {
                double sum = 0;

                for (int64_t i = 0; i < f->size && sl_pace_on(a->binding->pace, 1); i++)
                        sum += sl_ref_load(a->binding->inputs[0], q_at + i, a->node->inputs[0].dtype) *
                               load_cached(a, SL_HEADS_K, batch, head / (f->q_heads / f->kv_heads), key, i);
                sum *= f->scale;
                show(a, SL_HEADS_SCORES, row + key, sum);
                if (f->softcap > 0)
                        sum = tanh(sum / f->softcap) * f->softcap;
                show(a, SL_HEADS_CAPPED, row + key, sum);
                scores[key] = sees(a, filled, query, key) ? sum + mask_at(a, batch, head, query, key) : -(double)INFINITY;
                show(a, SL_HEADS_MASKED, row + key, scores[key]);
        }
}

static void soften(double *scores, int64_t n)
{
        double most = -(double)INFINITY, sum = 0;

        for (int64_t i = 0; i < n; i++)
                most = isnan(scores[i]) || scores[i] > most ? scores[i] : most;
        for (int64_t i = 0; i < n; i++) {
                scores[i] = most == -(double)INFINITY ? 0 : exp(scores[i] - most);
                sum += scores[i];
        }
        for (int64_t i = 0; i < n && sum != 0; i++)
                scores[i] /= sum;
}

/* -ERANGE: the sample is said to have fewer keys than none, or more than there are. */
static int attend(const struct attention *a, int64_t batch, int64_t head, int64_t query)
{
        const struct sl_heads *f = &a->form;
        int64_t y_at = offset_of(a, batch, head, query, f->q_heads, f->q_length, f->v_size);
        int64_t row = ((batch * f->q_heads + head) * f->q_length + query) * f->length;
        int64_t filled = present(a->node, SL_HEADS_FILLED) ? ((const int64_t *)a->binding->inputs[SL_HEADS_FILLED])[batch] : 0;
        double *scores = a->binding->scratch;

        if (filled < 0 || filled > f->length)
                return -ERANGE;
        score(a, batch, head, query, filled, scores);
        soften(scores, f->length);
        for (int64_t key = 0; key < f->length; key++)
                show(a, SL_HEADS_WEIGHTS, row + key, scores[key]);
        for (int64_t i = 0; i < f->v_size; i++) {
                double sum = 0;

                for (int64_t key = 0; key < f->length && sl_pace_on(a->binding->pace, 1); key++)
                        if (scores[key] != 0)
                                sum += scores[key] * load_cached(a, SL_HEADS_V, batch, head / (f->q_heads / f->kv_heads), key, i);
                sl_ref_store(a->binding->outputs[0], y_at + i, a->node->outputs[0].dtype, sum);
        }
        return 0;
}

/* Keys or values with those of the past in front. */
static void store_present(const struct attention *a, uint32_t input, uint32_t output)
{
        const struct sl_shape *shape = &a->node->outputs[output].shape;
        int64_t n = (int64_t)sl_shape_elements(shape), size = shape->dims[3];

        for (int64_t i = 0; i < n && sl_pace_on(a->binding->pace, 1); i++)
                sl_ref_store(a->binding->outputs[output], i, a->node->outputs[output].dtype,
                        load_cached(a, input, i / size / a->form.length / a->form.kv_heads,
                                i / size / a->form.length % a->form.kv_heads, i / size % a->form.length, i % size));
}

int sl_ref_attention(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct attention a = {.node = node, .binding = binding};
        struct sl_shape mask = {.rank = 0}, scores;
        int64_t queries;
        int r = 0;

        sl_heads_read(node, &a.form, NULL);
        scores = (struct sl_shape){4, {a.form.batch, a.form.q_heads, a.form.q_length, a.form.length}};
        if (present(node, SL_HEADS_MASK)) {
                mask = node->inputs[SL_HEADS_MASK].shape;
                a.mask_columns = mask.dims[mask.rank - 1];
        }
        sl_ref_walk_init(&a.mask, &scores, 1, NULL);
        sl_ref_walk_broadcast(&a.mask, 0, &mask);
        queries = a.form.batch * a.form.q_heads * a.form.q_length;
        for (int64_t i = 0; i < queries && r == 0 && sl_pace_on(binding->pace, 1); i++)
                r = attend(&a, i / a.form.q_length / a.form.q_heads, i / a.form.q_length % a.form.q_heads, i % a.form.q_length);
        if (node->n_outputs > 1)
                store_present(&a, SL_HEADS_K, 1);
        if (node->n_outputs > 2)
                store_present(&a, SL_HEADS_V, 2);
        return r;
}

/* One head at one place: pairs are turned by the angles from @angle on, the rest is copied. */
static void rotate(const struct sl_node_desc *node, const struct sl_binding *binding, int64_t at, int64_t size, int64_t angle)
{
        int64_t rotated = sl_attrs_int(&node->attrs, SL_ATTR_ROTARY_DIM, 0);
        bool interleaved = sl_attrs_int(&node->attrs, SL_ATTR_INTERLEAVED, 0);
        uint32_t dtype = node->inputs[0].dtype;

        rotated = rotated ? rotated : size;
        for (int64_t i = 0; i < rotated / 2; i++) {
                int64_t first = at + (interleaved ? 2 * i : i), second = interleaved ? first + 1 : first + rotated / 2;
                double x = sl_ref_load(binding->inputs[0], first, dtype), y = sl_ref_load(binding->inputs[0], second, dtype);
                double cosine = sl_ref_load(binding->inputs[1], angle + i, dtype),
                       sine = sl_ref_load(binding->inputs[2], angle + i, dtype);

                sl_ref_store(binding->outputs[0], first, dtype, cosine * x - sine * y);
                sl_ref_store(binding->outputs[0], second, dtype, sine * x + cosine * y);
        }
        for (int64_t i = at + rotated; i < at + size; i++)
                sl_ref_store(binding->outputs[0], i, dtype, sl_ref_load(binding->inputs[0], i, dtype));
}

int sl_ref_rotary_embedding(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *x = &node->inputs[0].shape, *cosines = &node->inputs[1].shape;
        bool flat = x->rank == 3, by_position = present(node, 3);
        int64_t heads = flat ? sl_attrs_int(&node->attrs, SL_ATTR_NUM_HEADS, 1) : x->dims[1];
        int64_t size = flat ? x->dims[2] / heads : x->dims[3], length = x->dims[flat ? 1 : 2];
        int64_t half = cosines->dims[cosines->rank - 1];

        for (int64_t i = 0; i < x->dims[0] * heads * length && sl_pace_on(binding->pace, (uint64_t)size); i++) {
                int64_t batch = i / length / heads, head = i / length % heads, place = i % length, row = batch * length + place;
                int64_t at = (flat ? row * heads + head : i) * size;

                if (by_position) {
                        row = ((const int64_t *)binding->inputs[3])[row];
                        if (row < 0 || row >= cosines->dims[0])
                                return -ERANGE;
                }
                rotate(node, binding, at, size, row * half);
        }
        return 0;
}
