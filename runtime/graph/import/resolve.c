/*
 * Exporters write "the batch, and the rest" as arithmetic on Shape. The graph is specialised for two batch sizes: a parameter that
 * is the same in both is constant; a Reshape of which one dimension grows with the batch is a Reshape with -1 there. What cannot be
 * settled so stays an input, and sl_graph_specialise() settles it for each batch size.
 */
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
                if (a->ints[i] == b->ints[i] && a->ints[i] != -1)
                        continue;
                bool scales = a->ints[i] > 0 && a->ints[i] % BATCH_A == 0 && b->ints[i] == a->ints[i] / BATCH_A * BATCH_B;

                if (!scales || growing >= 0)
                        return -1;
                growing = (int)i;
        }
        return growing;
}

static bool attrs_equal(const struct sl_attrs *a, const struct sl_attrs *b)
{
        return a->count == b->count && !memcmp(a->items, b->items, a->count * sizeof(*a->items));
}

static int settle_attrs(struct sl_node *node, const struct sl_node *a, const struct sl_node *b)
{
        const struct sl_attr *shape_a = sl_attrs_find(&a->attrs, SL_ATTR_SHAPE), *shape_b = sl_attrs_find(&b->attrs, SL_ATTR_SHAPE);
        int growing;

        if (attrs_equal(&a->attrs, &b->attrs)) {
                node->attrs = a->attrs;
        } else {
                growing = node->op == SL_OP_RESHAPE && shape_a && shape_b ? growing_dim(shape_a, shape_b) : -1;
                if (growing < 0)
                        return 0;
                struct sl_attr shape = *shape_a;

                shape.ints[growing] = -1;
                node->attrs = a->attrs;
                if (sl_attrs_set_ints(&node->attrs, SL_ATTR_SHAPE, shape.ints, shape.count) < 0)
                        return -E2BIG;
        }
        node->n_inputs = a->n_inputs;
        return 0;
}

static int settle_nodes(struct sl_graph *graph, const struct sl_graph *a, const struct sl_graph *b)
{
        int result = 0;

        for (uint32_t i = 0; i < graph->n_nodes && result == 0; i++) {
                bool settled = !a->nodes[i].dead && !b->nodes[i].dead && a->nodes[i].op == graph->nodes[i].op;

                if (!graph->nodes[i].dead && settled && sl_parameters_pending(&graph->nodes[i]))
                        result = settle_attrs(&graph->nodes[i], &a->nodes[i], &b->nodes[i]);
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
        struct sl_graph *a = NULL, *b = NULL;
        int result = 0;

        if (!any_pending(im->graph) || !sl_graph_has_batch(im->graph))
                return 0;
        /* A graph that takes some batch sizes only is left as it is: specialising it says what is wrong. */
        if (sl_graph_specialise(im->graph, BATCH_A, &a, NULL) == 0 && sl_graph_specialise(im->graph, BATCH_B, &b, NULL) == 0)
                result = settle_nodes(im->graph, a, b);
        sl_graph_free(a);
        sl_graph_free(b);
        return result < 0 ? result : sl_graph_infer(im->graph, im->error);
}
