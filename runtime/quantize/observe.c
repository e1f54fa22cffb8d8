/* SPDX-License-Identifier: Apache-2.0 */
#include "observe.h"

#include "backend.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "graph.h"
#include "placement.h"

#include <stdlib.h>
#include <string.h>

struct step {
        const struct sl_backend *backend; /* NULL: a view */
        struct sl_kernel *kernel;
        void *packed[SL_NODE_INPUTS_MAX];
        void *scratch;
};

struct sl_observation {
        struct sl_placement *placement;
        uint32_t n_source_values;
        struct step *steps;
        void **buffers;  /* of each value of the placement's graph; NULL: a constant, an input, a view */
        const void **at; /* where each value lies */
};

SL_DEFINE_CLEANUP(struct sl_observation *, sl_observation_free)

static void *allocate_lines(uint64_t bytes)
{
        return aligned_alloc(SL_LINE_BYTES, sl_align_up(bytes + 1, SL_LINE_BYTES));
}

static int pack_input(const struct sl_backend *backend, const struct sl_node_desc *desc, uint32_t input, const void *data,
        struct sl_packed *packed, void **ret_data)
{
        int r = backend->planner->pack(NULL, desc, input, packed);

        if (r < 0 || !packed->data_bytes)
                return r;
        *ret_data = allocate_lines(packed->data_bytes);
        return *ret_data ? backend->planner->repack(NULL, desc, input, packed, data, *ret_data) : -ENOMEM;
}

static int compile_step(struct sl_observation *o, uint32_t index, struct sl_error *error)
{
        const struct sl_graph *graph = o->placement->graph;
        SL_CLEANUP(sl_cleanup_free) struct sl_node_desc *desc = calloc(1, sizeof(*desc));
        SL_CLEANUP(sl_cleanup_free) struct sl_packed *packed = calloc(SL_NODE_INPUTS_MAX, sizeof(*packed));
        const void *constants[SL_NODE_INPUTS_MAX] = {NULL};
        const struct sl_node *node = &graph->nodes[index];
        struct step *step = &o->steps[index];
        int r = desc && packed ? sl_graph_describe(graph, index, desc) : -ENOMEM;

        for (uint32_t i = 0; i < node->n_inputs && r == 0; i++) {
                constants[i] = sl_graph_constant(graph, node->inputs[i]);
                if (!constants[i])
                        continue;
                r = pack_input(step->backend, desc, i, constants[i], &packed[i], &step->packed[i]);
                constants[i] = step->packed[i] ? step->packed[i] : constants[i];
        }
        if (r < 0)
                return sl_error_set(error, -r, "node \"%s\": its constants cannot be packed", node->name);
        r = step->backend->runner->compile(
                NULL, &(struct sl_kernel_source){.node = desc, .packed = packed, .constants = constants}, &step->kernel, error);
        if (r < 0)
                return sl_error_prefix(error, r, "node \"%s\"", node->name);
        step->scratch = allocate_lines(step->backend->runner->scratch_bytes(step->kernel));
        return step->scratch ? 0 : sl_error_set(error, ENOMEM, "node \"%s\": no memory for its scratch", node->name);
}

static int place_value(struct sl_observation *o, uint32_t value)
{
        o->buffers[value] = allocate_lines(sl_tensor_bytes(&o->placement->graph->values[value].tensor));
        o->at[value] = o->buffers[value];
        return o->buffers[value] ? 0 : -ENOMEM;
}

static int prepare_node(struct sl_observation *o, uint32_t index, struct sl_error *error)
{
        const struct sl_node *node = &o->placement->graph->nodes[index];

        o->steps[index].backend = o->placement->backends[index];
        if (!o->steps[index].backend)
                return 0;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (place_value(o, node->outputs[i]) < 0)
                        return sl_error_set(error, ENOMEM, "node \"%s\": no memory for its result", node->name);
        return compile_step(o, index, error);
}

int sl_observation_new(
        const struct sl_graph *graph, const char *backend, struct sl_observation **ret_observation, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_observation_free) struct sl_observation *o = calloc(1, sizeof(*o));
        int r = o ? sl_placement_new(graph, backend, NULL, &o->placement, error) : -ENOMEM;

        if (r < 0)
                return r;
        o->n_source_values = graph->n_values;
        o->steps = calloc(o->placement->graph->n_nodes + 1u, sizeof(*o->steps));
        o->buffers = calloc(o->placement->graph->n_values + 1u, sizeof(*o->buffers));
        o->at = calloc(o->placement->graph->n_values + 1u, sizeof(*o->at));
        if (!o->steps || !o->buffers || !o->at)
                return sl_error_set(error, ENOMEM, "no memory for a graph of %u nodes", graph->n_nodes);
        for (uint32_t i = 0; i < o->placement->graph->n_values; i++)
                o->at[i] = sl_graph_constant(o->placement->graph, i);
        for (uint32_t i = 0; i < o->placement->graph->n_nodes && r == 0; i++)
                r = prepare_node(o, i, error);
        if (r < 0)
                return r;
        *ret_observation = sl_take(o);
        return 0;
}

static void free_step(struct step *step)
{
        if (step->backend)
                step->backend->runner->kernel_free(step->kernel);
        for (uint32_t i = 0; i < SL_NODE_INPUTS_MAX; i++)
                free(step->packed[i]);
        free(step->scratch);
}

struct sl_observation *sl_observation_free(struct sl_observation *o)
{
        if (!o)
                return NULL;
        for (uint32_t i = 0; o->placement && o->steps && i < o->placement->graph->n_nodes; i++)
                free_step(&o->steps[i]);
        for (uint32_t i = 0; o->placement && o->buffers && i < o->placement->graph->n_values; i++)
                free(o->buffers[i]);
        free(o->steps);
        free(o->buffers);
        free(o->at);
        sl_placement_free(o->placement);
        free(o);
        return NULL;
}

static void show(const struct sl_observation *o, uint32_t value, sl_observer *observer, void *context)
{
        const struct sl_tensor *tensor = &o->placement->graph->values[value].tensor;

        if (value < o->n_source_values && tensor->dtype == SL_DTYPE_F32)
                observer(context, value, o->at[value], sl_shape_elements(&tensor->shape));
}

static int run_step(struct sl_observation *o, uint32_t index)
{
        const struct sl_node *node = &o->placement->graph->nodes[index];
        const struct step *step = &o->steps[index];
        const void *inputs[SL_NODE_INPUTS_MAX] = {NULL};
        void *outputs[SL_NODE_OUTPUTS_MAX] = {NULL};

        if (!step->backend) {
                o->at[node->outputs[0]] = o->at[node->inputs[0]];
                return 0;
        }
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i] != SL_VALUE_NONE)
                        inputs[i] = step->packed[i] ? step->packed[i] : o->at[node->inputs[i]];
        for (uint32_t i = 0; i < node->n_outputs; i++)
                outputs[i] = o->buffers[node->outputs[i]];
        return step->backend->runner->launch(
                step->kernel, &(struct sl_binding){.inputs = inputs, .outputs = outputs, .scratch = step->scratch});
}

static int explain(const struct sl_node *node, int status, struct sl_error *error)
{
        return sl_error_set(error, -status, "node \"%s\" (%s): %s", node->name, sl_op_name(node->op),
                status == -ERANGE ? "an index in an input is out of range" : strerrordesc_np(-status));
}

int sl_observation_run(
        struct sl_observation *o, const void *const *inputs, sl_observer *observer, void *context, struct sl_error *error)
{
        const struct sl_graph *graph = o->placement->graph;

        for (uint32_t i = 0; i < graph->n_inputs; i++) {
                o->at[graph->inputs[i]] = inputs[i];
                show(o, graph->inputs[i], observer, context);
        }
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                int r = run_step(o, i);

                if (r < 0)
                        return explain(&graph->nodes[i], r, error);
                for (uint32_t k = 0; k < graph->nodes[i].n_outputs; k++)
                        show(o, graph->nodes[i].outputs[k], observer, context);
        }
        return 0;
}
