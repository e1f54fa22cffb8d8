/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which way an If goes, where no data decide it: exporters ask for the sizes of tensors. Sizes beside the batch are known by now;
 * the batch is tried, on a copy of what there is of the graph.
 */
#include "import/importer.h"

#include <stdlib.h>

/* What is the same at each of these is taken to be so at any. */
static const int64_t batches[] = {2, 1, 3, 4, 5, 6, 7, 8, 16, 32, 35, 64, 128, 256, 512, 1024, 4096};

/* Each looks at the whole graph a few times. */
#define DECISIONS_MAX 32

enum { WAY_ELSE, WAY_THEN };

/* A truth value; SL_IMPORT_UNDECIDED when it is no constant. */
static int read_condition(const struct sl_graph *graph, uint32_t value)
{
        const uint8_t *data = sl_graph_constant(graph, value);

        if (!data || graph->values[value].tensor.dtype != SL_DTYPE_BOOL || graph->values[value].data_bytes != 1)
                return SL_IMPORT_UNDECIDED;
        return *data ? WAY_THEN : WAY_ELSE;
}

/* The graph is not finished: all that comes from outside is an input of the copy. */
static int name_inputs(struct sl_graph *graph)
{
        uint32_t *inputs = calloc(graph->n_values + 1u, sizeof(*inputs)), n = 0;
        int result;

        if (!inputs)
                return -ENOMEM;
        for (uint32_t i = 0; i < graph->n_values; i++)
                if (graph->values[i].kind == SL_VALUE_INPUT)
                        inputs[n++] = i;
        result = sl_graph_set_ports(graph, inputs, n, NULL, 0);
        free(inputs);
        return result;
}

/* A size that the graph does not take decides nothing. */
static int way_at(const struct sl_graph *graph, int64_t batch, struct sl_fold_budget budget, uint32_t condition)
{
        struct sl_graph *special;
        int way;

        if (sl_graph_specialise_within(graph, batch, budget, &special, NULL) < 0)
                return SL_IMPORT_UNDECIDED;
        way = read_condition(special, condition);
        sl_graph_free(special);
        return way;
}

static int try_batches(struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_graph *graph, uint32_t condition)
{
        struct sl_fold_budget budget = sl_fold_budget_of(graph);
        int way;

        budget.shapes = true;
        way = way_at(graph, batches[0], budget, condition);
        for (size_t i = 1; i < sizeof(batches) / sizeof(*batches) && way != SL_IMPORT_UNDECIDED; i++) {
                int other = way_at(graph, batches[i], budget, condition);

                if (other == SL_IMPORT_UNDECIDED)
                        return other;
                if (other != way)
                        return sl_import_wants_batch(im, node, "which way it goes depends on the size of the batch");
        }
        return way;
}

int sl_import_decide(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t condition)
{
        int way = read_condition(im->graph, condition);
        struct sl_graph *copy;
        int result;

        if (way != SL_IMPORT_UNDECIDED || im->n_decisions >= DECISIONS_MAX)
                return way;
        im->n_decisions++;
        result = sl_graph_copy(im->graph, &copy);
        if (result < 0)
                return result;
        result = name_inputs(copy);
        if (result == 0)
                result = try_batches(im, node, copy, condition);
        sl_graph_free(copy);
        return result;
}
