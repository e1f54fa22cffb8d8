/* SPDX-License-Identifier: Apache-2.0 */
#include "bodies.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "graph.h"
#include "lower.h"
#include "lower_options.h"
#include "pack.h"
#include "placement.h"
#include "rounds_layout.h"
#include "schedule.h"
#include "tune.h"

#include <stdlib.h>

uint32_t sl_bodies_count_nodes(const struct sl_graph *graph)
{
        uint32_t n = graph->n_nodes;

        for (uint32_t i = 0; i < graph->n_nodes; i++)
                for (uint32_t b = 0; b < graph->nodes[i].n_bodies; b++)
                        n += sl_bodies_count_nodes(graph->nodes[i].bodies[b]);
        return n;
}

/* The number of the first node of a body: bodies are numbered behind the graph around them, those of earlier nodes first. */
static uint32_t first_node_of(const struct sl_graph *source, uint32_t first_node, uint32_t node, uint32_t body)
{
        uint32_t at = first_node + source->n_nodes;

        for (uint32_t i = 0; i <= node; i++)
                for (uint32_t b = 0; b < (i == node ? body : source->nodes[i].n_bodies); b++)
                        at += sl_bodies_count_nodes(source->nodes[i].bodies[b]);
        return at;
}

/* The node of the program's graph that a step with bodies stands for; NULL: it has none. */
static const struct sl_node *node_around(const struct sl_program *program, const struct sl_step *step)
{
        const struct sl_node *node;

        if (!step->dynamic || step->node == SL_VALUE_NONE)
                return NULL;
        node = &program->graph->nodes[program->placement->origins[step->node]];
        return node->n_bodies ? node : NULL;
}

static int place_body(const struct sl_graph *source, const struct sl_plan_info *info, const struct sl_target *target,
        struct sl_program *body, struct sl_error *error)
{
        int r = sl_placement_new(body->graph, info->backend, target, &body->placement, error);

        if (r < 0)
                return r;
        r = sl_schedule_new(body->placement, true, &body->schedule);
        return r < 0 ? sl_error_set(error, -r, "no memory for its schedule") : sl_bodies_new(source, info, body, error);
}

static int place_bodies_of(const struct sl_graph *source, const struct sl_plan_info *info, struct sl_program *program,
        struct sl_step *step, struct sl_error *error)
{
        const struct sl_node *node = node_around(program, step);
        uint32_t origin = (uint32_t)(node - program->graph->nodes);

        step->first_body = program->n_bodies;
        for (uint32_t b = 0; b < node->n_bodies; b++) {
                struct sl_program *body = &program->bodies[program->n_bodies++];
                int r;

                body->graph = node->bodies[b];
                body->first_node = first_node_of(source, program->first_node, origin, b);
                step->n_bodies++;
                r = place_body(source->nodes[origin].bodies[b], info, &program->placement->target, body, error);
                if (r < 0)
                        return sl_error_prefix(error, r, "body of node \"%s\"", node->name);
        }
        return 0;
}

int sl_bodies_new(
        const struct sl_graph *source, const struct sl_plan_info *info, struct sl_program *program, struct sl_error *error)
{
        struct sl_schedule *schedule = program->schedule;
        uint32_t n = 0;
        int r = 0;

        for (uint32_t s = 0; s < schedule->n_steps; s++) {
                const struct sl_node *node = node_around(program, &schedule->steps[s]);

                n += node ? node->n_bodies : 0;
        }
        program->bodies = calloc(n + 1u, sizeof(*program->bodies));
        if (!program->bodies)
                return sl_error_set(error, ENOMEM, "no memory for %u bodies", n);
        for (uint32_t s = 0; s < schedule->n_steps && r == 0; s++)
                if (node_around(program, &schedule->steps[s]))
                        r = place_bodies_of(source, info, program, &schedule->steps[s], error);
        return r;
}

void sl_bodies_free(struct sl_program *program)
{
        for (uint32_t i = 0; i < program->n_bodies; i++) {
                sl_bodies_free(&program->bodies[i]);
                sl_schedule_free(program->bodies[i].schedule);
                sl_placement_free(program->bodies[i].placement);
        }
        free(program->bodies);
        program->bodies = NULL;
        program->n_bodies = 0;
}

/* What a body takes may be data-dependent; then there is nothing to run it on. */
static bool can_be_timed(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_inputs; i++)
                if (!sl_shape_is_static(&graph->values[graph->inputs[i]].tensor.shape))
                        return false;
        return true;
}

/* The body that has number @first_node in each of the programs; false when one lacks it. */
static bool find_in_all(struct sl_program *programs, uint32_t n_programs, uint32_t first_node, struct sl_program *ret_bodies)
{
        for (uint32_t p = 0; p < n_programs; p++) {
                uint32_t b = 0;

                while (b < programs[p].n_bodies && programs[p].bodies[b].first_node != first_node)
                        b++;
                if (b == programs[p].n_bodies)
                        return false;
                ret_bodies[p] = programs[p].bodies[b];
        }
        return true;
}

static int tune_body(struct sl_program *bodies, uint32_t n_programs, const struct sl_tuning *tuning, struct sl_step_choice *choices,
        struct sl_error *error)
{
        struct sl_lower_options options = *tuning->options;
        struct sl_tuning own = *tuning;
        int r;

        if (!can_be_timed(bodies[0].graph))
                options.tune = SL_TUNE_OFF;
        own.options = &options;
        r = sl_tune(bodies, n_programs, &own, choices + bodies[0].first_node, bodies[0].graph->n_nodes, error);
        return r < 0 ? r : sl_bodies_tune(bodies, n_programs, tuning, choices, error);
}

int sl_bodies_tune(struct sl_program *programs, uint32_t n_programs, const struct sl_tuning *tuning, struct sl_step_choice *choices,
        struct sl_error *error)
{
        struct sl_program bodies[SL_PLAN_BATCHES_MAX];
        int r = 0;

        for (uint32_t b = 0; b < programs[0].n_bodies && r == 0; b++)
                if (find_in_all(programs, n_programs, programs[0].bodies[b].first_node, bodies))
                        r = tune_body(bodies, n_programs, tuning, choices, error);
        return r;
}

int sl_bodies_pack(struct sl_packing *packing, struct sl_program *program, bool *ret_again, struct sl_error *error)
{
        int r = 0;

        for (uint32_t b = 0; b < program->n_bodies && r == 0; b++) {
                r = sl_packing_walk(packing, &program->bodies[b], ret_again, error);
                if (r == 0)
                        r = sl_bodies_pack(packing, &program->bodies[b], ret_again, error);
        }
        return r;
}

/* The tensors of the body's ports, which are the caller's to free. */
static struct sl_tensor *list_ports(const struct sl_graph *graph)
{
        struct sl_tensor *ports = calloc((size_t)graph->n_inputs + graph->n_outputs + 1, sizeof(*ports));

        for (uint32_t i = 0; ports && i < graph->n_inputs; i++)
                ports[i] = graph->values[graph->inputs[i]].tensor;
        for (uint32_t i = 0; ports && i < graph->n_outputs; i++)
                ports[graph->n_inputs + i] = graph->values[graph->outputs[i]].tensor;
        return ports;
}

static int size_scratch(const struct sl_program *program, struct sl_step *step)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_node_desc *desc = calloc(1, sizeof(*desc));
        SL_CLEANUP(sl_cleanup_free) struct sl_rounds_layout *layout = calloc(1, sizeof(*layout));
        struct sl_rounds_body bodies[2] = {{.inputs = NULL}, {.inputs = NULL}};
        struct sl_tensor *ports[2] = {NULL, NULL};
        int r = desc && layout ? sl_graph_describe(program->placement->graph, step->node, desc) : -ENOMEM;

        for (uint32_t b = 0; b < step->n_bodies && r == 0; b++) {
                const struct sl_program *body = &program->bodies[step->first_body + b];
                const struct sl_graph *graph = body->placement->graph;

                ports[b] = list_ports(graph);
                r = ports[b] ? 0 : -ENOMEM;
                bodies[b] = (struct sl_rounds_body){.n_inputs = graph->n_inputs,
                        .n_outputs = graph->n_outputs,
                        .inputs = ports[b],
                        .outputs = ports[b] ? ports[b] + graph->n_inputs : NULL,
                        .workspace_bytes = body->schedule->workspace_bytes};
        }
        if (r == 0)
                r = sl_rounds_layout(desc, bodies, step->n_bodies, layout);
        if (r == 0)
                step->scratch_bytes = layout->bytes;
        free(ports[0]);
        free(ports[1]);
        return r;
}

int sl_bodies_place(struct sl_program *program)
{
        int r = 0;

        for (uint32_t b = 0; b < program->n_bodies && r == 0; b++) {
                r = sl_bodies_place(&program->bodies[b]);
                if (r == 0)
                        r = sl_schedule_place(program->bodies[b].schedule);
        }
        for (uint32_t s = 0; s < program->schedule->n_steps && r == 0; s++)
                if (program->schedule->steps[s].n_bodies)
                        r = size_scratch(program, &program->schedule->steps[s]);
        return r;
}
