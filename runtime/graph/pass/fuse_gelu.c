/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gelu spelled out, as exporters do before opset 20, becomes Gelu:
 *
 *     0.5 * x * (1 + Erf(x / sqrt(2)))                                      the exact one
 *     0.5 * x * (1 + Tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))             approximate = 1
 *     0.5 * x * (1 + Tanh(sqrt(2 / pi) * x * (1 + 0.044715 * x^2)))         the same, factored out
 *
 * in any order of factors and summands.
 */
#include "pass.h"

#include "base/error.h"
#include "graph.h"
#include "pass/match.h"

#include <math.h>

#define CUBIC 0.044715

/* @value is number * x^power; x * x * x, Pow(x, 3) and mixtures of them. */
static bool is_power(const struct sl_graph *graph, uint32_t value, uint32_t x, double number, double power)
{
        uint32_t factors[SL_MATCH_FACTORS_MAX], n;
        double found, exponent, sum = 0;

        n = sl_match_product(graph, value, &found, factors);
        for (uint32_t i = 0; i < n; i++) {
                uint32_t node = sl_match_made(graph, factors[i], SL_OP_POW);

                if (factors[i] == x)
                        sum += 1;
                else if (node != SL_VALUE_NONE && graph->nodes[node].inputs[0] == x &&
                         sl_match_scalar(graph, graph->nodes[node].inputs[1], &exponent))
                        sum += exponent;
                else
                        return false;
        }
        return n && sl_match_close(found, number) && sum == power;
}

/* x + 0.044715 * x^3 */
static bool is_cubic(const struct sl_graph *graph, uint32_t value, uint32_t x)
{
        uint32_t a, b;

        for (int order = 0; sl_match_operands(graph, value, SL_OP_ADD, order, &a, &b); order++)
                if (a == x && is_power(graph, b, x, CUBIC, 3))
                        return true;
        return false;
}

/* 1 + 0.044715 * x^2 */
static bool is_square(const struct sl_graph *graph, uint32_t value, uint32_t x)
{
        uint32_t other;
        double one;

        return sl_match_with_scalar(graph, value, SL_OP_ADD, &other, &one) && one == 1 && is_power(graph, other, x, CUBIC, 2);
}

static bool is_tanh_argument(const struct sl_graph *graph, uint32_t value, uint32_t x)
{
        uint32_t factors[SL_MATCH_FACTORS_MAX];
        double number;
        uint32_t n = sl_match_product(graph, value, &number, factors);

        if (!sl_match_close(number, sqrt(2 / M_PI)))
                return false;
        if (n == 1)
                return is_cubic(graph, factors[0], x);
        return n == 2 &&
               ((factors[0] == x && is_square(graph, factors[1], x)) || (factors[1] == x && is_square(graph, factors[0], x)));
}

/* @value is 1 + Erf(x / sqrt(2)) or its approximation. */
static bool is_bend(const struct sl_graph *graph, uint32_t value, uint32_t x, int64_t *ret_approximate)
{
        uint32_t other, node, factors[SL_MATCH_FACTORS_MAX];
        double one, number;

        if (!sl_match_with_scalar(graph, value, SL_OP_ADD, &other, &one) || one != 1)
                return false;
        node = sl_match_made(graph, other, SL_OP_ERF);
        if (node != SL_VALUE_NONE) {
                *ret_approximate = 0;
                return sl_match_product(graph, graph->nodes[node].inputs[0], &number, factors) == 1 && factors[0] == x &&
                       sl_match_close(number, M_SQRT1_2);
        }
        node = sl_match_made(graph, other, SL_OP_TANH);
        *ret_approximate = 1;
        return node != SL_VALUE_NONE && is_tanh_argument(graph, graph->nodes[node].inputs[0], x);
}

static int fuse(struct sl_graph *graph, uint32_t index)
{
        uint32_t factors[SL_MATCH_FACTORS_MAX];
        int64_t approximate;
        double number;

        if (sl_match_product(graph, graph->nodes[index].outputs[0], &number, factors) != 2 || !sl_match_close(number, 0.5))
                return 0;
        for (uint32_t i = 0; i < 2; i++) {
                int result;

                if (!is_bend(graph, factors[1 - i], factors[i], &approximate))
                        continue;
                result = sl_match_become(graph, index, SL_OP_GELU, &factors[i], 1);
                return result < 0 ? result : sl_attrs_set_int(&graph->nodes[index].attrs, SL_ATTR_APPROXIMATE, approximate);
        }
        return 0;
}

int sl_pass_fuse_gelu(struct sl_graph *graph, struct sl_error *error)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];

                if (node->dead || (node->op != SL_OP_MUL && node->op != SL_OP_DIV))
                        continue;
                if (fuse(graph, i) < 0)
                        return sl_error_set(error, ENOMEM, "node \"%s\": no memory for a Gelu", graph->nodes[i].name);
        }
        return sl_pass_remove_dead(graph, error);
}
