/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Add of what a Conv, Gemm or MatMul makes and another computed tensor of that shape becomes the node's epilogue. The other
 * tensor must be made before the node, and nobody else may want the sum's first part.
 */
#include "pass.h"

#include "base/error.h"
#include "graph.h"
#include "pass/open_dims.h"

#define RESIDUAL_INPUT 3

static bool made_before(const struct sl_graph *graph, uint32_t value, uint32_t node)
{
        uint32_t producer = sl_graph_producer(graph, value);

        return graph->values[value].kind != SL_VALUE_COMPUTED || (producer != SL_VALUE_NONE && producer < node);
}

static bool same_tensor(const struct sl_graph *graph, const struct sl_open_dims *dims, uint32_t a, uint32_t b)
{
        uint32_t dtype = graph->values[a].tensor.dtype;

        return dtype == graph->values[b].tensor.dtype && sl_dtype_is_float(dtype) && sl_open_dims_same_shape(dims, a, b);
}

static bool can_take(
        const struct sl_graph *graph, const struct sl_open_dims *dims, uint32_t host, uint32_t made, uint32_t residual)
{
        const struct sl_node *node = host == SL_VALUE_NONE ? NULL : &graph->nodes[host];

        if (!node || !(sl_op_traits(node->op) & SL_OP_EPILOGUE) || node->n_inputs > RESIDUAL_INPUT)
                return false;
        if (node->epilogue.has_residual || node->epilogue.activation != SL_ACT_NONE || made == residual)
                return false;
        if (graph->values[residual].kind == SL_VALUE_CONSTANT || sl_graph_only_user(graph, made) == SL_VALUE_NONE)
                return false;
        return same_tensor(graph, dims, made, residual) && made_before(graph, residual, host);
}

static int fuse(struct sl_graph *graph, uint32_t add, uint32_t host, uint32_t made, uint32_t residual)
{
        const struct sl_node *node = &graph->nodes[host];
        uint32_t bias = node->n_inputs > 2 ? node->inputs[2] : SL_VALUE_NONE;
        uint32_t inputs[RESIDUAL_INPUT + 1] = {node->inputs[0], node->inputs[1], bias, residual};
        int result = sl_graph_set_inputs(graph, host, inputs, RESIDUAL_INPUT + 1);

        if (result < 0)
                return result;
        graph->nodes[host].epilogue.has_residual = 1;
        sl_graph_set_output(graph, host, 0, graph->nodes[add].outputs[0]);
        graph->nodes[add].dead = 1;
        graph->values[made].dead = 1;
        return 0;
}

static int fuse_add(struct sl_graph *graph, const struct sl_open_dims *dims, uint32_t index)
{
        for (uint32_t side = 0; side < 2; side++) {
                const struct sl_node *add = &graph->nodes[index];
                uint32_t made = add->inputs[side], residual = add->inputs[1 - side];
                uint32_t host = sl_graph_producer(graph, made);

                if (can_take(graph, dims, host, made, residual))
                        return fuse(graph, index, host, made, residual);
        }
        return 0;
}

int sl_pass_fuse_residual(struct sl_graph *graph, struct sl_error *error)
{
        struct sl_open_dims *dims;
        int result = sl_open_dims_new(graph, &dims);

        if (result < 0)
                return sl_error_set(error, -result, "no memory for a graph of %u nodes", graph->n_nodes);
        for (uint32_t i = 0; i < graph->n_nodes && result == 0; i++) {
                const struct sl_node *node = &graph->nodes[i];
                bool adds = !node->dead && (node->op == SL_OP_ADD || (node->op == SL_OP_SUM && node->n_inputs == 2));

                result = adds ? fuse_add(graph, dims, i) : 0;
                if (result < 0)
                        sl_error_set(error, -result, "node \"%s\": no memory for a residual", graph->nodes[i].name);
        }
        sl_open_dims_free(dims);
        return result;
}
