#include "rehearsal.h"

#include "base/cleanup.h"
#include "graph.h"
#include "placement.h"
#include "trial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_trial *, sl_trial_free)

struct stage {
        const struct sl_placement *placement;
        const struct sl_graph *graph;
        void **buffers;       /* of each value; a view has that of its root, which owns it */
        uint32_t *roots;      /* of each value: itself, or what it is a view of */
        uint32_t *last_reads; /* of a root: the last node that reads it */
        struct sl_node_desc desc;
        const void *constants[SL_NODE_INPUTS_MAX], *inputs[SL_NODE_INPUTS_MAX];
};

static struct stage *stage_free(struct stage *stage)
{
        if (!stage)
                return NULL;
        for (uint32_t i = 0; stage->buffers && i < stage->graph->n_values; i++)
                free(stage->buffers[i]);
        free(stage->buffers);
        free(stage->roots);
        free(stage->last_reads);
        free(stage);
        return NULL;
}

SL_DEFINE_CLEANUP(struct stage *, stage_free)

static void find_last_reads(struct stage *stage)
{
        const struct sl_graph *graph = stage->graph;

        for (uint32_t i = 0; i < graph->n_values; i++)
                stage->roots[i] = i;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];

                if (!stage->placement->backends[i])
                        stage->roots[node->outputs[0]] = stage->roots[node->inputs[0]];
                for (uint32_t k = 0; k < node->n_inputs; k++) {
                        if (node->inputs[k] != SL_VALUE_NONE)
                                stage->last_reads[stage->roots[node->inputs[k]]] = i;
                }
        }
}

static int fill_inputs(struct stage *stage)
{
        for (uint32_t i = 0; i < stage->graph->n_inputs; i++) {
                uint32_t value = stage->graph->inputs[i];
                const struct sl_tensor *tensor = &stage->graph->values[value].tensor;

                stage->buffers[value] = aligned_alloc(64, (sl_tensor_bytes(tensor) + 64) & ~63ull);
                if (!stage->buffers[value])
                        return -ENOMEM;
                sl_trial_fill(tensor, value, stage->buffers[value]);
        }
        return 0;
}

static int stage_new(const struct sl_placement *placement, struct stage **ret_stage)
{
        SL_CLEANUP(sl_cleanup_stage_free) struct stage *stage = calloc(1, sizeof(*stage));
        uint32_t n_values = placement->graph->n_values;

        if (!stage)
                return -ENOMEM;
        stage->placement = placement;
        stage->graph = placement->graph;
        stage->buffers = calloc(n_values + 1u, sizeof(*stage->buffers));
        stage->roots = calloc(n_values + 1u, sizeof(*stage->roots));
        stage->last_reads = calloc(n_values + 1u, sizeof(*stage->last_reads));
        if (!stage->buffers || !stage->roots || !stage->last_reads)
                return -ENOMEM;
        find_last_reads(stage);
        if (fill_inputs(stage) < 0)
                return -ENOMEM;
        *ret_stage = sl_take(stage);
        return 0;
}

/* False when an activation is not there: its producer was passed over. */
static bool gather(struct stage *stage, const struct sl_node *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                uint32_t value = node->inputs[i];
                const void *data;

                stage->constants[i] = stage->inputs[i] = NULL;
                if (value == SL_VALUE_NONE)
                        continue;
                data = sl_graph_constant(stage->graph, stage->roots[value]);
                stage->constants[i] = data;
                stage->inputs[i] = data ? NULL : stage->buffers[stage->roots[value]];
                if (!data && !stage->inputs[i])
                        return false;
        }
        return true;
}

static int keep_outputs(struct stage *stage, const struct sl_node *node, const struct sl_trial *trial)
{
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                const void *output = sl_trial_output(trial, i);
                uint64_t bytes = sl_tensor_bytes(&stage->desc.outputs[i]);
                void *copy;

                if (!output)
                        continue;
                copy = aligned_alloc(64, (bytes + 64) & ~63ull);
                if (!copy)
                        return -ENOMEM;
                memcpy(copy, output, bytes);
                stage->buffers[node->outputs[i]] = copy;
        }
        return 0;
}

static void drop_read(struct stage *stage, uint32_t node_index)
{
        const struct sl_node *node = &stage->graph->nodes[node_index];

        for (uint32_t i = 0; i < node->n_inputs; i++) {
                uint32_t root = node->inputs[i] == SL_VALUE_NONE ? SL_VALUE_NONE : stage->roots[node->inputs[i]];

                if (root != SL_VALUE_NONE && stage->last_reads[root] == node_index)
                        free(sl_take(stage->buffers[root]));
        }
}

/* What cannot run alone is passed over, and so is what reads its results. */
static int perform(struct stage *stage, uint32_t node_index, sl_rehearsal_visitor *visit, void *context)
{
        SL_CLEANUP(sl_cleanup_sl_trial_free) struct sl_trial *trial = NULL;
        const struct sl_node *node = &stage->graph->nodes[node_index];
        struct sl_rehearsed rehearsed = {
                .node = node_index, .desc = &stage->desc, .constants = stage->constants, .inputs = stage->inputs};
        int r;

        memset(&stage->desc, 0, sizeof(stage->desc));
        if (sl_graph_describe(stage->graph, node_index, &stage->desc) < 0 || !gather(stage, node))
                return 0;
        r = sl_trial_new(stage->placement->backends[node_index], &stage->desc, stage->constants, &trial, NULL);
        if (r == 0)
                r = sl_trial_run(trial, stage->inputs);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        rehearsed.trial = trial;
        r = visit(context, &rehearsed);
        if (r == 0)
                r = keep_outputs(stage, node, trial);
        drop_read(stage, node_index);
        return r;
}

int sl_rehearse(const struct sl_placement *placement, sl_rehearsal_visitor *visit, void *context)
{
        SL_CLEANUP(sl_cleanup_stage_free) struct stage *stage = NULL;
        int r = stage_new(placement, &stage);

        for (uint32_t i = 0; i < placement->graph->n_nodes && r == 0; i++) {
                if (placement->backends[i])
                        r = perform(stage, i, visit, context);
        }
        return r;
}
