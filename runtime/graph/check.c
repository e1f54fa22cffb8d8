/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants of a graph, walked node by node. Pure; the walk keeps one byte per value: has it been made yet?
 */
#include "base/error.h"
#include "control.h"
#include "graph.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int check_graph(const struct sl_graph *graph, uint32_t depth, struct sl_error *error);

static int check_constant(const struct sl_graph *graph, uint32_t index, struct sl_error *error)
{
        const struct sl_value *value = &graph->values[index];
        uint64_t bytes = sl_tensor_bytes(&value->tensor);

        if (bytes != value->data_bytes || (bytes && !value->data))
                return sl_error_set(error, EINVAL, "constant \"%s\" holds %" PRIu64 " bytes, its shape wants %" PRIu64, value->name,
                        value->data_bytes, bytes);
        return 0;
}

static int mark_sources(const struct sl_graph *graph, uint8_t *made, struct sl_error *error)
{
        for (uint32_t i = 0; i < graph->n_values; i++) {
                if (graph->values[i].kind != SL_VALUE_CONSTANT || graph->values[i].dead)
                        continue;
                int result = check_constant(graph, i, error);

                if (result < 0)
                        return result;
                made[i] = 1;
        }
        for (uint32_t i = 0; i < graph->n_inputs; i++) {
                uint32_t value = graph->inputs[i];

                if (value >= graph->n_values || graph->values[value].kind != SL_VALUE_INPUT || made[value])
                        return sl_error_set(error, EINVAL, "graph input %u is value %u, which is no input or one twice", i, value);
                made[value] = 1;
        }
        return 0;
}

static int check_inputs(const struct sl_graph *graph, const struct sl_node *node, const uint8_t *made, struct sl_error *error)
{
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                uint32_t value = node->inputs[i];

                if (value == SL_VALUE_NONE)
                        continue;
                if (value >= graph->n_values)
                        return sl_error_set(
                                error, EINVAL, "node \"%s\": input %u is value %u of %u", node->name, i, value, graph->n_values);
                if (!made[value])
                        return sl_error_set(error, EINVAL, "node \"%s\": input %u, \"%s\", is not made by any node before it",
                                node->name, i, graph->values[value].name);
                if (graph->values[value].dead)
                        return sl_error_set(
                                error, EINVAL, "node \"%s\": input %u, \"%s\", is dead", node->name, i, graph->values[value].name);
        }
        return 0;
}

static int check_outputs(const struct sl_graph *graph, const struct sl_node *node, uint8_t *made, struct sl_error *error)
{
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                uint32_t value = node->outputs[i];

                if (value == SL_VALUE_NONE)
                        continue;
                if (value >= graph->n_values || graph->values[value].kind != SL_VALUE_COMPUTED || made[value])
                        return sl_error_set(error, EINVAL, "node \"%s\": output %u is value %u, which has another producer",
                                node->name, i, value);
                made[value] = 1;
        }
        return 0;
}

/* The shapes that are recorded are those that the shape rules give. */
static int check_shapes(const struct sl_graph *graph, const struct sl_graph *inferred, struct sl_error *error)
{
        for (uint32_t i = 0; i < graph->n_values; i++) {
                const struct sl_tensor *have = &graph->values[i].tensor, *want = &inferred->values[i].tensor;
                char have_text[SL_SHAPE_TEXT_BYTES], want_text[SL_SHAPE_TEXT_BYTES];

                if (graph->values[i].dead || (have->dtype == want->dtype && sl_shape_equal(&have->shape, &want->shape)))
                        continue;
                return sl_error_set(error, EINVAL, "value \"%s\" is %s %s, its node makes %s %s", graph->values[i].name,
                        sl_dtype_name(have->dtype), sl_shape_print(&have->shape, have_text), sl_dtype_name(want->dtype),
                        sl_shape_print(&want->shape, want_text));
        }
        return 0;
}

static int check_inference(const struct sl_graph *graph, struct sl_error *error)
{
        struct sl_graph *copy;
        int result = sl_graph_copy(graph, &copy);

        if (result < 0)
                return result;
        result = sl_graph_infer(copy, error);
        if (result == 0)
                result = check_shapes(graph, copy, error);
        sl_graph_free(copy);
        return result;
}

static int check_bodies(const struct sl_node *node, uint32_t depth, struct sl_error *error)
{
        int result = 0;

        if ((node->n_bodies != 0) != sl_op_has_bodies(node->op))
                return sl_error_set(error, EINVAL, "node \"%s\" (%s): %u bodies", node->name, sl_op_name(node->op), node->n_bodies);
        if (node->n_bodies && depth >= SL_GRAPH_DEPTH_MAX)
                return sl_error_set(
                        error, EINVAL, "node \"%s\": bodies are nested deeper than %d levels", node->name, SL_GRAPH_DEPTH_MAX);
        for (uint32_t i = 0; i < node->n_bodies && result == 0; i++)
                result = check_graph(node->bodies[i], depth + 1, error);
        return result < 0 ? sl_error_prefix(error, result, "node \"%s\" (%s)", node->name, sl_op_name(node->op)) : 0;
}

static int check_order(const struct sl_graph *graph, uint8_t *made, uint32_t depth, struct sl_error *error)
{
        int result = mark_sources(graph, made, error);

        for (uint32_t i = 0; i < graph->n_nodes && result == 0; i++) {
                const struct sl_node *node = &graph->nodes[i];

                if (node->dead)
                        continue;
                if (node->op >= SL_OP_COUNT)
                        return sl_error_set(error, EINVAL, "node \"%s\": operator %u is none", node->name, node->op);
                result = check_inputs(graph, node, made, error);
                if (result == 0)
                        result = check_outputs(graph, node, made, error);
                if (result == 0)
                        result = check_bodies(node, depth, error);
        }
        for (uint32_t i = 0; i < graph->n_outputs && result == 0; i++)
                if (graph->outputs[i] >= graph->n_values || !made[graph->outputs[i]])
                        return sl_error_set(
                                error, EINVAL, "graph output %u is value %u, which nothing makes", i, graph->outputs[i]);
        return result;
}

static int check_graph(const struct sl_graph *graph, uint32_t depth, struct sl_error *error)
{
        uint8_t *made = calloc(graph->n_values + 1, 1);
        int result;

        if (!made)
                return sl_error_set(error, ENOMEM, "no memory to check a graph of %u values", graph->n_values);
        result = check_order(graph, made, depth, error);
        free(made);
        return result < 0 ? result : check_inference(graph, error);
}

int sl_graph_check(const struct sl_graph *graph, struct sl_error *error)
{
        return check_graph(graph, 0, error);
}
