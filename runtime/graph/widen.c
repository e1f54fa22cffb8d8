/* SPDX-License-Identifier: Apache-2.0 */
#include "widen.h"

#include "base/error.h"
#include "graph.h"
#include "ref/half.h"

#include <stdlib.h>
#include <string.h>

static bool is_half(const struct sl_graph *graph, uint32_t value)
{
        return value != SL_VALUE_NONE && graph->values[value].tensor.dtype == SL_DTYPE_F16;
}

/* What only moves elements about does so faster with narrow ones. */
static bool moves(uint32_t op)
{
        switch (op) {
        case SL_OP_CAST:
        case SL_OP_CONCAT:
        case SL_OP_EXPAND:
        case SL_OP_GATHER:
        case SL_OP_PAD:
        case SL_OP_SLICE:
        case SL_OP_SPLIT:
        case SL_OP_TILE:
        case SL_OP_TRANSPOSE:
        case SL_OP_WHERE:
                return true;
        default:
                return sl_op_traits(op) & SL_OP_VIEW;
        }
}

static bool computes_in_half(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];

                for (uint32_t k = 0; k < node->n_inputs && !node->dead && !moves(node->op); k++)
                        if (is_half(graph, node->inputs[k]))
                                return true;
        }
        return false;
}

static int widen_constant(struct sl_graph *graph, uint32_t index)
{
        struct sl_value *value = &graph->values[index];
        uint64_t elements = value->data_bytes / sizeof(uint16_t);
        const uint16_t *from = sl_graph_constant(graph, index);
        float *to = sl_graph_alloc(graph, elements * sizeof(*to));

        if (!to)
                return -ENOMEM;
        for (uint64_t i = 0; i < elements; i++)
                to[i] = (float)sl_ref_from_f16(from[i]);
        sl_graph_drop_copies(graph);
        value->data = to;
        value->data_bytes = elements * sizeof(*to);
        return 0;
}

static int add_cast(struct sl_graph *graph, uint32_t from, uint32_t to)
{
        uint32_t node;
        int r = sl_graph_add_node(graph, SL_OP_CAST, graph->values[to].name, &from, 1, &to, 1, &node);

        return r < 0 ? r : sl_attrs_set_int(&graph->nodes[node].attrs, SL_ATTR_TO, graph->values[to].tensor.dtype);
}

/* The twin of a port in the other type, of the same name. */
static int add_twin(struct sl_graph *graph, uint32_t value, uint32_t dtype, uint32_t *ret_twin)
{
        struct sl_tensor tensor = graph->values[value].tensor;

        tensor.dtype = dtype;
        return sl_graph_add_value(graph, graph->values[value].name, SL_VALUE_COMPUTED, &tensor, ret_twin);
}

static int cast_inputs(struct sl_graph *graph)
{
        int r = 0;

        for (uint32_t i = 0; i < graph->n_inputs && r == 0; i++) {
                uint32_t wide;

                if (!is_half(graph, graph->inputs[i]))
                        continue;
                r = add_twin(graph, graph->inputs[i], SL_DTYPE_F32, &wide);
                if (r == 0)
                        sl_graph_replace_inputs(graph, graph->inputs[i], wide);
                if (r == 0)
                        r = add_cast(graph, graph->inputs[i], wide);
        }
        return r;
}

/* The nodes behind the first @n_nodes go in front of them, for everything reads what they make. */
static int bring_forward(struct sl_graph *graph, uint32_t n_nodes)
{
        uint32_t n_casts = graph->n_nodes - n_nodes;
        struct sl_node *casts = malloc((n_casts + 1u) * sizeof(*casts));

        if (!casts)
                return -ENOMEM;
        memcpy(casts, graph->nodes + n_nodes, n_casts * sizeof(*casts));
        memmove(graph->nodes + n_casts, graph->nodes, n_nodes * sizeof(*casts));
        memcpy(graph->nodes, casts, n_casts * sizeof(*casts));
        sl_graph_moved_nodes(graph);
        free(casts);
        return 0;
}

/* A float16 result gets its Cast at the end. */
static int cast_outputs(struct sl_graph *graph, uint32_t n_values)
{
        int r = 0;

        for (uint32_t i = 0; i < graph->n_outputs && r == 0; i++) {
                uint32_t value = graph->outputs[i];

                if (value >= n_values || !is_half(graph, value) || graph->values[value].kind != SL_VALUE_COMPUTED)
                        continue;
                r = add_twin(graph, value, SL_DTYPE_F16, &graph->outputs[i]);
                if (r == 0)
                        r = add_cast(graph, value, graph->outputs[i]);
        }
        return r;
}

/* The values that were there before the casts; the inputs of the graph stay as they are. */
static int widen_values(struct sl_graph *graph, uint32_t n_values)
{
        int r = 0;

        for (uint32_t i = 0; i < n_values && r == 0; i++) {
                struct sl_value *value = &graph->values[i];

                if (value->tensor.dtype != SL_DTYPE_F16 || value->kind == SL_VALUE_INPUT)
                        continue;
                if (value->kind == SL_VALUE_CONSTANT)
                        r = widen_constant(graph, i);
                value->tensor.dtype = SL_DTYPE_F32;
        }
        return r;
}

/* Types that nodes name. */
static int widen_attrs(struct sl_graph *graph)
{
        static const uint32_t types[] = {SL_ATTR_TO, SL_ATTR_OUTPUT_DTYPE};
        int r = 0;

        for (uint32_t i = 0; i < graph->n_nodes && r == 0; i++)
                for (size_t k = 0; k < sizeof(types) / sizeof(*types) && r == 0; k++)
                        if (sl_attrs_int(&graph->nodes[i].attrs, types[k], 0) == SL_DTYPE_F16)
                                r = sl_attrs_set_int(&graph->nodes[i].attrs, types[k], SL_DTYPE_F32);
        return r;
}

int sl_graph_widen(struct sl_graph *graph, struct sl_error *error)
{
        uint32_t n_nodes = graph->n_nodes, n_values = graph->n_values;
        int r;

        /* Bodies keep their types, and what goes into them with it. */
        if (!computes_in_half(graph) || sl_graph_has_bodies(graph))
                return 0;
        r = widen_attrs(graph);
        if (r == 0)
                r = cast_inputs(graph);
        if (r == 0)
                r = bring_forward(graph, n_nodes);
        if (r == 0)
                r = cast_outputs(graph, n_values);
        if (r == 0)
                r = widen_values(graph, n_values);
        if (r < 0)
                return sl_error_set(error, -r, "no memory for a graph of %u nodes in float32", n_nodes);
        r = sl_graph_infer(graph, error);
        return r < 0 ? r : sl_graph_check(graph, error);
}
