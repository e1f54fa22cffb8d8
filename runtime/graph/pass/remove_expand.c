/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An Expand that repeats a tensor for every sample, where what comes behind it broadcasts anyway. Whoever used the output uses the
 * input, so that what is between is computed once, or is a constant: position encodings before a product, say.
 *
 * The Expand is taken out of a copy, and there the dimension that it repeated is followed until each path meets an operand that has
 * the batch. What lies behind such an operand is the same with the Expand and without, which is why shapes of the copy may be
 * believed. For one sample the Expand must change nothing; for more, what it makes meets the batch, so that it has as many
 * repetitions, or one, and broadcasting does the same.
 */
#include "pass.h"

#include "base/error.h"
#include "fold.h"
#include "graph.h"
#include "pass/match.h"

/* Values that one Expand is followed through: a few for each layer of a network. */
#define STEPS_MAX 256

/* Copies of one graph. */
#define TRIES_MAX 8

struct step {
        uint32_t value, axis; /* the dimension that is repeated */
};

struct walk {
        const struct sl_graph *graph;
        uint32_t n_steps;
        struct step steps[STEPS_MAX];
};

static const struct sl_shape *shape_of(const struct sl_graph *graph, uint32_t value)
{
        return &graph->values[value].tensor.shape;
}

static bool follow(struct walk *walk, const struct sl_node *node, int64_t axis)
{
        const struct sl_shape *shape = shape_of(walk->graph, node->outputs[0]);
        struct step step = {.value = node->outputs[0], .axis = (uint32_t)axis};

        if (axis < 0 || axis >= shape->rank || shape->dims[axis] != 1)
                return false;
        for (uint32_t i = 0; i < walk->n_steps; i++)
                if (walk->steps[i].value == step.value && walk->steps[i].axis == step.axis)
                        return true;
        if (walk->n_steps == STEPS_MAX)
                return false;
        walk->steps[walk->n_steps++] = step;
        return true;
}

/* The repeated dimension is the one at @right, counted from the last (1), and broadcasts with that of the other operand. */
static bool meet(struct walk *walk, const struct sl_node *node, uint32_t other, int64_t right)
{
        const struct sl_shape *shape = shape_of(walk->graph, other);
        int64_t dim = right <= shape->rank ? shape->dims[shape->rank - right] : 1;

        if (dim == SL_DIM_BATCH)
                return true;
        return dim == 1 && follow(walk, node, shape_of(walk->graph, node->outputs[0])->rank - right);
}

/* As a batch of matrices it broadcasts; rows of the left one are rows of the product. */
static bool pass_product(struct walk *walk, const struct sl_node *node, uint32_t input, int64_t right)
{
        uint32_t other = node->inputs[1 - input];

        if (node->n_inputs != 2 || shape_of(walk->graph, other)->rank < 2 || right < 2)
                return false;
        if (right > 2)
                return meet(walk, node, other, right);
        return input == 0 && follow(walk, node, shape_of(walk->graph, node->outputs[0])->rank - right);
}

/* The dimension and all before it are copied. */
static bool pass_reshape(struct walk *walk, const struct sl_node *node, uint32_t axis)
{
        const struct sl_attr *shape = sl_attrs_find(&node->attrs, SL_ATTR_SHAPE);

        if (!shape || node->n_inputs != 1 || axis >= shape->count || sl_attrs_int(&node->attrs, SL_ATTR_ALLOW_ZERO, 0))
                return false;
        for (uint32_t i = 0; i <= axis; i++)
                if (shape->ints[i] != 0)
                        return false;
        return follow(walk, node, axis);
}

static bool pass_transpose(struct walk *walk, const struct sl_node *node, struct step step)
{
        int64_t rank = shape_of(walk->graph, step.value)->rank;

        for (uint32_t i = 0; i < rank; i++)
                if (sl_attrs_ints(&node->attrs, SL_ATTR_PERM, i, rank - 1 - i) == step.axis)
                        return follow(walk, node, i);
        return false;
}

/* Without the repetitions in this input the node computes the same, but for the repetitions in its output, which are followed. */
static bool pass_node(struct walk *walk, const struct sl_node *node, uint32_t input, struct step step)
{
        int64_t right = shape_of(walk->graph, step.value)->rank - (int64_t)step.axis;

        switch (node->op) {
        case SL_OP_MATMUL:
                return input < 2 && pass_product(walk, node, input, right);
        case SL_OP_ADD:
        case SL_OP_SUB:
        case SL_OP_MUL:
        case SL_OP_DIV:
                return node->n_inputs == 2 && meet(walk, node, node->inputs[1 - input], right);
        case SL_OP_RESHAPE:
                return pass_reshape(walk, node, step.axis);
        case SL_OP_TRANSPOSE:
                return pass_transpose(walk, node, step);
        default:
                return false;
        }
}

static bool pass_users(struct walk *walk, struct step step)
{
        uint32_t users[STEPS_MAX], n_users = sl_graph_users(walk->graph, step.value, users, STEPS_MAX);

        if (n_users > STEPS_MAX || sl_graph_is_output(walk->graph, step.value))
                return false;
        for (uint32_t i = 0; i < n_users; i++) {
                const struct sl_node *node = &walk->graph->nodes[users[i]];

                for (uint32_t k = 0; k < node->n_inputs; k++)
                        if (node->inputs[k] == step.value && !pass_node(walk, node, k, step))
                                return false;
        }
        return true;
}

/* The one dimension of 1 that the Expand makes an open one; -1 when there is none, or another one changes. */
static int64_t repeated_axis(const struct sl_graph *graph, const struct sl_node *node)
{
        const struct sl_shape *in = shape_of(graph, node->inputs[0]), *out = shape_of(graph, node->outputs[0]);
        int64_t axis = -1;

        if (in->rank != out->rank)
                return -1;
        for (uint32_t i = 0; i < in->rank; i++) {
                if (in->dims[i] >= 0 && in->dims[i] == out->dims[i])
                        continue;
                if (in->dims[i] != 1 || out->dims[i] >= 0 || axis >= 0)
                        return -1;
                axis = i;
        }
        return axis;
}

static bool broadcasts_anyway(const struct sl_graph *without, uint32_t index, int64_t axis)
{
        struct walk walk = {.graph = without};

        if (!follow(&walk, &without->nodes[index], axis))
                return false;
        for (uint32_t i = 0; i < walk.n_steps; i++)
                if (!pass_users(&walk, walk.steps[i]))
                        return false;
        return true;
}

/* Return: 1 the node may be left out, 0 it may not; -ENOMEM. */
static int try_without(const struct sl_graph *graph, uint32_t index, int64_t axis)
{
        struct sl_graph *without;
        int result = sl_graph_copy(graph, &without);

        if (result < 0)
                return result;
        result = sl_match_become(without, index, SL_OP_IDENTITY, graph->nodes[index].inputs, 1);
        if (result == 0)
                result = sl_graph_infer(without, NULL) == 0 && broadcasts_anyway(without, index, axis);
        sl_graph_free(without);
        return result;
}

static bool is_idle_for_one(const struct sl_graph *one, uint32_t index)
{
        const struct sl_node *node = &one->nodes[index];

        return sl_shape_equal(shape_of(one, node->inputs[0]), shape_of(one, node->outputs[0]));
}

static bool is_candidate(const struct sl_graph *graph, uint32_t index)
{
        const struct sl_node *node = &graph->nodes[index];

        return !node->dead && node->op == SL_OP_EXPAND && repeated_axis(graph, node) >= 0;
}

static int remove_all(struct sl_graph *graph, const struct sl_graph *one, struct sl_error *error)
{
        uint32_t tries = 0;

        for (uint32_t i = 0; i < graph->n_nodes && tries < TRIES_MAX; i++) {
                const struct sl_node *node = &graph->nodes[i];
                int result;

                if (!is_candidate(graph, i) || !is_idle_for_one(one, i))
                        continue;
                tries++;
                result = try_without(graph, i, repeated_axis(graph, node));
                if (result < 0)
                        return sl_error_set(error, -result, "no memory to copy a graph of %u nodes", graph->n_nodes);
                if (result == 0)
                        continue;
                sl_graph_replace_inputs(graph, node->outputs[0], node->inputs[0]);
                result = sl_graph_infer(graph, error);
                if (result < 0)
                        return result;
        }
        return sl_pass_remove_dead(graph, error);
}

static bool has_candidate(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (is_candidate(graph, i))
                        return true;
        return false;
}

/* A graph that does not take one sample is left as it is: specialising it says what is wrong. */
int sl_pass_remove_expand(struct sl_graph *graph, struct sl_error *error)
{
        struct sl_fold_budget budget = sl_fold_budget_of(graph);
        struct sl_graph *one = NULL;
        int result;

        if (!sl_graph_has_batch(graph) || !has_candidate(graph))
                return 0;
        budget.shapes = true;
        result = sl_graph_specialise_within(graph, 1, budget, &one, NULL);
        if (result < 0)
                return result == -ENOMEM ? sl_error_set(error, ENOMEM, "no memory to specialise a graph") : 0;
        result = remove_all(graph, one, error);
        sl_graph_free(one);
        return result;
}
