/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exporters write "the batch, and the rest" as arithmetic on Shape. The graph is specialised for several batch sizes: a parameter
 * that is the same in all of them is constant; a Reshape of which one dimension grows with the batch is a Reshape with -1 there.
 * What cannot be settled so stays an input, and sl_graph_specialise() settles it for each batch size.
 *
 * Dimensions of values that the shape rules do not know, for they are numbers that the file computes (an Expand to the batch, a
 * Range as long as it, what is gathered with that), are learned in the same way: the batch, or the same in all sizes.
 */
#include "fold.h"
#include "import/importer.h"
#include "parameter.h"

#include <stdlib.h>
#include <string.h>

/* One size is compared with the others. A batch of one, two or three is where broadcasting and clamping change their minds. */
#define FIRST 6
static const int64_t others[] = {35, 1, 2, 3, 4096};

/* What the parameters of a node are, as far as sizes were compared. */
struct verdict {
        enum { OPEN, SAME, GROWS, VARIES } kind;
        int growing; /* of a Reshape that GROWS: the dimension */
};

struct findings {
        struct verdict *verdicts; /* of the nodes */
        struct sl_shape *shapes;  /* of the values, with SL_DIM_UNKNOWN where sizes disagree */
};

/* The dimension that is k times the batch in both lists, all others being equal; -1 when it is not so. */
static int growing_dim(const struct sl_attr *first, const struct sl_attr *other, int64_t batch)
{
        int growing = -1;

        if (first->count != other->count)
                return -1;
        for (uint32_t i = 0; i < first->count; i++) {
                int64_t dim = first->ints[i];

                if (dim == other->ints[i])
                        continue;
                if (dim <= 0 || dim % FIRST || other->ints[i] != dim / FIRST * batch || growing >= 0)
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

        return dim < in->rank && in->dims[dim] == SL_DIM_BATCH && shape->ints[dim] == FIRST &&
               !sl_attrs_int(&node->attrs, SL_ATTR_ALLOW_ZERO, 0);
}

/* "The batch, and fixed sizes" becomes [-1, ...]; "the batch, and the rest" becomes [0, ..., -1]. */
static int settle_reshape(const struct sl_graph *graph, struct sl_node *node, const struct sl_node *first, uint32_t growing)
{
        struct sl_attr shape = *sl_attrs_find(&first->attrs, SL_ATTR_SHAPE);

        if (!has_open(&shape))
                shape.ints[growing] = -1;
        else if (copies_batch(graph, node, &shape, growing))
                shape.ints[growing] = 0;
        else
                return 0;
        node->attrs = first->attrs;
        node->n_inputs = first->n_inputs;
        return sl_attrs_set_ints(&node->attrs, SL_ATTR_SHAPE, shape.ints, shape.count);
}

static bool attrs_equal(const struct sl_attrs *a, const struct sl_attrs *b)
{
        return a->count == b->count && !memcmp(a->items, b->items, a->count * sizeof(*a->items));
}

static struct verdict compare(const struct sl_node *first, const struct sl_node *other, int64_t batch)
{
        const struct sl_attr *shape = sl_attrs_find(&first->attrs, SL_ATTR_SHAPE);
        const struct sl_attr *other_shape = sl_attrs_find(&other->attrs, SL_ATTR_SHAPE);
        int growing;

        if (first->dead || other->dead || first->op != other->op)
                return (struct verdict){.kind = VARIES};
        if (attrs_equal(&first->attrs, &other->attrs))
                return (struct verdict){.kind = SAME};
        growing = first->op == SL_OP_RESHAPE && shape && other_shape ? growing_dim(shape, other_shape, batch) : -1;
        return growing < 0 ? (struct verdict){.kind = VARIES} : (struct verdict){.kind = GROWS, .growing = growing};
}

static void compare_nodes(const struct sl_graph *graph, const struct sl_graph *first, const struct sl_graph *other, int64_t batch,
        struct verdict *verdicts)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                struct verdict *verdict = &verdicts[i], now;

                if (verdict->kind == VARIES || graph->nodes[i].dead || !sl_parameters_pending(&graph->nodes[i]))
                        continue;
                now = compare(&first->nodes[i], &other->nodes[i], batch);
                if (verdict->kind != OPEN && (now.kind != verdict->kind || now.growing != verdict->growing))
                        now.kind = VARIES;
                *verdict = now;
        }
}

static int64_t compare_dims(int64_t first, int64_t other, int64_t batch)
{
        if (first == other)
                return first;
        return first == FIRST && other == batch ? SL_DIM_BATCH : SL_DIM_UNKNOWN;
}

static bool any_dim_unknown(const struct sl_value *value)
{
        for (uint32_t i = 0; i < value->tensor.shape.rank; i++)
                if (value->tensor.shape.dims[i] == SL_DIM_UNKNOWN)
                        return true;
        return false;
}

static void compare_values(const struct sl_graph *graph, const struct sl_graph *first, const struct sl_graph *other, size_t round,
        struct sl_shape *shapes)
{
        for (uint32_t i = 0; i < graph->n_values; i++) {
                const struct sl_shape *a = &first->values[i].tensor.shape, *b = &other->values[i].tensor.shape;

                if (graph->values[i].dead || !any_dim_unknown(&graph->values[i]))
                        continue;
                if (round == 0)
                        shapes[i].rank = a->rank;
                if (a->rank != b->rank)
                        shapes[i].rank = 0;
                for (uint32_t d = 0; d < shapes[i].rank; d++) {
                        int64_t dim = compare_dims(a->dims[d], b->dims[d], others[round]);

                        shapes[i].dims[d] = round == 0 || shapes[i].dims[d] == dim ? dim : SL_DIM_UNKNOWN;
                }
        }
}

static int settle_node(struct sl_graph *graph, uint32_t index, const struct sl_graph *first, struct verdict verdict)
{
        const struct sl_node *settled = &first->nodes[index];
        struct sl_node *node = &graph->nodes[index];

        if (verdict.kind == GROWS)
                return settle_reshape(graph, node, settled, (uint32_t)verdict.growing);
        if (verdict.kind != SAME || settled->op != node->op)
                return 0;
        node->attrs = settled->attrs;
        node->n_inputs = settled->n_inputs;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (settled->inputs[i] == SL_VALUE_NONE)
                        node->inputs[i] = SL_VALUE_NONE;
        return 0;
}

/* In order, each with its shape, for the next one may want to know where the batch is. */
static int settle_nodes(struct sl_importer *im, const struct sl_graph *first, const struct findings *found)
{
        int result = 0;

        for (uint32_t i = 0; i < im->graph->n_values; i++)
                im->graph->values[i].learned = found->shapes[i];
        for (uint32_t i = 0; i < im->graph->n_nodes && result == 0; i++) {
                if (im->graph->nodes[i].dead)
                        continue;
                result = settle_node(im->graph, i, first, found->verdicts[i]);
                if (result == 0)
                        result = sl_graph_infer_node(im->graph, i, im->error);
        }
        return result;
}

static bool any_open(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i].dead && sl_parameters_pending(&graph->nodes[i]))
                        return true;
        for (uint32_t i = 0; i < graph->n_values; i++)
                if (!graph->values[i].dead && any_dim_unknown(&graph->values[i]))
                        return true;
        return false;
}

/* False for a graph that takes some batch sizes only: it is left as it is, and specialising it says what is wrong. */
static bool compare_sizes(
        const struct sl_graph *graph, struct sl_fold_budget budget, const struct sl_graph *first, const struct findings *found)
{
        for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
                struct sl_graph *other;

                if (sl_graph_specialise_within(graph, others[i], budget, &other, NULL) < 0)
                        return false;
                compare_nodes(graph, first, other, others[i], found->verdicts);
                compare_values(graph, first, other, i, found->shapes);
                sl_graph_free(other);
        }
        return true;
}

int sl_import_resolve(struct sl_importer *im)
{
        struct sl_fold_budget budget = sl_fold_budget_of(im->graph);
        struct findings found;
        struct sl_graph *first;
        int result = 0;

        budget.shapes = true;
        if (!any_open(im->graph) || !sl_graph_has_batch(im->graph))
                return 0;
        if (sl_graph_specialise_within(im->graph, FIRST, budget, &first, NULL) < 0)
                return 0;
        found.verdicts = calloc(im->graph->n_nodes + 1u, sizeof(*found.verdicts));
        found.shapes = calloc(im->graph->n_values + 1u, sizeof(*found.shapes));
        if (!found.verdicts || !found.shapes)
                result = -ENOMEM;
        else if (compare_sizes(im->graph, budget, first, &found))
                result = settle_nodes(im, first, &found);
        free(found.verdicts);
        free(found.shapes);
        sl_graph_free(first);
        return result;
}
