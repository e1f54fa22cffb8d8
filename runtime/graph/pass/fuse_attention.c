/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention as exporters take it apart becomes one starling.RowAttention, which reads queries, keys and values where a projection
 * left them and writes rows of all heads:
 *
 *     rows [N,S,H*D] -Reshape-> [N,S,H,D] -Transpose-> [N,H,S,D]      for queries and values, [N,H,D,T] for the keys
 *     MatMul, a scale, the mask added, Softmax over the keys, MatMul
 *     -Transpose-> [N,S,H,D] -Reshape-> [N,S,H*D], or -Reshape-> [N*S,H*D], which stays behind the node
 *
 * The three may lie in one projection, as [N,S,3,H,D] or [N,S,3*H*D] that is split; a scale may stand at the queries, the keys or
 * the scores. Weights that are not numbers may be replaced by 0, as exporters do for rows of which all is masked: the node does the
 * same, unless the mask has no infinities, for then there are none of finite scores.
 */
#include "pass.h"

#include "base/error.h"
#include "graph.h"
#include "pass/match.h"
#include "pass/open_dims.h"
#include "shape/attention.h"

#include <math.h>
#include <string.h>

#define STEPS_MAX 16 /* that are followed back from a product to the rows */

/* The logical axes of the tensor at hand: which of its dimensions each of them is. */
enum axis { AXIS_BATCH, AXIS_HEAD, AXIS_ROW, AXIS_COLUMN, AXIS_PART, N_AXES };
#define NOWHERE UINT32_MAX

/* Where one of the three comes from, while it is followed back. */
struct source {
        const struct sl_open_dims *dims;
        uint32_t value;
        uint32_t at[N_AXES]; /* AXIS_PART: NOWHERE, or the dimension from which one part was taken */
        bool part_is_taken;  /* the dimension of the parts is whole again, behind the split */
        int64_t part;
        double scale;
        int64_t heads, length, first; /* when it has arrived */
};

static const struct sl_shape *shape_of(const struct sl_graph *graph, uint32_t value)
{
        return &graph->values[value].tensor.shape;
}

static bool back_over_scale(const struct sl_graph *graph, const struct sl_node *node, struct source *s)
{
        double scalar;

        for (uint32_t i = 0; i < 2; i++) {
                if (!sl_match_scalar(graph, node->inputs[1 - i], &scalar) || (node->op == SL_OP_DIV && (i || scalar == 0)))
                        continue;
                s->scale *= node->op == SL_OP_DIV ? 1 / scalar : scalar;
                s->value = node->inputs[i];
                return true;
        }
        return false;
}

static bool back_over_transpose(const struct sl_graph *graph, const struct sl_node *node, struct source *s)
{
        uint32_t rank = shape_of(graph, node->inputs[0])->rank;

        for (int axis = 0; axis < N_AXES; axis++)
                if (s->at[axis] != NOWHERE)
                        s->at[axis] =
                                (uint32_t)sl_attrs_ints(&node->attrs, SL_ATTR_PERM, s->at[axis], (int64_t)rank - 1 - s->at[axis]);
        s->value = node->inputs[0];
        return true;
}

/* One dimension more, at @place, of which a part was taken. */
static bool insert_part(struct source *s, uint32_t place)
{
        if (s->at[AXIS_PART] != NOWHERE)
                return false;
        for (int axis = 0; axis < AXIS_PART; axis++)
                s->at[axis] += s->at[axis] >= place;
        s->at[AXIS_PART] = place;
        return true;
}

static int64_t wrapped(int64_t axis, uint32_t rank)
{
        return axis < 0 ? axis + (int64_t)rank : axis;
}

static bool back_over_squeeze(const struct sl_graph *graph, const struct sl_node *node, struct source *s)
{
        const struct sl_attr *axes = sl_attrs_find(&node->attrs, SL_ATTR_AXES);
        uint32_t rank = shape_of(graph, node->inputs[0])->rank;

        s->value = node->inputs[0];
        return axes && axes->count == 1 && rank == 5 && insert_part(s, (uint32_t)wrapped(axes->ints[0], rank));
}

static bool back_over_split(const struct sl_graph *graph, const struct sl_node *node, struct source *s)
{
        int64_t axis = wrapped(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), shape_of(graph, node->inputs[0])->rank);

        if (s->part_is_taken || axis != s->at[AXIS_PART] || shape_of(graph, node->inputs[0])->dims[axis] != node->n_outputs)
                return false;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (node->outputs[i] == s->value)
                        s->part = i;
        s->part_is_taken = true;
        s->value = node->inputs[0];
        return true;
}

/* One part cut out along its axis, which stays. */
static bool back_over_slice(const struct sl_graph *graph, const struct sl_node *node, struct source *s)
{
        const struct sl_attr *axes = sl_attrs_find(&node->attrs, SL_ATTR_AXES);
        const struct sl_shape *in = shape_of(graph, node->inputs[0]);
        int64_t axis = axes && axes->count == 1 ? wrapped(axes->ints[0], in->rank) : 0, parts, part;

        if (node->n_inputs != 1 || s->part_is_taken || s->at[AXIS_PART] == NOWHERE || in->rank != 5 || (axes && axes->count != 1) ||
                axis != s->at[AXIS_PART] || sl_attrs_ints(&node->attrs, SL_ATTR_STEPS, 0, 1) != 1)
                return false;
        parts = in->dims[axis];
        part = sl_attrs_ints(&node->attrs, SL_ATTR_STARTS, 0, -1);
        part += part < 0 ? parts : 0;
        if (part < 0 || part >= parts || shape_of(graph, node->outputs[0])->dims[axis] != 1)
                return false;
        s->part = part;
        s->part_is_taken = true;
        s->value = node->inputs[0];
        return true;
}

/* One index along an axis, which vanishes. */
static bool back_over_gather(const struct sl_graph *graph, const struct sl_node *node, struct source *s)
{
        const struct sl_shape *in = shape_of(graph, node->inputs[0]);
        const struct sl_value *index = &graph->values[node->inputs[1]];
        int64_t axis = wrapped(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), in->rank);

        if (in->rank != 5 || index->kind != SL_VALUE_CONSTANT || index->tensor.dtype != SL_DTYPE_I64 || index->tensor.shape.rank)
                return false;
        memcpy(&s->part, index->data, sizeof(s->part));
        s->part = wrapped(s->part, (uint32_t)in->dims[axis]);
        s->part_is_taken = true;
        s->value = node->inputs[0];
        return s->part >= 0 && s->part < in->dims[axis] && insert_part(s, (uint32_t)axis);
}

/* Rows that are columns cut out of wider ones are read there. */
static void arrive_before_split(const struct sl_graph *graph, struct source *s)
{
        uint32_t index = sl_match_made(graph, s->value, SL_OP_SPLIT);
        const struct sl_node *split = index == SL_VALUE_NONE ? NULL : &graph->nodes[index];

        if (!split || wrapped(sl_attrs_int(&split->attrs, SL_ATTR_AXIS, 0), 3) != 2)
                return;
        for (uint32_t i = 0; split->outputs[i] != s->value; i++) {
                if (split->outputs[i] == SL_VALUE_NONE || shape_of(graph, split->outputs[i])->dims[2] < 0)
                        return;
        }
        for (uint32_t i = 0; split->outputs[i] != s->value; i++)
                s->first += shape_of(graph, split->outputs[i])->dims[2];
        s->value = split->inputs[0];
}

/* Rows [N,S,W] seen as [N,S,H,D] or [N,S,parts,H,D]. */
static bool arrive(const struct sl_graph *graph, const struct sl_node *node, struct source *s)
{
        const struct sl_shape *in = shape_of(graph, node->inputs[0]), *out = shape_of(graph, node->outputs[0]);
        bool has_part = s->at[AXIS_PART] != NOWHERE;
        int64_t parts = has_part ? out->dims[2] : 1;

        if (in->rank != 3 || out->rank != 4u + has_part)
                return false;
        for (uint32_t i = 0; i < 2; i++)
                if (!sl_open_dims_same(s->dims, node->inputs[0], i, node->outputs[0], i))
                        return false;
        if (s->at[AXIS_BATCH] != 0 || s->at[AXIS_ROW] != 1 || s->at[AXIS_HEAD] != 2u + has_part ||
                s->at[AXIS_COLUMN] != 3u + has_part)
                return false;
        if (has_part && (!s->part_is_taken || s->at[AXIS_PART] != 2))
                return false;
        s->heads = out->dims[s->at[AXIS_HEAD]];
        s->length = out->dims[s->at[AXIS_COLUMN]];
        if (s->heads < 1 || s->length < 1 || parts < 1)
                return false;
        s->first = s->part * s->heads * s->length;
        s->value = node->inputs[0];
        arrive_before_split(graph, s);
        return true;
}

/* Follows the operand of a product back to its rows. */
static bool find_rows(const struct sl_graph *graph, const struct sl_open_dims *dims, uint32_t value, bool transposed,
        struct source *ret_source)
{
        struct source s = {.dims = dims,
                .value = value,
                .scale = 1,
                .at = {0, 1, transposed ? 3 : 2, transposed ? 2 : 3, NOWHERE}};

        if (shape_of(graph, value)->rank != 4)
                return false;
        for (int step = 0; step < STEPS_MAX; step++) {
                uint32_t index = sl_graph_producer(graph, s.value);
                const struct sl_node *node = index == SL_VALUE_NONE ? NULL : &graph->nodes[index];
                bool on = false;

                if (node && node->op == SL_OP_RESHAPE) {
                        *ret_source = s;
                        return node->n_inputs == 1 && arrive(graph, node, ret_source);
                }
                if (node && (node->op == SL_OP_MUL || node->op == SL_OP_DIV))
                        on = back_over_scale(graph, node, &s);
                else if (node && node->op == SL_OP_TRANSPOSE)
                        on = back_over_transpose(graph, node, &s);
                else if (node && node->op == SL_OP_SQUEEZE)
                        on = back_over_squeeze(graph, node, &s);
                else if (node && node->op == SL_OP_SPLIT)
                        on = back_over_split(graph, node, &s);
                else if (node && node->op == SL_OP_SLICE)
                        on = back_over_slice(graph, node, &s);
                else if (node && node->op == SL_OP_GATHER)
                        on = back_over_gather(graph, node, &s);
                if (!on)
                        return false;
        }
        return false;
}

/* What is known while the nodes are walked back from the output. */
struct attention {
        const struct sl_open_dims *dims;
        struct source queries, keys, values;
        uint32_t mask; /* SL_VALUE_NONE: none */
        double scale;
        bool guard; /* weights that are not numbers are 0 */
};

/* A plain product of two tensors. */
static const struct sl_node *product_of(const struct sl_graph *graph, uint32_t value)
{
        uint32_t index = sl_match_made(graph, value, SL_OP_MATMUL);
        const struct sl_node *node = index == SL_VALUE_NONE ? NULL : &graph->nodes[index];

        return node && node->n_inputs == 2 && node->epilogue.activation == SL_ACT_NONE && !node->epilogue.has_residual ? node
                                                                                                                       : NULL;
}

/* scale * queries * keys */
static bool match_scores(const struct sl_graph *graph, uint32_t value, struct attention *a)
{
        struct source s = {.value = value, .scale = 1};
        uint32_t index = sl_graph_producer(graph, value);
        const struct sl_node *product;

        if (index != SL_VALUE_NONE && (graph->nodes[index].op == SL_OP_MUL || graph->nodes[index].op == SL_OP_DIV) &&
                !back_over_scale(graph, &graph->nodes[index], &s))
                return false;
        product = product_of(graph, s.value);
        if (!product || !find_rows(graph, a->dims, product->inputs[0], false, &a->queries) ||
                !find_rows(graph, a->dims, product->inputs[1], true, &a->keys))
                return false;
        a->scale = s.scale * a->queries.scale * a->keys.scale;
        return true;
}

static bool is_mask(const struct sl_graph *graph, const struct sl_open_dims *dims, uint32_t value, uint32_t scores)
{
        const struct sl_shape *mask = shape_of(graph, value), *target = shape_of(graph, scores);

        if (graph->values[value].tensor.dtype != graph->values[scores].tensor.dtype || mask->rank > target->rank)
                return false;
        for (uint32_t i = 0; i < mask->rank; i++) {
                if (mask->dims[i] != 1 && !sl_open_dims_same(dims, value, i, scores, target->rank - mask->rank + i))
                        return false;
        }
        return true;
}

static bool match_masked_scores(const struct sl_graph *graph, uint32_t value, struct attention *a)
{
        uint32_t scores, mask;

        a->mask = SL_VALUE_NONE;
        if (match_scores(graph, value, a))
                return true;
        for (int order = 0; sl_match_operands(graph, value, SL_OP_ADD, order, &scores, &mask); order++) {
                a->mask = mask;
                if (is_mask(graph, a->dims, mask, value) && match_scores(graph, scores, a))
                        return true;
        }
        return false;
}

/* 0 where @value is not a number, else @value: what is under that, with no other users than these two; else @value itself. */
static uint32_t under_guard(const struct sl_graph *graph, uint32_t value)
{
        uint32_t where = sl_match_made(graph, value, SL_OP_WHERE), test, under, users[2];
        double otherwise;

        if (where == SL_VALUE_NONE || graph->nodes[where].n_inputs != 3)
                return value;
        under = graph->nodes[where].inputs[2];
        test = sl_match_made(graph, graph->nodes[where].inputs[0], SL_OP_IS_NAN);
        if (test == SL_VALUE_NONE || graph->nodes[test].inputs[0] != under ||
                !sl_match_scalar(graph, graph->nodes[where].inputs[1], &otherwise) || otherwise != 0)
                return value;
        if (sl_graph_is_output(graph, under) || sl_graph_users(graph, under, users, 2) != 2 ||
                sl_graph_only_user(graph, graph->nodes[where].inputs[0]) == SL_VALUE_NONE)
                return value;
        return under;
}

static bool is_finite_constant(const struct sl_graph *graph, uint32_t value)
{
        const float *data = sl_graph_constant(graph, value);
        uint64_t n = data && graph->values[value].tensor.dtype == SL_DTYPE_F32 ? sl_shape_elements(shape_of(graph, value)) : 0;

        for (uint64_t i = 0; i < n; i++)
                if (!isfinite(data[i]))
                        return false;
        return n > 0;
}

/* No mask, or one that chooses between finite numbers: then no row of finite scores is without a weight, and the guard is idle. */
static bool leaves_a_weight(const struct sl_graph *graph, uint32_t mask)
{
        uint32_t where = mask == SL_VALUE_NONE ? SL_VALUE_NONE : sl_match_made(graph, mask, SL_OP_WHERE);
        double yes, no;

        if (mask == SL_VALUE_NONE || is_finite_constant(graph, mask))
                return true;
        return where != SL_VALUE_NONE && graph->nodes[where].n_inputs == 3 &&
               sl_match_scalar(graph, graph->nodes[where].inputs[1], &yes) && isfinite(yes) &&
               sl_match_scalar(graph, graph->nodes[where].inputs[2], &no) && isfinite(no);
}

/* Softmax over the keys, times the values. Nothing else may want the weights: they are not kept. */
static bool match_sums(const struct sl_graph *graph, uint32_t value, struct attention *a)
{
        const struct sl_node *product = product_of(graph, value);
        uint32_t weights = product ? under_guard(graph, product->inputs[0]) : SL_VALUE_NONE, softmax;
        int64_t axis;

        if (!product || sl_graph_only_user(graph, product->inputs[0]) == SL_VALUE_NONE || shape_of(graph, weights)->rank != 4)
                return false;
        softmax = sl_match_made(graph, weights, SL_OP_SOFTMAX);
        if (softmax == SL_VALUE_NONE)
                return false;
        axis = sl_attrs_int(&graph->nodes[softmax].attrs, SL_ATTR_AXIS, -1);
        a->guard = weights != product->inputs[0];
        return (axis == -1 || axis == 3) && match_masked_scores(graph, graph->nodes[softmax].inputs[0], a) &&
               find_rows(graph, a->dims, product->inputs[1], false, &a->values);
}

/* The Transpose to [N,S,H,D] in front of the Reshape to rows. */
static bool match_output(const struct sl_graph *graph, const struct sl_node *reshape, struct attention *a)
{
        static const int64_t perm[] = {0, 2, 1, 3};
        uint32_t index = sl_match_made(graph, reshape->inputs[0], SL_OP_TRANSPOSE);

        if (index == SL_VALUE_NONE || reshape->n_inputs != 1)
                return false;
        for (uint32_t i = 0; i < 4; i++)
                if (sl_attrs_ints(&graph->nodes[index].attrs, SL_ATTR_PERM, i, -1) != perm[i])
                        return false;
        return match_sums(graph, graph->nodes[index].inputs[0], a) &&
               graph->values[reshape->outputs[0]].tensor.dtype == SL_DTYPE_F32;
}

/* The sources agree with each other. */
static bool is_sound(const struct attention *a)
{
        uint32_t q = a->queries.value, k = a->keys.value, v = a->values.value;

        return a->queries.heads == a->keys.heads && a->queries.heads == a->values.heads && a->queries.length == a->keys.length &&
               a->values.scale == 1 && sl_open_dims_same(a->dims, q, 0, k, 0) && sl_open_dims_same(a->dims, q, 0, v, 0) &&
               sl_open_dims_same(a->dims, k, 1, v, 1);
}

/*
 * The node that becomes the attention: the Reshape, where it makes the rows; the Transpose before it, where it makes one list of
 * the rows of all samples, for it makes the same out of rows. Otherwise SL_VALUE_NONE.
 */
static uint32_t place_of(const struct sl_graph *graph, uint32_t reshape, const struct attention *a)
{
        const struct sl_node *node = &graph->nodes[reshape];
        const struct sl_shape *out = shape_of(graph, node->outputs[0]);
        int64_t width = a->values.heads * a->values.length;
        uint32_t q = a->queries.value, made = node->outputs[0];

        if (!sl_open_dims_same(a->dims, node->inputs[0], 0, q, 0) || !sl_open_dims_same(a->dims, node->inputs[0], 1, q, 1))
                return SL_VALUE_NONE;
        if (out->rank == 3 && sl_open_dims_same(a->dims, made, 0, q, 0) && sl_open_dims_same(a->dims, made, 1, q, 1) &&
                out->dims[2] == width)
                return reshape;
        if (out->rank == 2 && out->dims[1] == width && sl_graph_only_user(graph, node->inputs[0]) == reshape)
                return sl_graph_producer(graph, node->inputs[0]);
        return SL_VALUE_NONE;
}

static int become_attention(struct sl_graph *graph, uint32_t index, const struct attention *a, struct sl_error *error)
{
        uint32_t inputs[] = {a->queries.value, a->keys.value, a->values.value, a->mask};
        struct sl_attrs *attrs = &graph->nodes[index].attrs;
        int result = sl_match_become(graph, index, SL_OP_ROW_ATTENTION, inputs, a->mask == SL_VALUE_NONE ? 3 : 4);

        if (result == 0)
                result = sl_attrs_set_int(attrs, SL_ATTR_GROUP, a->queries.heads);
        if (result == 0)
                result = sl_attrs_set_ints(attrs, SL_ATTR_SHAPE, (int64_t[]){a->queries.length, a->values.length}, 2);
        if (result == 0 && a->guard && !leaves_a_weight(graph, a->mask))
                result = sl_attrs_set_int(attrs, SL_ATTR_GUARD, 1);
        if (result == 0)
                result = sl_attrs_set_ints(attrs, SL_ATTR_STARTS, (int64_t[]){a->queries.first, a->keys.first, a->values.first}, 3);
        if (result == 0)
                result = sl_attrs_set_float(attrs, SL_ATTR_ALPHA, a->scale);
        if (result < 0)
                return sl_error_set(error, ENOMEM, "node \"%s\": no memory for an attention", graph->nodes[index].name);
        return sl_graph_infer_node(graph, index, error);
}

int sl_pass_fuse_attention(struct sl_graph *graph, struct sl_error *error)
{
        struct sl_open_dims *dims;
        int result = sl_open_dims_new(graph, &dims);

        if (result < 0)
                return sl_error_set(error, -result, "no memory for a graph of %u nodes", graph->n_nodes);
        for (uint32_t i = 0; i < graph->n_nodes && result == 0; i++) {
                const struct sl_node *node = &graph->nodes[i];
                struct attention a = {.dims = dims};
                uint32_t place;

                if (node->dead || node->op != SL_OP_RESHAPE || !match_output(graph, node, &a) || !is_sound(&a))
                        continue;
                place = place_of(graph, i, &a);
                result = place == SL_VALUE_NONE ? 0 : become_attention(graph, place, &a, error);
        }
        sl_open_dims_free(dims);
        return result < 0 ? result : sl_pass_remove_dead(graph, error);
}
