/* SPDX-License-Identifier: Apache-2.0 */
/*
 * int8 between a QuantizeLinear and its DequantizeLinears becomes uint8, with zero points that are 128 higher: the same numbers. A
 * product of uint8 and int8 is what some backends multiply; with int8 on both sides oneDNN spends instructions on every load.
 */
#include "pass.h"

#include "backend.h"
#include "base/error.h"
#include "graph.h"
#include "pass/quantity.h"

#define ZERO_INPUT 2
#define SHIFT      128
#define USERS_MAX  64

static bool is_shiftable(const struct sl_graph *graph, const struct sl_node *node, uint32_t op)
{
        struct sl_quantity quantity;

        return node->op == op && sl_quantity_of(graph, node, &quantity) && quantity.dtype == SL_DTYPE_I8;
}

/* The users, when all of them turn the bytes into floats and nobody outside sees them; 0: it is not so. */
static uint32_t find_users(const struct sl_graph *graph, uint32_t bytes, uint32_t *ret_users)
{
        uint32_t n = sl_graph_users(graph, bytes, ret_users, USERS_MAX);

        if (n > USERS_MAX || sl_graph_is_output(graph, bytes))
                return 0;
        for (uint32_t i = 0; i < n; i++)
                if (!is_shiftable(graph, &graph->nodes[ret_users[i]], SL_OP_DEQUANTIZE_LINEAR))
                        return 0;
        return n;
}

static int shift_zero(struct sl_graph *graph, uint32_t index)
{
        struct sl_node *node = &graph->nodes[index];
        struct sl_tensor tensor = graph->values[node->inputs[1]].tensor;
        uint8_t *zero = sl_graph_alloc(graph, sizeof(*zero));
        struct sl_quantity quantity = {0};
        uint32_t inputs[ZERO_INPUT + 1] = {node->inputs[0], node->inputs[1]};
        int r;

        if (!zero || !sl_quantity_of(graph, node, &quantity))
                return -ENOMEM;
        *zero = (uint8_t)(quantity.zero + SHIFT);
        tensor.dtype = SL_DTYPE_U8;
        r = sl_graph_add_constant(graph, node->name, &tensor, zero, &inputs[ZERO_INPUT]);
        return r < 0 ? r : sl_graph_set_inputs(graph, index, inputs, ZERO_INPUT + 1);
}

static int unsign(struct sl_graph *graph, uint32_t index)
{
        uint32_t bytes = graph->nodes[index].outputs[0], users[USERS_MAX];
        uint32_t n_users = find_users(graph, bytes, users);
        int r = n_users ? shift_zero(graph, index) : 0;

        if (!n_users)
                return 0;
        for (uint32_t i = 0; i < n_users && r == 0; i++)
                r = shift_zero(graph, users[i]);
        sl_attrs_remove(&graph->nodes[index].attrs, SL_ATTR_OUTPUT_DTYPE);
        graph->values[bytes].tensor.dtype = SL_DTYPE_U8;
        return r;
}

int sl_pass_unsign_bytes(struct sl_graph *graph, const struct sl_pass_options *options, struct sl_error *error)
{
        if (!(options->backend->planner->traits & SL_PLANNER_UNSIGNED_BYTES))
                return 0;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];
                int r = !node->dead && is_shiftable(graph, node, SL_OP_QUANTIZE_LINEAR) ? unsign(graph, i) : 0;

                if (r < 0)
                        return sl_error_set(error, -r, "node \"%s\": no memory for a zero point", graph->nodes[i].name);
        }
        return 0;
}
