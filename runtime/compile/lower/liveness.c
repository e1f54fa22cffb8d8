/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three walks. The first joins each view with its source and finds the last step that reads each such group. The second gives
 * every group its storage, in the order in which nodes make them, so that an in-place node can take over a block whose last reader
 * it is. The third appends copies for outputs that are still nowhere.
 */
#include "schedule.h"

#include "base/cleanup.h"
#include "graph.h"
#include "placement.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct group {
        uint32_t root;      /* of each value: the value whose bytes it shows; itself if it is no view */
        uint32_t last_read; /* of a root: the last step that reads any value of the group */
        uint32_t readers;   /* of a root: reads by steps */
};

struct analysis {
        const struct sl_placement *placement;
        const struct sl_graph *graph;
        struct sl_schedule *schedule;
        struct group *groups; /* per value */
        bool body;
};

SL_DEFINE_CLEANUP(struct sl_schedule *, sl_schedule_free)

static void join_views(struct analysis *analysis)
{
        const struct sl_graph *graph = analysis->graph;

        for (uint32_t i = 0; i < graph->n_values; i++)
                analysis->groups[i].root = i;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];

                if (!analysis->placement->backends[i])
                        analysis->groups[node->outputs[0]].root = analysis->groups[node->inputs[0]].root;
        }
}

static void add_steps(struct analysis *analysis)
{
        struct sl_schedule *schedule = analysis->schedule;

        for (uint32_t i = 0; i < analysis->graph->n_nodes; i++) {
                if (!analysis->placement->backends[i])
                        continue;
                schedule->steps[schedule->n_steps++] = (struct sl_step){.node = i,
                        .backend = analysis->placement->backends[i],
                        .scratch_block = SL_VALUE_NONE,
                        .dynamic = !sl_node_is_static(analysis->graph, &analysis->graph->nodes[i])};
        }
}

static void find_last_reads(struct analysis *analysis)
{
        for (uint32_t s = 0; s < analysis->schedule->n_steps; s++) {
                const struct sl_node *node = &analysis->graph->nodes[analysis->schedule->steps[s].node];

                for (uint32_t i = 0; i < node->n_inputs; i++) {
                        struct group *group;

                        if (node->inputs[i] == SL_VALUE_NONE)
                                continue;
                        group = &analysis->groups[analysis->groups[node->inputs[i]].root];
                        group->last_read = s;
                        group->readers++;
                }
        }
}

static bool is_open(const struct analysis *analysis, uint32_t value)
{
        return !sl_shape_is_static(&analysis->graph->values[value].tensor.shape);
}

static struct sl_storage *storage_of(const struct analysis *analysis, uint32_t value)
{
        return &analysis->schedule->storages[analysis->groups[value].root];
}

static bool is_model_output(const struct analysis *analysis, uint32_t root)
{
        for (uint32_t i = 0; i < analysis->graph->n_outputs; i++) {
                if (analysis->groups[analysis->graph->outputs[i]].root == root)
                        return true;
        }
        return false;
}

/* A value that nobody reads is alive in the step that makes it; one that a copy reads, to the end. */
static uint32_t last_use(const struct analysis *analysis, uint32_t root, uint32_t step)
{
        const struct group *group = &analysis->groups[root];

        if (is_model_output(analysis, root))
                return analysis->schedule->n_steps + analysis->graph->n_outputs;
        return group->readers ? group->last_read : step;
}

/* A slot for a value of open shape, which is made in @step. */
static struct sl_storage new_slot(struct analysis *analysis, uint32_t root, uint32_t step)
{
        struct sl_schedule *schedule = analysis->schedule;

        schedule->slot_ends[schedule->n_slots] = last_use(analysis, root, step);
        return (struct sl_storage){.place = SL_PLACE_SLOT, .index = schedule->n_slots++};
}

static void store_inputs_and_constants(struct analysis *analysis)
{
        for (uint32_t i = 0; i < analysis->graph->n_values; i++) {
                if (analysis->graph->values[i].kind == SL_VALUE_CONSTANT)
                        analysis->schedule->storages[i] = (struct sl_storage){.place = SL_PLACE_CONSTANT, .index = i};
        }
        for (uint32_t i = 0; i < analysis->graph->n_inputs; i++) {
                uint32_t value = analysis->graph->inputs[i];

                if (is_open(analysis, value))
                        *storage_of(analysis, value) = new_slot(analysis, value, 0);
                else
                        *storage_of(analysis, value) = (struct sl_storage){.place = SL_PLACE_INPUT, .index = i};
        }
}

/* Outputs that a node can write into the caller's buffer: the first one of each group, unless its readers may not trust it. */
static void store_outputs(struct analysis *analysis)
{
        for (uint32_t i = 0; i < analysis->graph->n_outputs; i++) {
                uint32_t root = analysis->groups[analysis->graph->outputs[i]].root;
                const struct sl_value *value = &analysis->graph->values[root];
                struct sl_storage *storage = &analysis->schedule->storages[root];

                if (value->kind != SL_VALUE_COMPUTED || storage->place != SL_PLACE_NONE || is_open(analysis, root))
                        continue;
                if (analysis->groups[root].readers && !sl_dtype_is_float(value->tensor.dtype))
                        continue;
                *storage = (struct sl_storage){.place = SL_PLACE_OUTPUT, .index = i};
        }
}

static uint32_t reads_of_root(const struct analysis *analysis, const struct sl_node *node, uint32_t root)
{
        uint32_t reads = 0;

        for (uint32_t i = 0; i < node->n_inputs; i++)
                reads += node->inputs[i] != SL_VALUE_NONE && analysis->groups[node->inputs[i]].root == root;
        return reads;
}

/* Two groups that share a block have one lifetime: the block's end says when the later one is over. */
static bool source_ends_here(const struct analysis *analysis, uint32_t root, uint32_t step)
{
        const struct sl_storage *storage = &analysis->schedule->storages[root];

        return storage->place == SL_PLACE_WORKSPACE && analysis->schedule->blocks[storage->index].last == step &&
               !is_model_output(analysis, root);
}

static bool same_tensor(const struct sl_tensor *a, const struct sl_tensor *b)
{
        return a->dtype == b->dtype && a->layout == b->layout && sl_shape_equal(&a->shape, &b->shape);
}

/* Output 0 may take over the block of input 0. */
static bool runs_in_place(const struct analysis *analysis, const struct sl_node *node, uint32_t step)
{
        const struct sl_graph *graph = analysis->graph;
        uint32_t root;

        if (!(sl_op_traits(node->op) & SL_OP_INPLACE) || !node->n_inputs || node->inputs[0] == SL_VALUE_NONE)
                return false;
        root = analysis->groups[node->inputs[0]].root;
        return same_tensor(&graph->values[node->inputs[0]].tensor, &graph->values[node->outputs[0]].tensor) &&
               reads_of_root(analysis, node, root) == 1 && source_ends_here(analysis, root, step);
}

static void store_result(struct analysis *analysis, const struct sl_node *node, uint32_t output, uint32_t step)
{
        uint32_t root = node->outputs[output];
        struct sl_schedule *schedule = analysis->schedule;
        struct sl_storage *storage = &schedule->storages[root];

        if (storage->place != SL_PLACE_NONE)
                return;
        if (is_open(analysis, root)) {
                *storage = new_slot(analysis, root, step);
                return;
        }
        if (output == 0 && runs_in_place(analysis, node, step)) {
                *storage = *storage_of(analysis, node->inputs[0]);
                schedule->blocks[storage->index].last = last_use(analysis, root, step);
                return;
        }
        schedule->blocks[schedule->n_blocks] = (struct sl_block){.bytes = sl_tensor_bytes(&analysis->graph->values[root].tensor),
                .first = step,
                .last = last_use(analysis, root, step)};
        *storage = (struct sl_storage){.place = SL_PLACE_WORKSPACE, .index = schedule->n_blocks++};
}

static void store_results(struct analysis *analysis)
{
        for (uint32_t s = 0; s < analysis->schedule->n_steps; s++) {
                const struct sl_node *node = &analysis->graph->nodes[analysis->schedule->steps[s].node];

                for (uint32_t i = 0; i < node->n_outputs; i++)
                        store_result(analysis, node, i, s);
        }
}

static void spread_over_views(struct analysis *analysis)
{
        for (uint32_t i = 0; i < analysis->graph->n_values; i++)
                analysis->schedule->storages[i] = *storage_of(analysis, i);
}

static bool lies_in_output(const struct analysis *analysis, uint32_t output)
{
        const struct sl_storage *storage = storage_of(analysis, analysis->graph->outputs[output]);

        return storage->place == SL_PLACE_OUTPUT && storage->index == output;
}

static void add_copies(struct analysis *analysis)
{
        for (uint32_t i = 0; i < analysis->graph->n_outputs; i++) {
                if (lies_in_output(analysis, i) || (analysis->body && is_open(analysis, analysis->graph->outputs[i])))
                        continue;
                analysis->schedule->steps[analysis->schedule->n_steps++] = (struct sl_step){.node = SL_VALUE_NONE,
                        .copy_value = analysis->graph->outputs[i],
                        .copy_output = i,
                        .backend = analysis->placement->copier,
                        .scratch_block = SL_VALUE_NONE,
                        .dynamic = is_open(analysis, analysis->graph->outputs[i])};
        }
}

static uint32_t count_results(const struct sl_graph *graph)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < graph->n_nodes; i++)
                n += graph->nodes[i].n_outputs;
        return n;
}

/* A step has at most one block of scratch, a result one of its own. */
static int allocate(struct sl_schedule *schedule, const struct sl_graph *graph)
{
        size_t n_steps = (size_t)graph->n_nodes + graph->n_outputs;

        schedule->n_values = graph->n_values;
        schedule->steps = calloc(n_steps + 1, sizeof(*schedule->steps));
        schedule->storages = calloc(graph->n_values + 1u, sizeof(*schedule->storages));
        schedule->blocks = calloc(n_steps + count_results(graph) + 1, sizeof(*schedule->blocks));
        schedule->slot_ends = calloc(graph->n_values + 1u, sizeof(*schedule->slot_ends));
        return schedule->steps && schedule->storages && schedule->blocks && schedule->slot_ends ? 0 : -ENOMEM;
}

int sl_schedule_new(const struct sl_placement *placement, bool body, struct sl_schedule **ret_schedule)
{
        SL_CLEANUP(sl_cleanup_sl_schedule_free) struct sl_schedule *schedule = calloc(1, sizeof(*schedule));
        SL_CLEANUP(sl_cleanup_free) struct group *groups = calloc(placement->graph->n_values + 1u, sizeof(*groups));
        struct analysis analysis = {
                .placement = placement, .graph = placement->graph, .schedule = schedule, .groups = groups, .body = body};

        if (!schedule || !groups || allocate(schedule, placement->graph) < 0)
                return -ENOMEM;
        join_views(&analysis);
        add_steps(&analysis);
        find_last_reads(&analysis);
        store_inputs_and_constants(&analysis);
        store_outputs(&analysis);
        store_results(&analysis);
        add_copies(&analysis);
        spread_over_views(&analysis);
        *ret_schedule = sl_take(schedule);
        return 0;
}

struct sl_schedule *sl_schedule_free(struct sl_schedule *schedule)
{
        if (!schedule)
                return NULL;
        for (uint32_t s = 0; s < schedule->n_steps; s++)
                free((void *)schedule->steps[s].blob.data);
        free(schedule->steps);
        free(schedule->storages);
        free(schedule->blocks);
        free(schedule->slot_ends);
        free(schedule);
        return NULL;
}

static void add_scratch(struct sl_schedule *schedule)
{
        for (uint32_t s = 0; s < schedule->n_steps; s++) {
                struct sl_step *step = &schedule->steps[s];

                if (!step->scratch_bytes)
                        continue;
                step->scratch_block = schedule->n_blocks;
                schedule->blocks[schedule->n_blocks++] = (struct sl_block){.bytes = step->scratch_bytes, .first = s, .last = s};
        }
}

int sl_schedule_place(struct sl_schedule *schedule)
{
        int r;

        add_scratch(schedule);
        for (uint32_t i = 0; i < schedule->n_blocks; i++)
                schedule->unshared_bytes += sl_align_up(schedule->blocks[i].bytes, SL_MEMORY_ALIGNMENT);
        r = sl_memory_lower_bound(schedule->blocks, schedule->n_blocks, &schedule->lower_bound_bytes);
        if (r < 0)
                return r;
        return sl_memory_plan(schedule->blocks, schedule->n_blocks, &schedule->workspace_bytes);
}
