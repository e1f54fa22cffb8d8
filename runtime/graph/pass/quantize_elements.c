/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies between DequantizeLinear and QuantizeLinear beside products: sums of two, limits, a mere change of scale become sums of
 * bytes; what only moves elements (or takes the greatest) moves bytes, which are rescaled behind it if they stand for something
 * else; Concat likewise, with what goes into it rescaled.
 */
#include "pass.h"

#include "base/error.h"
#include "graph.h"
#include "pass/quantity.h"

#include <float.h>

#define MOVES_MAX 16 /* one after the other */

/* Order is all that they look at, and a byte has the order of what it stands for; all backends have them for bytes. */
static bool moves(uint32_t op)
{
        switch (op) {
        case SL_OP_MAX_POOL:
        case SL_OP_IDENTITY:
        case SL_OP_RESHAPE:
        case SL_OP_FLATTEN:
        case SL_OP_SQUEEZE:
        case SL_OP_UNSQUEEZE:
        case SL_OP_TRANSPOSE:
        case SL_OP_SLICE:
        case SL_OP_GATHER:
                return true;
        default:
                return false;
        }
}

static int set_terms(
        struct sl_attrs *attrs, const struct sl_quantity *x, const struct sl_quantity *addend, const struct sl_quantity *y)
{
        int r = sl_attrs_set_float(attrs, SL_ATTR_X_SCALE, (double)x->scale);

        r = r ? r : sl_attrs_set_int(attrs, SL_ATTR_X_ZERO, x->zero);
        r = r || !addend ? r : sl_attrs_set_float(attrs, SL_ATTR_ADDEND_SCALE, (double)addend->scale);
        r = r || !addend ? r : sl_attrs_set_int(attrs, SL_ATTR_ADDEND_ZERO, addend->zero);
        r = r ? r : sl_attrs_set_float(attrs, SL_ATTR_Y_SCALE, (double)y->scale);
        r = r ? r : sl_attrs_set_int(attrs, SL_ATTR_Y_ZERO, y->zero);
        return r ? r : sl_attrs_set_int(attrs, SL_ATTR_TO, y->dtype);
}

/* The node computes the bytes of @last, a QuantizeLinear, from those inputs. */
static int become_sum(struct sl_graph *graph, uint32_t index, const uint32_t *inputs, const struct sl_quantity *quantities,
        uint32_t n_inputs, const struct sl_quantity *result, const struct sl_epilogue *epilogue, struct sl_error *error)
{
        struct sl_attrs attrs = {0};
        int r = set_terms(&attrs, &quantities[0], n_inputs > 1 ? &quantities[1] : NULL, result);

        r = r ? r : sl_graph_set_inputs(graph, index, inputs, n_inputs);
        if (r < 0)
                return r;
        graph->nodes[index].op = SL_OP_QUANTIZED_ADD;
        graph->nodes[index].attrs = attrs;
        graph->nodes[index].epilogue = *epilogue;
        return sl_graph_infer_node(graph, index, error);
}

/* Node @first computes what @last did; between them nobody else looked. */
static void take_over(struct sl_graph *graph, uint32_t first, uint32_t last)
{
        if (first == last)
                return;
        graph->values[graph->nodes[first].outputs[0]].dead = 1;
        sl_graph_set_output(graph, first, 0, graph->nodes[last].outputs[0]);
        graph->nodes[last].dead = 1;
}

static bool read_limit(const struct sl_node *node, struct sl_epilogue *epilogue)
{
        if (node->op == SL_OP_RELU) {
                epilogue->activation = SL_ACT_RELU;
                return true;
        }
        if (node->op != SL_OP_CLIP || node->n_inputs != 1)
                return false;
        epilogue->activation = SL_ACT_CLIP;
        epilogue->act_a = (float)sl_attrs_float(&node->attrs, SL_ATTR_MIN, -FLT_MAX);
        epilogue->act_b = (float)sl_attrs_float(&node->attrs, SL_ATTR_MAX, FLT_MAX);
        return epilogue->act_a <= epilogue->act_b;
}

static bool same_shape(const struct sl_graph *graph, uint32_t a, uint32_t b)
{
        const struct sl_shape *x = &graph->values[a].tensor.shape;

        for (uint32_t i = 0; i < x->rank; i++)
                if (x->dims[i] == SL_DIM_UNKNOWN)
                        return false;
        return sl_shape_equal(x, &graph->values[b].tensor.shape);
}

/* Add of two, or one alone with the limit or the QuantizeLinear at @index. */
static int quantize_sum(struct sl_graph *graph, uint32_t first, uint32_t last, const struct sl_quantity *result,
        const struct sl_epilogue *epilogue, bool *ret_done, struct sl_error *error)
{
        const struct sl_node *node = &graph->nodes[first];
        uint32_t n_inputs = node->op == SL_OP_ADD ? 2 : 1, inputs[2];
        struct sl_quantity quantities[2];

        for (uint32_t i = 0; i < n_inputs; i++) {
                inputs[i] = sl_quantity_bytes(graph, node->inputs[i], &quantities[i]);
                if (inputs[i] == SL_VALUE_NONE || !same_shape(graph, inputs[i], node->outputs[0]))
                        return 0;
        }
        *ret_done = true;
        take_over(graph, first, last);
        return become_sum(graph, first, inputs, quantities, n_inputs, result, epilogue, error);
}

/*
 * Follows what only moves elements from the QuantizeLinear back to bytes, at most @left nodes; nobody else looks at what lies
 * between.
 */
static uint32_t find_moved(const struct sl_graph *graph, uint32_t value, uint32_t left, struct sl_quantity *ret_quantity)
{
        uint32_t maker = sl_graph_producer(graph, value), bytes = sl_quantity_bytes(graph, value, ret_quantity);

        if (bytes != SL_VALUE_NONE)
                return bytes;
        if (!left || maker == SL_VALUE_NONE || !moves(graph->nodes[maker].op) || graph->nodes[maker].n_outputs != 1 ||
                sl_graph_only_user(graph, value) == SL_VALUE_NONE)
                return SL_VALUE_NONE;
        return find_moved(graph, graph->nodes[maker].inputs[0], left - 1, ret_quantity);
}

/* Bytes that are rounded once more to what they are. */
static int become_bytes(struct sl_graph *graph, uint32_t index, uint32_t bytes, struct sl_error *error)
{
        int r = sl_graph_set_inputs(graph, index, &bytes, 1);

        if (r < 0)
                return r;
        graph->nodes[index].op = SL_OP_IDENTITY;
        graph->nodes[index].attrs = (struct sl_attrs){0};
        return sl_graph_infer_node(graph, index, error);
}

/* The first mover reads the bytes themselves; the types of the others follow. */
static int move_bytes(struct sl_graph *graph, uint32_t value, struct sl_error *error)
{
        uint32_t maker = sl_graph_producer(graph, value);
        struct sl_quantity quantity;
        uint32_t bytes = sl_quantity_bytes(graph, graph->nodes[maker].inputs[0], &quantity);
        int r = bytes == SL_VALUE_NONE ? move_bytes(graph, graph->nodes[maker].inputs[0], error) : 0;

        if (r < 0)
                return r;
        if (bytes != SL_VALUE_NONE)
                sl_graph_set_input(graph, maker, 0, bytes);
        return sl_graph_infer_node(graph, maker, error);
}

static int quantize_moves(
        struct sl_graph *graph, uint32_t last, const struct sl_quantity *result, bool *ret_done, struct sl_error *error)
{
        uint32_t value = graph->nodes[last].inputs[0], bytes;
        struct sl_quantity quantity;
        int r;

        if (find_moved(graph, value, MOVES_MAX, &quantity) == SL_VALUE_NONE)
                return 0;
        *ret_done = true;
        bytes = sl_quantity_bytes(graph, value, &quantity);
        if (bytes != SL_VALUE_NONE)
                return sl_quantity_equal(&quantity, result)
                               ? become_bytes(graph, last, bytes, error)
                               : become_sum(graph, last, &bytes, &quantity, 1, result, &(struct sl_epilogue){0}, error);
        r = move_bytes(graph, value, error);
        if (r < 0)
                return r;
        if (sl_quantity_equal(&quantity, result)) {
                take_over(graph, sl_graph_producer(graph, value), last);
                return 0;
        }
        return become_sum(graph, last, &value, &quantity, 1, result, &(struct sl_epilogue){0}, error);
}

/* A DequantizeLinear of @value that can become the rescaling, or bytes that need none. */
static bool can_rescale(const struct sl_graph *graph, uint32_t value, const struct sl_quantity *result)
{
        struct sl_quantity quantity;

        if (sl_quantity_bytes(graph, value, &quantity) == SL_VALUE_NONE)
                return false;
        return sl_quantity_equal(&quantity, result) || sl_graph_only_user(graph, value) != SL_VALUE_NONE;
}

/* One that Concat reads twice is rescaled already. */
static int rescale_input(
        struct sl_graph *graph, uint32_t concat, uint32_t input, const struct sl_quantity *result, struct sl_error *error)
{
        uint32_t value = graph->nodes[concat].inputs[input];
        struct sl_quantity quantity;
        uint32_t bytes = sl_quantity_bytes(graph, value, &quantity);

        if (bytes == SL_VALUE_NONE)
                return 0;
        if (sl_quantity_equal(&quantity, result)) {
                sl_graph_set_input(graph, concat, input, bytes);
                return 0;
        }
        return become_sum(graph, sl_graph_producer(graph, value), &bytes, &quantity, 1, result, &(struct sl_epilogue){0}, error);
}

static int quantize_concat(struct sl_graph *graph, uint32_t concat, uint32_t last, const struct sl_quantity *result, bool *ret_done,
        struct sl_error *error)
{
        uint32_t n_inputs = graph->nodes[concat].n_inputs;
        int r = 0;

        for (uint32_t i = 0; i < n_inputs; i++)
                if (!can_rescale(graph, graph->nodes[concat].inputs[i], result))
                        return 0;
        for (uint32_t i = 0; i < n_inputs && r == 0; i++)
                r = rescale_input(graph, concat, i, result, error);
        if (r < 0)
                return r;
        *ret_done = true;
        take_over(graph, concat, last);
        return sl_graph_infer_node(graph, concat, error);
}

/* @last is a QuantizeLinear for one scale. */
static int quantize(struct sl_graph *graph, uint32_t last, const struct sl_quantity *result, struct sl_error *error)
{
        uint32_t value = graph->nodes[last].inputs[0], first = sl_graph_producer(graph, value);
        struct sl_epilogue epilogue = {0};
        struct sl_quantity quantity;
        bool done = false;
        int r;

        /* Bytes that are only rescaled, perhaps moved on the way. */
        r = quantize_moves(graph, last, result, &done, error);
        if (r < 0 || done || first == SL_VALUE_NONE || sl_graph_only_user(graph, value) == SL_VALUE_NONE)
                return r;
        if (graph->nodes[first].op == SL_OP_CONCAT)
                return quantize_concat(graph, first, last, result, &done, error);
        if (read_limit(&graph->nodes[first], &epilogue)) {
                uint32_t limited = graph->nodes[first].inputs[0], adder = sl_graph_producer(graph, limited);

                if (sl_quantity_bytes(graph, limited, &quantity) != SL_VALUE_NONE)
                        return quantize_sum(graph, first, last, result, &epilogue, &done, error);
                if (adder == SL_VALUE_NONE || graph->nodes[adder].op != SL_OP_ADD ||
                        sl_graph_only_user(graph, limited) == SL_VALUE_NONE)
                        return 0;
                r = quantize_sum(graph, adder, last, result, &epilogue, &done, error);
                graph->nodes[first].dead = done ? 1 : graph->nodes[first].dead;
                graph->values[value].dead = done ? 1 : graph->values[value].dead;
                return r;
        }
        return graph->nodes[first].op == SL_OP_ADD ? quantize_sum(graph, first, last, result, &epilogue, &done, error) : 0;
}

int sl_pass_quantize_elements(struct sl_graph *graph, const struct sl_pass_options *options, struct sl_error *error)
{
        /* DequantizeLinears that nobody needs any more would count as users. */
        int done = sl_pass_remove_dead(graph, error);

        (void)options;
        if (done < 0)
                return done;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                struct sl_quantity result;
                int r = 0;

                if (!graph->nodes[i].dead && graph->nodes[i].op == SL_OP_QUANTIZE_LINEAR &&
                        sl_quantity_of(graph, &graph->nodes[i], &result))
                        r = quantize(graph, i, &result, error);
                if (r < 0)
                        return error && error->text[0] ? r
                                                       : sl_error_set(error, -r, "node \"%s\": no memory", graph->nodes[i].name);
        }
        return 0;
}
