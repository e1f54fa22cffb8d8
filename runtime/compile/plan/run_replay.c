/* SPDX-License-Identifier: Apache-2.0 */
#include "run_replay.h"

#include "backend.h"
#include "base/error.h"
#include "format.h"
#include "kernel_cache.h"
#include "op.h"
#include "pace.h"
#include "ref/kernels.h"

#include <stdlib.h>
#include <string.h>

struct sl_run_replay *sl_run_replay_free(struct sl_run_replay *replay)
{
        if (!replay)
                return NULL;
        for (uint32_t i = 0; i < replay->n_steps; i++)
                sl_kept_kernel_drop(replay->steps[i].kept);
        free(replay);
        return NULL;
}

/* Absent inputs and outputs are zeros: those that the node before had are cleared. */
static void unfold_node(const struct sl_run_replay_node *from, struct sl_node_desc *node)
{
        for (uint32_t i = from->n_inputs; i < node->n_inputs; i++)
                node->inputs[i] = (struct sl_tensor){0};
        for (uint32_t i = from->n_outputs; i < node->n_outputs; i++)
                node->outputs[i] = (struct sl_tensor){0};
        node->op = from->op;
        node->n_inputs = from->n_inputs;
        node->n_outputs = from->n_outputs;
        node->epilogue = from->epilogue;
        node->attrs.count = from->n_attrs;
        memcpy(node->attrs.items, from->attrs, from->n_attrs * sizeof(node->attrs.items[0]));
        memcpy(node->inputs, from->tensors, from->n_inputs * sizeof(node->inputs[0]));
        memcpy(node->outputs, from->tensors + from->n_inputs, from->n_outputs * sizeof(node->outputs[0]));
}

static int launch(const struct sl_run_replay_step *step, void *const *bases, struct sl_pace *pace, struct sl_node_desc *node)
{
        const void *inputs[SL_NODE_INPUTS_MAX];
        void *outputs[SL_NODE_OUTPUTS_MAX];
        const struct sl_binding binding = {.inputs = inputs,
                .outputs = outputs,
                .scratch = sl_run_replay_at(bases, &step->scratch),
                .pace = pace,
                .draws = &pace->draws};

        for (uint32_t i = 0; i < step->n_inputs; i++)
                inputs[i] = sl_run_replay_at(bases, &step->refs[i]);
        for (uint32_t i = 0; i < step->n_outputs; i++)
                outputs[i] = sl_run_replay_at(bases, &step->refs[step->n_inputs + i]);
        if (step->backend)
                return step->backend->runner->launch(step->kernel, &binding);
        unfold_node(&step->node, node);
        return sl_ref_run(node, &binding);
}

int sl_run_replay_run(const struct sl_run_replay *replay, void *const *bases, struct sl_pace *pace, struct sl_node_desc *node,
        const struct sl_plan_step **ret_failed, struct sl_error *error)
{
        for (uint32_t i = 0; i < replay->n_steps; i++) {
                const struct sl_run_replay_step *step = &replay->steps[i];
                int r = sl_stop_look(&pace->stop);

                if (r < 0)
                        return r;
                r = launch(step, bases, pace, node);
                if (r < 0) {
                        *ret_failed = step->source;
                        return sl_error_set(error, -r, "%s: %s", sl_op_name(step->source->op), strerror(-r));
                }
        }
        return 0;
}
