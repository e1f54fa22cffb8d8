/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exporters write "the batch, and the rest" as arithmetic on Shape. The graph is specialised for two batch sizes: a parameter that
 * is the same in both is constant; a Reshape of which one dimension grows with the batch is a Reshape with -1 there. What cannot be
 * settled so stays an input, and sl_graph_specialise() settles it for each batch size.
 */
#include "fold.h"
#include "import/importer.h"
#include "parameter.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_A 6
#define BATCH_B 35

/* The dimension that is k times the batch in both lists, all others being equal; -1 when it is not so. */
static int growing_dim(const struct sl_attr *a, const struct sl_attr *b)
{
        int growing = -1;

        if (a->count != b->count)
                return -1;
        for (uint32_t i = 0; i < a->count; i++) {
                if (a->ints[i] == b->ints[i])
                        continue;
                bool scales = a->ints[i] > 0 && a->ints[i] % BATCH_A == 0 && b->ints[i] == a->ints[i] / BATCH_A * BATCH_B;

                if (!scales || growing >= 0)
                        return -1;
                growing = (int)i;
        }
        return growing;
}

static bool has_open(const struct sl_attr *shape)
{
        for (uint32_t i = 0; i < shape->count; i++)
                if (shape->ints[i] == -1)
                        return true;
        return false;
}

/* The growing dimension is that of the input in the same place, so that a 0 there copies it. */
static bool copies_batch(const struct sl_graph *graph, const struct sl_node *node, const struct sl_attr *shape, uint32_t dim)
{
        const struct sl_shape *in = &graph->values[node->inputs[0]].tensor.shape;

        return dim < in->rank && in->dims[dim] == SL_DIM_BATCH && shape->ints[dim] == BATCH_A &&
               !sl_attrs_int(&node->attrs, SL_ATTR_ALLOW_ZERO, 0);
}

/* "The batch, and fixed sizes" becomes [-1, ...]; "the batch, and the rest" becomes [0, ..., -1]. */
static int settle_reshape(const struct sl_graph *graph, struct sl_node *node, const struct sl_node *a, const struct sl_node *b)
{
        const struct sl_attr *shape_a = sl_attrs_find(&a->attrs, SL_ATTR_SHAPE), *shape_b = sl_attrs_find(&b->attrs, SL_ATTR_SHAPE);
        int growing = node->op == SL_OP_RESHAPE && shape_a && shape_b ? growing_dim(shape_a, shape_b) : -1;
        struct sl_attr shape;

        if (growing < 0)
                return 0;
        shape = *shape_a;
        if (!has_open(&shape))
                shape.ints[growing] = -1;
        else if (copies_batch(graph, node, &shape, (uint32_t)growing))
                shape.ints[growing] = 0;
        else
                return 0;
        node->attrs = a->attrs;
        node->n_inputs = a->n_inputs;
        return sl_attrs_set_ints(&node->attrs, SL_ATTR_SHAPE, shape.ints, shape.count);
}

static bool attrs_equal(const struct sl_attrs *a, const struct sl_attrs *b)
{
        return a->count == b->count && !memcmp(a->items, b->items, a->count * sizeof(*a->items));
}

static int settle_node(struct sl_graph *graph, uint32_t index, const struct sl_graph *a, const struct sl_graph *b)
{
        struct sl_node *node = &graph->nodes[index];
        const struct sl_node *in_a = &a->nodes[index], *in_b = &b->nodes[index];

        if (in_a->dead || in_b->dead || in_a->op != node->op || in_b->op != node->op || !sl_parameters_pending(node))
                return 0;
        if (!attrs_equal(&in_a->attrs, &in_b->attrs))
                return settle_reshape(graph, node, in_a, in_b);
        node->attrs = in_a->attrs;
        node->n_inputs = in_a->n_inputs;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (in_a->inputs[i] == SL_VALUE_NONE)
                        node->inputs[i] = SL_VALUE_NONE;
        return 0;
}

/* In order, each with its shape, for the next one may want to know where the batch is. */
static int settle_nodes(struct sl_importer *im, const struct sl_graph *a, const struct sl_graph *b)
{
        int result = 0;

        for (uint32_t i = 0; i < im->graph->n_nodes && result == 0; i++) {
                if (im->graph->nodes[i].dead)
                        continue;
                result = settle_node(im->graph, i, a, b);
                if (result == 0)
                        result = sl_graph_infer_node(im->graph, i, im->error);
        }
        return result;
}

static bool any_pending(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i].dead && sl_parameters_pending(&graph->nodes[i]))
                        return true;
        return false;
}

int sl_import_resolve(struct sl_importer *im)
{
        struct sl_fold_budget budget = sl_fold_budget_of(im->graph);
        struct sl_graph *a = NULL, *b = NULL;
        int result = 0;

        budget.shapes = true;
        if (!any_pending(im->graph) || !sl_graph_has_batch(im->graph))
                return 0;
        /* A graph that takes some batch sizes only is left as it is: specialising it says what is wrong. */
        if (sl_graph_specialise_within(im->graph, BATCH_A, budget, &a, NULL) == 0 &&
                sl_graph_specialise_within(im->graph, BATCH_B, budget, &b, NULL) == 0)
                result = settle_nodes(im, a, b);
        sl_graph_free(a);
        sl_graph_free(b);
        return result;
}
