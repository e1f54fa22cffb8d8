/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs whose shapes or paths are data-dependent, node by node with the dynamic executor of `ref`. A frame has a place for every
 * value of one graph; a body has a frame of its own for each run.
 */
#include "evaluate.h"

#include "base/error.h"
#include "control.h"
#include "graph.h"
#include "ref/dynamic.h"

#include <stdlib.h>

struct frame {
        struct sl_dynamic *dynamic;
        const struct sl_graph *graph;
        struct sl_live *values;
};

struct bodies {
        const struct sl_node *node;
        struct sl_dynamic *dynamic;
};

static int run_graph(
        struct sl_dynamic *dynamic, const struct sl_graph *graph, const struct sl_live *inputs, struct sl_live *ret_outputs);

static int run_body(void *context, uint32_t body, const struct sl_live *inputs, uint32_t n_inputs, struct sl_live *ret_outputs,
        uint32_t n_outputs)
{
        const struct bodies *bodies = context;
        const struct sl_graph *graph = bodies->node->bodies[body];

        if (graph->n_inputs != n_inputs || graph->n_outputs != n_outputs)
                return sl_error_set(bodies->dynamic->error, EINVAL, "a body has other inputs or outputs than its node");
        return run_graph(bodies->dynamic, graph, inputs, ret_outputs);
}

static struct sl_live value_of(const struct frame *frame, uint32_t index)
{
        const struct sl_value *value = index == SL_VALUE_NONE ? NULL : &frame->graph->values[index];

        if (!value)
                return (struct sl_live){0};
        if (value->kind == SL_VALUE_CONSTANT)
                return (struct sl_live){.tensor = value->tensor, .data = (void *)sl_graph_constant(frame->graph, index)};
        return frame->values[index];
}

static int run_node(struct frame *frame, uint32_t index)
{
        const struct sl_node *node = &frame->graph->nodes[index];
        struct bodies bodies = {.node = node, .dynamic = frame->dynamic};
        struct sl_live inputs[SL_NODE_INPUTS_MAX], outputs[SL_NODE_OUTPUTS_MAX] = {0};
        struct sl_node_desc desc;
        int result = sl_graph_describe(frame->graph, index, &desc);

        if (result < 0)
                return result;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                inputs[i] = value_of(frame, node->inputs[i]);
        if (node->n_bodies)
                result = sl_control_run(frame->dynamic, &desc, inputs, run_body, &bodies, outputs);
        else
                result = sl_dynamic_run(frame->dynamic, &desc, inputs, outputs);
        for (uint32_t i = 0; i < node->n_outputs && result == 0; i++) {
                if (node->outputs[i] == SL_VALUE_NONE)
                        sl_live_drop(&frame->dynamic->pool, &outputs[i]);
                else
                        frame->values[node->outputs[i]] = outputs[i];
        }
        return result < 0 ? sl_error_prefix(frame->dynamic->error, result, "node \"%s\"", node->name) : 0;
}

static int run_graph(
        struct sl_dynamic *dynamic, const struct sl_graph *graph, const struct sl_live *inputs, struct sl_live *ret_outputs)
{
        struct sl_live *values = calloc(graph->n_values + 1, sizeof(*values));
        struct frame frame = {.dynamic = dynamic, .graph = graph, .values = values};
        int result = values ? 0 : sl_error_set(dynamic->error, ENOMEM, "no memory for %u values", graph->n_values);

        for (uint32_t i = 0; i < graph->n_inputs && result == 0; i++)
                values[graph->inputs[i]] = sl_live_share(&inputs[i]);
        for (uint32_t i = 0; i < graph->n_nodes && result == 0; i++)
                if (!graph->nodes[i].dead)
                        result = run_node(&frame, i);
        for (uint32_t i = 0; i < graph->n_outputs && result == 0; i++) {
                struct sl_live output = value_of(&frame, graph->outputs[i]);

                ret_outputs[i] = sl_live_share(&output);
        }
        for (uint32_t i = 0; i < graph->n_values && values; i++)
                sl_live_drop(&dynamic->pool, &values[i]);
        free(values);
        return result;
}

int sl_graph_evaluate_open(const struct sl_graph *graph, const void *const *inputs, struct sl_pool *pool,
        struct sl_live *ret_outputs, struct sl_error *error)
{
        struct sl_dynamic dynamic = {.pool = *pool, .steps_left = SL_EVALUATE_STEPS_MAX, .work_left = UINT64_MAX, .error = error};
        struct sl_live *lives = calloc(graph->n_inputs + 1, sizeof(*lives));
        int result = lives ? 0 : sl_error_set(error, ENOMEM, "no memory for %u inputs", graph->n_inputs);

        for (uint32_t i = 0; i < graph->n_inputs && result == 0; i++)
                lives[i] = (struct sl_live){.tensor = graph->values[graph->inputs[i]].tensor, .data = (void *)inputs[i]};
        if (result == 0)
                result = run_graph(&dynamic, graph, lives, ret_outputs);
        free(lives);
        *pool = dynamic.pool;
        return result;
}
