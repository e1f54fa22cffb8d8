/* SPDX-License-Identifier: Apache-2.0 */
#include "rehearsal.h"

#include "base/cleanup.h"
#include "graph.h"
#include "placement.h"
#include "stage.h"
#include "trial.h"

#include <errno.h>

SL_DEFINE_CLEANUP(struct sl_stage *, sl_stage_free)
SL_DEFINE_CLEANUP(struct sl_trial *, sl_trial_free)

static int play(const struct sl_backend *backend, struct sl_stage_scene *scene, struct sl_trial **ret_trial)
{
        SL_CLEANUP(sl_cleanup_sl_trial_free) struct sl_trial *trial = NULL;
        int r = scene->complete ? sl_trial_new(backend, &scene->desc, scene->constants, &trial, NULL) : -ENOTSUP;

        if (r == 0)
                r = sl_trial_bind(trial, scene->inputs, scene->outputs, NULL);
        if (r == 0)
                r = sl_trial_launch(trial);
        if (r == 0)
                *ret_trial = sl_take(trial);
        return r;
}

/* What cannot run alone is passed over, and so is what reads its results. */
static int perform(
        const struct sl_placement *placement, uint32_t node, struct sl_stage *stage, sl_rehearsal_visitor *visit, void *context)
{
        SL_CLEANUP(sl_cleanup_sl_trial_free) struct sl_trial *trial = NULL;
        struct sl_rehearsed rehearsed = {.node = node};
        struct sl_stage_scene *scene;
        int r = sl_stage_enter(stage, node, &scene);

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        r = play(placement->backends[node], scene, &trial);
        if (r == 0) {
                rehearsed.desc = &scene->desc;
                rehearsed.constants = scene->constants;
                rehearsed.inputs = scene->inputs;
                rehearsed.trial = trial;
                r = visit(context, &rehearsed);
        } else if (r != -ENOMEM) {
                r = 0;
        }
        sl_stage_leave(stage, node, trial != NULL);
        return r;
}

int sl_rehearse(const struct sl_placement *placement, sl_rehearsal_visitor *visit, void *context)
{
        SL_CLEANUP(sl_cleanup_sl_stage_free) struct sl_stage *stage = NULL;
        int r = sl_stage_new(placement, &stage);

        for (uint32_t i = 0; i < placement->graph->n_nodes && r == 0; i++) {
                if (placement->backends[i])
                        r = perform(placement, i, stage, visit, context);
        }
        return r;
}
