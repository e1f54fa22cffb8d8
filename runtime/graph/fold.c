/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folding runs the reference kernels. Operators with windows and their like are left alone: they never are shape arithmetic, and
 * their cost is not bounded by the size of their tensors.
 */
#include "fold.h"

#include "base/bytes.h"
#include "base/error.h"
#include "evaluate.h"
#include "graph.h"
#include "parameter.h"

#include <math.h>
#include <string.h>

#define BYTES_FREE    (64ull << 20)
#define WORK_PER_BYTE 16

/* Of one node that is shape arithmetic. */
#define SHAPE_BYTES_MAX (1ull << 20)

struct sl_fold_budget sl_fold_budget_of(const struct sl_graph *graph)
{
        uint64_t bytes = BYTES_FREE;

        for (uint32_t i = 0; i < graph->n_values; i++)
                if (graph->values[i].kind == SL_VALUE_CONSTANT && sl_add_overflows(bytes, graph->values[i].data_bytes, &bytes))
                        break;
        return (struct sl_fold_budget){.bytes = bytes, .work = bytes * WORK_PER_BYTE};
}

static bool inputs_constant(const struct sl_graph *graph, const struct sl_node *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i] != SL_VALUE_NONE && graph->values[node->inputs[i]].kind != SL_VALUE_CONSTANT)
                        return false;
        return true;
}

/* Takes the node's cost from the budget; false, and nothing taken, when it is too dear. */
static bool afford(const struct sl_graph *graph, uint32_t index, struct sl_fold_budget *budget)
{
        const struct sl_node *node = &graph->nodes[index];
        uint64_t bytes = 0, work = 0;
        struct sl_node_desc desc;

        if (sl_graph_describe(graph, index, &desc) < 0)
                return false;
        for (uint32_t i = 0; i < desc.n_outputs; i++)
                if (node->outputs[i] != SL_VALUE_NONE && sl_add_overflows(bytes, sl_tensor_bytes(&desc.outputs[i]), &bytes))
                        return false;
        for (uint32_t i = 0; i < desc.n_inputs; i++)
                if (node->inputs[i] != SL_VALUE_NONE && sl_add_overflows(work, sl_tensor_bytes(&desc.inputs[i]), &work))
                        return false;
        if (sl_add_overflows(work, bytes, &work) || sl_add_overflows(work, sl_op_multiply_adds(&desc), &work))
                return false;
        if (bytes > budget->bytes || work > budget->work)
                return false;
        if (budget->shapes && (bytes > SHAPE_BYTES_MAX || work > SHAPE_BYTES_MAX * WORK_PER_BYTE))
                return false;
        budget->bytes -= bytes;
        budget->work -= work;
        return true;
}

/* The value becomes a constant; an output of the graph stays computed, by the node as an Identity of the constant. */
static int settle(struct sl_graph *graph, uint32_t index, uint32_t output, const void *data)
{
        uint32_t value = graph->nodes[index].outputs[output], constant;
        struct sl_tensor tensor = graph->values[value].tensor;
        int result;

        if (!sl_graph_is_output(graph, value)) {
                graph->values[value].kind = SL_VALUE_CONSTANT;
                graph->values[value].data = data;
                graph->values[value].data_bytes = sl_tensor_bytes(&tensor);
                graph->nodes[index].dead = 1;
                return 0;
        }
        result = sl_graph_add_constant(graph, graph->values[value].name, &tensor, data, &constant);
        if (result < 0)
                return result;
        sl_graph_replace_inputs(graph, value, constant);
        graph->nodes[index].op = SL_OP_IDENTITY;
        graph->nodes[index].attrs = (struct sl_attrs){0};
        graph->nodes[index].epilogue = (struct sl_epilogue){0};
        return sl_graph_set_inputs(graph, index, &constant, 1);
}

static int fold_shape(struct sl_graph *graph, uint32_t index)
{
        const struct sl_shape *shape = &graph->values[graph->nodes[index].inputs[0]].tensor.shape;
        int64_t *dims;

        if (!sl_shape_is_static(shape))
                return 0;
        dims = sl_graph_alloc(graph, sizeof(*dims) * (shape->rank + 1));
        if (!dims)
                return -ENOMEM;
        memcpy(dims, shape->dims, sizeof(*dims) * shape->rank);
        return settle(graph, index, 0, dims) < 0 ? -ENOMEM : 1;
}

#define RANGE_OF(type, lengths)                                                                                                    \
        do {                                                                                                                       \
                type start, limit, step, *items;                                                                                   \
                memcpy(&start, at[0]->data, sizeof(start));                                                                        \
                memcpy(&limit, at[1]->data, sizeof(limit));                                                                        \
                memcpy(&step, at[2]->data, sizeof(step));                                                                          \
                double length = step == 0 ? -1 : ceil(((double)limit - (double)start) / (double)step);                             \
                if (!(length <= (double)(budget->bytes / sizeof(*items))) || step == 0)                                            \
                        return sl_error_set(error, EINVAL, "node \"%s\" (Range): %g elements", node->name, length);                \
                n = length > 0 ? (uint64_t)length : 0;                                                                             \
                items = sl_graph_alloc(graph, (n + 1) * sizeof(*items));                                                           \
                for (uint64_t i = 0; items && i < n; i++)                                                                          \
                        items[i] = (type)((lengths)start + (lengths)i * (lengths)step);                                            \
                budget->bytes -= n * sizeof(*items);                                                                               \
                data = items;                                                                                                      \
        } while (0)

/* The one operator whose shape is its data. */
static int fold_range(struct sl_graph *graph, uint32_t index, struct sl_fold_budget *budget, struct sl_error *error)
{
        const struct sl_node *node = &graph->nodes[index];
        const struct sl_value *at[3];
        const void *data = NULL;
        struct sl_tensor *output = &graph->values[node->outputs[0]].tensor;
        uint64_t n = 0;

        for (uint32_t i = 0; i < 3; i++) {
                if (i >= node->n_inputs || !sl_graph_is_constant(graph, node->inputs[i]))
                        return 0;
                at[i] = &graph->values[node->inputs[i]];
                if (sl_shape_elements(&at[i]->tensor.shape) != 1 || at[i]->tensor.dtype != at[0]->tensor.dtype)
                        return sl_error_set(error, EINVAL, "node \"%s\" (Range): wants three scalars of one type", node->name);
        }
        switch (at[0]->tensor.dtype) {
        case SL_DTYPE_I64:
                RANGE_OF(int64_t, uint64_t);
                break;
        case SL_DTYPE_I32:
                RANGE_OF(int32_t, int64_t);
                break;
        case SL_DTYPE_F32:
                RANGE_OF(float, float);
                break;
        case SL_DTYPE_F64:
                RANGE_OF(double, double);
                break;
        default:
                return 0;
        }
        if (!data)
                return -ENOMEM;
        *output = (struct sl_tensor){.dtype = at[0]->tensor.dtype, .shape = {.rank = 1, .dims = {(int64_t)n}}};
        return settle(graph, index, 0, data) < 0 ? -ENOMEM : 1;
}

static int allocate_outputs(struct sl_graph *graph, const struct sl_node *node, void **outputs)
{
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                if (node->outputs[i] == SL_VALUE_NONE)
                        continue;
                outputs[i] = sl_graph_alloc(graph, sl_tensor_bytes(&graph->values[node->outputs[i]].tensor) + 1);
                if (!outputs[i])
                        return -ENOMEM;
        }
        return 0;
}

/* What only has another shape is the same bytes: weights that are reshaped are not copied. NULL: it must be computed. */
static const void *find_view(const struct sl_graph *graph, const struct sl_node *node)
{
        const struct sl_value *input = &graph->values[node->inputs[0]];
        const struct sl_tensor *output = &graph->values[node->outputs[0]].tensor;

        if (!(sl_op_traits(node->op) & SL_OP_VIEW) || node->n_outputs != 1 || node->epilogue.activation || node->epilogue.has_residual ||
                input->tensor.dtype != output->dtype || input->tensor.layout != output->layout ||
                input->data_bytes != sl_tensor_bytes(output))
                return NULL;
        return input->data;
}

static int compute(struct sl_graph *graph, uint32_t index, struct sl_error *error)
{
        const struct sl_node *node = &graph->nodes[index];
        const void *inputs[SL_NODE_INPUTS_MAX] = {NULL};
        void *outputs[SL_NODE_OUTPUTS_MAX] = {NULL};
        uint32_t n_outputs = node->n_outputs;
        int result = allocate_outputs(graph, node, outputs);

        for (uint32_t i = 0; i < node->n_inputs; i++)
                inputs[i] = sl_graph_constant(graph, node->inputs[i]);
        if (result == 0)
                result = sl_graph_run_node(graph, index, inputs, outputs, error);
        if (result == -ENOTSUP)
                return 0;
        for (uint32_t i = 0; i < n_outputs && result == 0; i++)
                if (outputs[i])
                        result = settle(graph, index, i, outputs[i]);
        sl_graph_drop_copies(graph);
        return result < 0 ? result : 1;
}

/* A node of several outputs can only become an Identity if it has one. */
static bool outputs_can_settle(const struct sl_graph *graph, const struct sl_node *node)
{
        for (uint32_t i = 0; i < node->n_outputs && node->n_outputs > 1; i++)
                if (node->outputs[i] != SL_VALUE_NONE && sl_graph_is_output(graph, node->outputs[i]))
                        return false;
        return true;
}

int sl_fold_node(struct sl_graph *graph, uint32_t index, struct sl_fold_budget *budget, struct sl_error *error)
{
        const struct sl_node *node = &graph->nodes[index];
        const void *view;

        if (node->dead || !node->n_outputs || node->outputs[0] == SL_VALUE_NONE)
                return 0;
        if (node->op == SL_OP_SHAPE)
                return fold_shape(graph, index);
        if (node->op == SL_OP_RANGE)
                return fold_range(graph, index, budget, error);
        if ((sl_op_traits(node->op) & SL_OP_DEAR) || sl_parameters_pending(node) || !inputs_constant(graph, node))
                return 0;
        if (node->op == SL_OP_IDENTITY && sl_graph_is_output(graph, node->outputs[0]))
                return 0;
        if (!outputs_can_settle(graph, node) || !afford(graph, index, budget))
                return 0;
        view = find_view(graph, node);
        if (view)
                return settle(graph, index, 0, view) < 0 ? -ENOMEM : 1;
        return compute(graph, index, error);
}
