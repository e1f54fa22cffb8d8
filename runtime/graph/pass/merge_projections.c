/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MatMuls of one input by constant matrices, whose results one attention alone reads, become one wider MatMul: the matrices and
 * the biases stand side by side, and the attention reads its columns. The first of the nodes computes for all.
 */
#include "pass.h"

#include "base/error.h"
#include "fold.h"
#include "graph.h"
#include "pass/match.h"

#include <string.h>

#define PARTS 3 /* queries, keys, values */

struct projection {
        uint32_t node;
        const char *weights, *bias; /* floats at any address; bias may be NULL */
        int64_t depth, columns;
};

static const void *floats_of(const struct sl_graph *graph, uint32_t value, uint32_t rank)
{
        const struct sl_value *v = sl_graph_is_constant(graph, value) ? &graph->values[value] : NULL;

        return v && v->tensor.dtype == SL_DTYPE_F32 && v->tensor.shape.rank == rank ? v->data : NULL;
}

static bool read_projection(const struct sl_graph *graph, uint32_t value, uint32_t attention, struct projection *ret_projection)
{
        uint32_t index = sl_match_made(graph, value, SL_OP_MATMUL);
        const struct sl_node *node = index == SL_VALUE_NONE ? NULL : &graph->nodes[index];
        uint32_t bias = node && node->n_inputs > 2 ? node->inputs[2] : SL_VALUE_NONE;

        if (!node || node->epilogue.activation != SL_ACT_NONE || node->epilogue.has_residual ||
                sl_graph_only_user(graph, value) != attention)
                return false;
        *ret_projection = (struct projection){
                .node = index, .weights = floats_of(graph, node->inputs[1], 2), .bias = floats_of(graph, bias, 1)};
        if (!ret_projection->weights || (bias != SL_VALUE_NONE && !ret_projection->bias))
                return false;
        ret_projection->depth = graph->values[node->inputs[1]].tensor.shape.dims[0];
        ret_projection->columns = graph->values[node->inputs[1]].tensor.shape.dims[1];
        return true;
}

/* The three as they are read; false unless all are projections of one value by matrices of their own. */
static bool read_all(const struct sl_graph *graph, uint32_t attention, struct projection ret_parts[PARTS])
{
        const struct sl_node *node = &graph->nodes[attention];

        for (uint32_t i = 0; i < PARTS; i++) {
                if (!read_projection(graph, node->inputs[i], attention, &ret_parts[i]))
                        return false;
                if (graph->nodes[ret_parts[i].node].inputs[0] != graph->nodes[ret_parts[0].node].inputs[0])
                        return false;
                for (uint32_t k = 0; k < i; k++)
                        if (ret_parts[k].node == ret_parts[i].node)
                                return false;
        }
        return true;
}

static void join(const struct projection parts[PARTS], int64_t columns, float *ret_weights, float *ret_bias)
{
        int64_t first = 0;

        for (uint32_t i = 0; i < PARTS; i++) {
                const struct projection *p = &parts[i];
                size_t row_bytes = (size_t)p->columns * sizeof(float);

                for (int64_t k = 0; k < p->depth; k++)
                        memcpy(ret_weights + k * columns + first, p->weights + (size_t)k * row_bytes, row_bytes);
                if (p->bias)
                        memcpy(ret_bias + first, p->bias, row_bytes);
                first += p->columns;
        }
}

/* The wider MatMul in the place of the first one; its output is a new value. */
static int widen(struct sl_graph *graph, const struct projection parts[PARTS], uint32_t host, int64_t columns)
{
        struct sl_tensor weights = {.dtype = SL_DTYPE_F32, .shape = {2, {parts[0].depth, columns}}};
        struct sl_tensor bias = {.dtype = SL_DTYPE_F32, .shape = {1, {columns}}};
        struct sl_tensor made = graph->values[graph->nodes[host].outputs[0]].tensor;
        float *data = sl_graph_alloc(graph, (uint64_t)parts[0].depth * columns * sizeof(float));
        float *shift = sl_graph_alloc(graph, (uint64_t)columns * sizeof(float));
        uint32_t inputs[3] = {graph->nodes[host].inputs[0]}, output;
        int result;

        if (!data || !shift)
                return -ENOMEM;
        join(parts, columns, data, shift);
        made.shape.dims[made.shape.rank - 1] = columns;
        result = sl_graph_add_constant(graph, graph->nodes[host].name, &weights, data, &inputs[1]);
        if (result == 0)
                result = sl_graph_add_constant(graph, graph->nodes[host].name, &bias, shift, &inputs[2]);
        if (result == 0)
                result = sl_graph_add_value(graph, graph->nodes[host].name, SL_VALUE_COMPUTED, &made, &output);
        if (result == 0)
                result = sl_graph_set_inputs(graph, host, inputs, 3);
        if (result == 0)
                sl_graph_set_output(graph, host, 0, output);
        return result;
}

static int merge(struct sl_graph *graph, uint32_t attention, const struct projection parts[PARTS], int64_t columns)
{
        uint32_t host = parts[0].node;
        int64_t starts[PARTS], first = 0;
        int result;

        for (uint32_t i = 0; i < PARTS; i++) {
                host = parts[i].node < host ? parts[i].node : host;
                starts[i] = first + sl_attrs_ints(&graph->nodes[attention].attrs, SL_ATTR_STARTS, i, 0);
                first += parts[i].columns;
        }
        result = widen(graph, parts, host, columns);
        for (uint32_t i = 0; i < PARTS && result == 0; i++) {
                if (parts[i].node != host)
                        graph->nodes[parts[i].node].dead = 1;
                graph->values[graph->nodes[attention].inputs[i]].dead = 1;
                sl_graph_set_input(graph, attention, i, graph->nodes[host].outputs[0]);
        }
        return result < 0 ? result : sl_attrs_set_ints(&graph->nodes[attention].attrs, SL_ATTR_STARTS, starts, PARTS);
}

int sl_pass_merge_projections(struct sl_graph *graph, struct sl_error *error)
{
        struct sl_fold_budget budget = sl_fold_budget_of(graph);

        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                struct projection parts[PARTS];
                int64_t columns;
                uint64_t bytes;

                if (graph->nodes[i].dead || graph->nodes[i].op != SL_OP_ROW_ATTENTION || !read_all(graph, i, parts))
                        continue;
                columns = parts[0].columns + parts[1].columns + parts[2].columns;
                bytes = (uint64_t)columns * (uint64_t)(parts[0].depth + 1) * sizeof(float);
                if (bytes > budget.bytes)
                        continue;
                budget.bytes -= bytes;
                if (merge(graph, i, parts, columns) < 0)
                        return sl_error_set(error, ENOMEM, "node \"%s\": no memory for its weights", graph->nodes[i].name);
        }
        return sl_pass_remove_dead(graph, error);
}
