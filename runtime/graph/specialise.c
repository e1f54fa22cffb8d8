/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of a graph for one batch size. One walk in order does everything: by the time a node is reached its inputs have their
 * final shapes, so its parameters can be settled, its shape inferred, and itself folded if it is shape arithmetic.
 */
#include "base/error.h"
#include "broadcast.h"
#include "control.h"
#include "fold.h"
#include "graph.h"
#include "parameter.h"
#include "pass.h"

#include <inttypes.h>

bool sl_graph_has_batch(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_inputs; i++) {
                const struct sl_shape *shape = &graph->values[graph->inputs[i]].tensor.shape;

                for (uint32_t d = 0; d < shape->rank; d++)
                        if (shape->dims[d] == SL_DIM_BATCH)
                                return true;
        }
        return false;
}

/* With its batch the shape rules know what was learned of open ones; what they do not know then is data-dependent. */
static void set_batch(struct sl_graph *graph, int64_t batch)
{
        for (uint32_t i = 0; i < graph->n_inputs; i++) {
                struct sl_shape *shape = &graph->values[graph->inputs[i]].tensor.shape;

                for (uint32_t d = 0; d < shape->rank; d++)
                        if (shape->dims[d] == SL_DIM_BATCH)
                                shape->dims[d] = batch;
        }
        for (uint32_t i = 0; i < graph->n_values; i++)
                graph->values[i].learned.rank = 0;
}

static int settle_all(struct sl_graph *graph, struct sl_fold_budget *budget, struct sl_error *error);

/* What is settled inside the bodies may make the node's outputs better known. */
static int settle_bodies(struct sl_graph *graph, uint32_t index, struct sl_fold_budget *budget, struct sl_error *error)
{
        const struct sl_node *node = &graph->nodes[index];
        int result = 0;

        for (uint32_t i = 0; i < node->n_bodies && result == 0; i++)
                result = settle_all(node->bodies[i], budget, error);
        if (result == 0 && node->n_bodies)
                result = sl_graph_infer_node(graph, index, error);
        return result;
}

static int settle_node(struct sl_graph *graph, uint32_t index, struct sl_fold_budget *budget, struct sl_error *error)
{
        int result = sl_parameters_absorb(graph, index, error);

        if (result == 0)
                result = sl_graph_infer_node(graph, index, error);
        if (result == 0)
                result = settle_bodies(graph, index, budget, error);
        if (result == 0)
                sl_broadcast_skip_expands(graph, index);
        if (result == 0)
                result = sl_fold_node(graph, index, budget, error);
        return result;
}

static int check_sizes(const struct sl_graph *graph, struct sl_error *error)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];

                for (uint32_t k = 0; k < node->n_outputs && !node->dead; k++) {
                        const struct sl_value *value = node->outputs[k] == SL_VALUE_NONE ? NULL : &graph->values[node->outputs[k]];
                        char shape[SL_SHAPE_TEXT_BYTES];

                        if (!value || !sl_shape_is_static(&value->tensor.shape) || sl_tensor_bytes(&value->tensor) != UINT64_MAX)
                                continue;
                        return sl_error_set(error, EOVERFLOW, "node \"%s\" (%s): the shape %s of \"%s\" is too large", node->name,
                                sl_op_name(node->op), sl_shape_print(&value->tensor.shape, shape), value->name);
                }
        }
        return 0;
}

static int settle_all(struct sl_graph *graph, struct sl_fold_budget *budget, struct sl_error *error)
{
        int result = 0;

        for (uint32_t i = 0; i < graph->n_nodes && result >= 0; i++)
                if (!graph->nodes[i].dead)
                        result = settle_node(graph, i, budget, error);
        if (result < 0)
                return result;
        result = sl_pass_remove_dead(graph, error);
        return result < 0 ? result : check_sizes(graph, error);
}

int sl_graph_specialise_within(const struct sl_graph *graph, int64_t batch, struct sl_fold_budget budget,
        struct sl_graph **ret_graph, struct sl_error *error)
{
        struct sl_graph *copy;
        int result;

        if (batch < 1)
                return sl_error_set(error, EINVAL, "batch %" PRId64 " is less than 1", batch);
        result = sl_graph_copy(graph, &copy);
        if (result < 0)
                return sl_error_set(error, -result, "no memory to specialise a graph of %u nodes", graph->n_nodes);
        set_batch(copy, batch);
        result = settle_all(copy, &budget, error);
        if (result < 0) {
                sl_graph_free(copy);
                return sl_error_prefix(error, result, "batch %" PRId64, batch);
        }
        *ret_graph = copy;
        return 0;
}

int sl_graph_specialise(const struct sl_graph *graph, int64_t batch, struct sl_graph **ret_graph, struct sl_error *error)
{
        return sl_graph_specialise_within(graph, batch, sl_fold_budget_of(graph), ret_graph, error);
}
