/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/match.h"

#include "graph.h"

#include <math.h>

uint32_t sl_match_made(const struct sl_graph *graph, uint32_t value, uint32_t op)
{
        uint32_t node = sl_graph_producer(graph, value);

        return node != SL_VALUE_NONE && graph->nodes[node].op == op ? node : SL_VALUE_NONE;
}

bool sl_match_scalar(const struct sl_graph *graph, uint32_t value, double *ret_scalar)
{
        if (!sl_graph_is_constant(graph, value) || graph->values[value].tensor.dtype != SL_DTYPE_F32 ||
                sl_shape_elements(&graph->values[value].tensor.shape) != 1)
                return false;
        *ret_scalar = (double)*(const float *)sl_graph_constant(graph, value);
        return true;
}

bool sl_match_close(double a, double b)
{
        return fabs(a - b) <= 1e-6 * fabs(b);
}

bool sl_match_operands(const struct sl_graph *graph, uint32_t value, uint32_t op, int order, uint32_t *ret_a, uint32_t *ret_b)
{
        uint32_t node = sl_match_made(graph, value, op);

        if (node == SL_VALUE_NONE || graph->nodes[node].n_inputs != 2 || order < 0 || order > 1)
                return false;
        *ret_a = graph->nodes[node].inputs[order];
        *ret_b = graph->nodes[node].inputs[1 - order];
        return true;
}

bool sl_match_with_scalar(const struct sl_graph *graph, uint32_t value, uint32_t op, uint32_t *ret_other, double *ret_scalar)
{
        uint32_t number;

        for (int order = 0; sl_match_operands(graph, value, op, order, ret_other, &number); order++)
                if (sl_match_scalar(graph, number, ret_scalar))
                        return true;
        return false;
}

/* The operands when @value is a product, or a quotient by a number, that may be looked through. */
static bool open_product(const struct sl_graph *graph, uint32_t value, bool is_root, double *number, uint32_t ret_operands[2])
{
        double divisor;
        uint32_t node;

        if (!is_root && sl_graph_only_user(graph, value) == SL_VALUE_NONE)
                return false;
        if (sl_match_operands(graph, value, SL_OP_MUL, 0, &ret_operands[0], &ret_operands[1]))
                return true;
        node = sl_match_made(graph, value, SL_OP_DIV);
        if (node == SL_VALUE_NONE || !sl_match_scalar(graph, graph->nodes[node].inputs[1], &divisor) || divisor == 0)
                return false;
        *number /= divisor;
        ret_operands[0] = graph->nodes[node].inputs[0];
        ret_operands[1] = SL_VALUE_NONE;
        return true;
}

uint32_t sl_match_product(
        const struct sl_graph *graph, uint32_t value, double *ret_number, uint32_t ret_factors[SL_MATCH_FACTORS_MAX])
{
        uint32_t open[SL_MATCH_FACTORS_MAX + 1] = {value}, n_open = 1, n_factors = 0, operands[2];
        double number = 1, scalar;
        bool is_root = true;

        while (n_open > 0) {
                uint32_t at = open[--n_open];

                if (sl_match_scalar(graph, at, &scalar)) {
                        number *= scalar;
                } else if (open_product(graph, at, is_root, &number, operands)) {
                        for (int i = 0; i < 2; i++) {
                                if (operands[i] == SL_VALUE_NONE)
                                        continue;
                                if (n_open + n_factors > SL_MATCH_FACTORS_MAX)
                                        return 0;
                                open[n_open++] = operands[i];
                        }
                } else if (n_factors < SL_MATCH_FACTORS_MAX) {
                        ret_factors[n_factors++] = at;
                } else {
                        return 0;
                }
                is_root = false;
        }
        *ret_number = number;
        return n_factors;
}

int sl_match_become(struct sl_graph *graph, uint32_t node, uint32_t op, const uint32_t *inputs, uint32_t n_inputs)
{
        graph->nodes[node].op = op;
        graph->nodes[node].attrs = (struct sl_attrs){0};
        graph->nodes[node].epilogue = (struct sl_epilogue){0};
        return sl_graph_set_inputs(graph, node, inputs, n_inputs);
}
