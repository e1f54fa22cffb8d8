/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "graph.h"
#include "placement.h"
#include "trial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct buffer {
        void *data;
        uint64_t bytes;
        bool taken;
};

struct sl_stage {
        const struct sl_placement *placement;
        const struct sl_graph *graph;
        uint32_t *held;       /* of each value: its buffer, NONE; a view has that of its root */
        uint32_t *roots;      /* of each value: itself, or what it is a view of */
        uint32_t *last_reads; /* of a root: the last node that reads it, NONE: nobody, or it stays */
        struct buffer *buffers;
        uint32_t n_buffers, buffers_room;
        uint32_t scratch; /* its buffer, NONE */
        struct sl_stage_scene scene;
};

SL_DEFINE_CLEANUP(struct sl_stage *, sl_stage_free)

static void find_last_reads(struct sl_stage *stage)
{
        const struct sl_graph *graph = stage->graph;

        for (uint32_t i = 0; i < graph->n_values; i++) {
                stage->roots[i] = i;
                stage->held[i] = stage->last_reads[i] = NONE;
        }
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];

                if (!stage->placement->backends[i])
                        stage->roots[node->outputs[0]] = stage->roots[node->inputs[0]];
                for (uint32_t k = 0; k < node->n_inputs; k++) {
                        if (node->inputs[k] != SL_VALUE_NONE)
                                stage->last_reads[stage->roots[node->inputs[k]]] = i;
                }
        }
        for (uint32_t i = 0; i < graph->n_inputs; i++)
                stage->last_reads[graph->inputs[i]] = NONE;
}

static int grow(struct sl_stage *stage)
{
        uint32_t room = stage->buffers_room * 2 + 16;
        struct buffer *grown = reallocarray(stage->buffers, room, sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        stage->buffers = grown;
        stage->buffers_room = room;
        return 0;
}

static int add_buffer(struct sl_stage *stage, uint64_t bytes, uint32_t *ret_buffer)
{
        uint64_t whole = sl_align_up(bytes + 1, SL_LINE_BYTES);
        void *data;

        if (stage->n_buffers == stage->buffers_room && grow(stage) < 0)
                return -ENOMEM;
        data = aligned_alloc(SL_LINE_BYTES, whole);
        if (!data)
                return -ENOMEM;
        /* Its pages are taken now, not while somebody is timed. */
        memset(data, 0, whole);
        *ret_buffer = stage->n_buffers++;
        stage->buffers[*ret_buffer] = (struct buffer){data, whole, true};
        return 0;
}

static int take(struct sl_stage *stage, uint64_t bytes, uint32_t *ret_buffer)
{
        uint32_t best = NONE;

        for (uint32_t i = 0; i < stage->n_buffers; i++) {
                const struct buffer *buffer = &stage->buffers[i];

                if (!buffer->taken && buffer->bytes > bytes && (best == NONE || buffer->bytes < stage->buffers[best].bytes))
                        best = i;
        }
        if (best == NONE)
                return add_buffer(stage, bytes, ret_buffer);
        stage->buffers[best].taken = true;
        *ret_buffer = best;
        return 0;
}

static void give_back(struct sl_stage *stage, uint32_t *held)
{
        if (*held != NONE)
                stage->buffers[*held].taken = false;
        *held = NONE;
}

static int fill_inputs(struct sl_stage *stage)
{
        for (uint32_t i = 0; i < stage->graph->n_inputs; i++) {
                uint32_t value = stage->graph->inputs[i];
                const struct sl_tensor *tensor = &stage->graph->values[value].tensor;

                if (take(stage, sl_tensor_bytes(tensor), &stage->held[value]) < 0)
                        return -ENOMEM;
                sl_trial_fill(tensor, value, stage->buffers[stage->held[value]].data);
        }
        return 0;
}

int sl_stage_new(const struct sl_placement *placement, struct sl_stage **ret_stage)
{
        SL_CLEANUP(sl_cleanup_sl_stage_free) struct sl_stage *stage = calloc(1, sizeof(*stage));
        uint32_t n_values = placement->graph->n_values;

        if (!stage)
                return -ENOMEM;
        stage->placement = placement;
        stage->graph = placement->graph;
        stage->scratch = NONE;
        stage->held = calloc(n_values + 1u, sizeof(*stage->held));
        stage->roots = calloc(n_values + 1u, sizeof(*stage->roots));
        stage->last_reads = calloc(n_values + 1u, sizeof(*stage->last_reads));
        if (!stage->held || !stage->roots || !stage->last_reads)
                return -ENOMEM;
        find_last_reads(stage);
        if (fill_inputs(stage) < 0)
                return -ENOMEM;
        *ret_stage = sl_take(stage);
        return 0;
}

struct sl_stage *sl_stage_free(struct sl_stage *stage)
{
        if (!stage)
                return NULL;
        for (uint32_t i = 0; i < stage->n_buffers; i++)
                free(stage->buffers[i].data);
        free(stage->buffers);
        free(stage->held);
        free(stage->roots);
        free(stage->last_reads);
        free(stage);
        return NULL;
}

static void find_inputs(struct sl_stage *stage, const struct sl_node *node)
{
        struct sl_stage_scene *scene = &stage->scene;

        scene->complete = true;
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                uint32_t value = node->inputs[i], root = value == SL_VALUE_NONE ? NONE : stage->roots[value];

                scene->constants[i] = scene->inputs[i] = NULL;
                if (root == NONE)
                        continue;
                scene->constants[i] = sl_graph_constant(stage->graph, root);
                if (scene->constants[i])
                        continue;
                if (stage->held[root] == NONE)
                        scene->complete = false;
                else
                        scene->inputs[i] = stage->buffers[stage->held[root]].data;
        }
}

int sl_stage_enter(struct sl_stage *stage, uint32_t node_index, struct sl_stage_scene **ret_scene)
{
        const struct sl_node *node = &stage->graph->nodes[node_index];
        struct sl_stage_scene *scene = &stage->scene;
        int r;

        memset(&scene->desc, 0, sizeof(scene->desc));
        r = sl_graph_describe(stage->graph, node_index, &scene->desc);
        if (r < 0)
                return r;
        find_inputs(stage, node);
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                const struct sl_tensor *tensor = &scene->desc.outputs[i];
                uint32_t *held = &stage->held[node->outputs[i]];

                scene->outputs[i] = NULL;
                if (tensor->dtype == SL_DTYPE_NONE || !sl_shape_is_static(&tensor->shape))
                        continue;
                if (take(stage, sl_tensor_bytes(tensor), held) < 0)
                        return -ENOMEM;
                scene->outputs[i] = stage->buffers[*held].data;
        }
        *ret_scene = scene;
        return 0;
}

void sl_stage_leave(struct sl_stage *stage, uint32_t node_index, bool done)
{
        const struct sl_node *node = &stage->graph->nodes[node_index];

        give_back(stage, &stage->scratch);
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                uint32_t root = node->inputs[i] == SL_VALUE_NONE ? NONE : stage->roots[node->inputs[i]];

                if (root != NONE && stage->last_reads[root] == node_index)
                        give_back(stage, &stage->held[root]);
        }
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                if (!done && node->outputs[i] != SL_VALUE_NONE)
                        give_back(stage, &stage->held[node->outputs[i]]);
        }
}

static bool is_input(const struct sl_graph *graph, uint32_t value)
{
        return graph->values[value].kind == SL_VALUE_INPUT;
}

void sl_stage_clear(struct sl_stage *stage)
{
        for (uint32_t i = 0; i < stage->graph->n_values; i++) {
                if (!is_input(stage->graph, i))
                        give_back(stage, &stage->held[i]);
        }
}

int sl_stage_scratch(struct sl_stage *stage, uint64_t bytes, void **ret_data)
{
        int r = take(stage, bytes, &stage->scratch);

        if (r == 0)
                *ret_data = stage->buffers[stage->scratch].data;
        return r;
}
