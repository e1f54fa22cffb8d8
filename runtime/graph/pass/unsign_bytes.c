/*
 * int8 between a QuantizeLinear and its DequantizeLinears becomes uint8, with zero points that are 128 higher: the same numbers. A
 * product of uint8 and int8 is what processors multiply; with int8 on both sides the library spends instructions on every load.
 */
#include "pass.h"

#include "base/error.h"
#include "graph.h"
#include "pass/quantity.h"

#define ZERO_INPUT 2
#define SHIFT      128

static bool is_shiftable(const struct sl_graph *graph, const struct sl_node *node, uint32_t op)
{
        struct sl_quantity quantity;

        return node->op == op && sl_quantity_of(graph, node, &quantity) && quantity.dtype == SL_DTYPE_I8;
}

static bool all_users_dequantize(const struct sl_graph *graph, uint32_t bytes)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];

                if (!node->dead && sl_node_uses(node, bytes) && !is_shiftable(graph, node, SL_OP_DEQUANTIZE_LINEAR))
                        return false;
        }
        return !sl_graph_is_output(graph, bytes);
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
        uint32_t bytes = graph->nodes[index].outputs[0];
        int r = shift_zero(graph, index);

        for (uint32_t i = 0; i < graph->n_nodes && r == 0; i++)
                if (!graph->nodes[i].dead && i != index && sl_node_uses(&graph->nodes[i], bytes))
                        r = shift_zero(graph, i);
        if (sl_attrs_find(&graph->nodes[index].attrs, SL_ATTR_OUTPUT_DTYPE))
                sl_attrs_remove(&graph->nodes[index].attrs, SL_ATTR_OUTPUT_DTYPE);
        graph->values[bytes].tensor.dtype = SL_DTYPE_U8;
        return r;
}

int sl_pass_unsign_bytes(struct sl_graph *graph, struct sl_error *error)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];
                bool wanted = !node->dead && is_shiftable(graph, node, SL_OP_QUANTIZE_LINEAR) &&
                              all_users_dequantize(graph, node->outputs[0]);
                int r = wanted ? unsign(graph, i) : 0;

                if (r < 0)
                        return sl_error_set(error, -r, "node \"%s\": no memory for a zero point", graph->nodes[i].name);
        }
        return 0;
}
