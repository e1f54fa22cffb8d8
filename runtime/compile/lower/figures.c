/* SPDX-License-Identifier: Apache-2.0 */
#include "figures.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "step_choice.h"
#include "graph.h"
#include "half_weights.h"
#include "lower.h"
#include "pack.h"
#include "placement.h"
#include "schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_lowered *, sl_lowered_free)

static void fill_size(const struct sl_program *program, uint32_t i, struct sl_compile_figures *figures)
{
        const struct sl_schedule *schedule = program->schedule;

        figures->memory[i] = (struct sl_inspect_memory){.batch = program->batch,
                .workspace_bytes = schedule->workspace_bytes,
                .sum_bytes = schedule->unshared_bytes,
                .bound_bytes = schedule->lower_bound_bytes};
        figures->lower_bound_bytes[i] = schedule->lower_bound_bytes;
        figures->n_steps[i] = schedule->n_steps;
        figures->n_reorders[i] = program->placement->n_reorders;
}

/* Halves are what is smaller than the tensor: what a kernel packs in float32 is as large or larger. */
static uint64_t saved_bytes(const struct sl_lowered *lowered, const struct sl_program *program, uint32_t index, uint32_t number)
{
        const struct sl_graph *graph = program->placement->graph;
        const struct sl_node *node = &graph->nodes[index];
        struct sl_packed_constant constant;
        uint64_t saved = 0;

        for (uint32_t i = 0; i < node->n_inputs && sl_attrs_find(&node->attrs, SL_ATTR_WEIGHTS); i++)
                if (sl_packing_find(lowered->packing, number, i, &constant) &&
                        constant.packed->data_bytes < sl_tensor_bytes(&graph->values[node->inputs[i]].tensor))
                        saved += constant.packed->data_bytes;
        return saved;
}

static void fill_weights(const struct sl_lowered *lowered, const struct sl_program *program, uint32_t index, uint32_t number,
        struct sl_inspect_node *target)
{
        const struct sl_node *node = &program->placement->graph->nodes[index];
        int64_t dtype = sl_attrs_int(&node->attrs, SL_ATTR_WEIGHTS, SL_DTYPE_NONE);

        target->saved_bytes = saved_bytes(lowered, program, index, number);
        if (target->saved_bytes)
                target->weights = dtype == SL_DTYPE_F16 ? "f16" : "bf16";
        else if (sl_half_weights_overflow(node))
                target->weights = "fp32";
}

/* Of the node the name, of its own. Return: 0, -ENOMEM. */
static int fill_node(const struct sl_lowered *lowered, const struct sl_program *program, const struct sl_step *step,
        struct sl_inspect_node *target)
{
        bool copies = step->node == SL_VALUE_NONE;
        const struct sl_node *node = copies ? NULL : &program->placement->graph->nodes[step->node];
        uint32_t origin = copies ? SL_VALUE_NONE : program->placement->origins[step->node];

        target->name = strdup(node ? node->name : "");
        if (!target->name)
                return -ENOMEM;
        target->operator= sl_op_name(copies ? SL_OP_IDENTITY : node->op);
        target->backend = step->backend->name;
        target->algorithm = target->weights = "";
        if (!step->dynamic && step->backend->planner->engine) {
                target->algorithm = step->backend->planner->engine(step->blob.data ? &step->blob : NULL);
                snprintf(target->why, sizeof(target->why), "%s", target->algorithm);
                return 0;
        }
        if (origin == SL_VALUE_NONE)
                return 0;
        target->algorithm = sl_algorithm_name(lowered->choices[program->first_node + origin].algorithm);
        sl_choice_text(&lowered->choices[program->first_node + origin], target->why);
        fill_weights(lowered, program, step->node, program->first_node + origin, target);
        return 0;
}

/* Its steps, then those of its bodies. */
static uint32_t count_steps(const struct sl_program *program)
{
        uint32_t n = program->schedule->n_steps;

        for (uint32_t b = 0; b < program->n_bodies; b++)
                n += count_steps(&program->bodies[b]);
        return n;
}

static int fill_steps(const struct sl_lowered *lowered, const struct sl_program *program, struct sl_compile_figures *figures)
{
        int r = 0;

        for (uint32_t i = 0; i < program->schedule->n_steps && r == 0; i++)
                r = fill_node(lowered, program, &program->schedule->steps[i], &figures->nodes[figures->n_nodes++]);
        for (uint32_t b = 0; b < program->n_bodies && r == 0; b++)
                r = fill_steps(lowered, &program->bodies[b], figures);
        return r;
}

static int fill_nodes(const struct sl_lowered *lowered, struct sl_compile_figures *figures)
{
        figures->nodes = calloc(count_steps(&lowered->programs[0]) + 1u, sizeof(*figures->nodes));
        if (!figures->nodes)
                return -ENOMEM;
        return fill_steps(lowered, &lowered->programs[0], figures);
}

int sl_compile_figures(const struct sl_graph *graph, const struct sl_lower_options *options, struct sl_compile_figures *ret_figures,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_lowered_free) struct sl_lowered *lowered = NULL;
        int r = sl_lowered_new(graph, options, &lowered, error);

        if (r == 0)
                r = sl_lowered_measure(lowered, error);
        if (r < 0)
                return r;
        memset(ret_figures, 0, sizeof(*ret_figures));
        memcpy(ret_figures->backend, lowered->info.backend, sizeof(ret_figures->backend));
        ret_figures->weights_bytes = lowered->info.weights_bytes;
        ret_figures->multiply_adds = lowered->info.multiply_adds;
        ret_figures->batchable = lowered->info.batchable;
        ret_figures->n_batches = lowered->info.n_batches;
        for (uint32_t i = 0; i < lowered->info.n_batches; i++)
                fill_size(&lowered->programs[i], i, ret_figures);
        if (fill_nodes(lowered, ret_figures) < 0) {
                sl_compile_figures_free(ret_figures);
                return sl_error_set(error, ENOMEM, "no memory for %u nodes", lowered->programs[0].schedule->n_steps);
        }
        return 0;
}

void sl_compile_figures_free(struct sl_compile_figures *figures)
{
        for (uint32_t i = 0; i < figures->n_nodes; i++)
                free((char *)figures->nodes[i].name);
        free(figures->nodes);
        figures->nodes = NULL;
        figures->n_nodes = 0;
}
