/* SPDX-License-Identifier: Apache-2.0 */
#include "performance.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "graph.h"
#include "placement.h"
#include "stage.h"
#include "trial.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

SL_DEFINE_CLEANUP(struct sl_performance *, sl_performance_free)

struct cast {
        struct sl_trial *trials[SL_ALGORITHM_COUNT]; /* in the order of the part's algorithms; one where it has none */
};

struct sl_performance {
        const struct sl_placement *placement;
        struct sl_part *parts;
        sl_performance_clock *clock;
        struct cast *casts; /* of each node */
        struct sl_stage *stage;
        uint32_t n_runs;
};

static uint32_t trials_of(const struct sl_part *part)
{
        return part->n_algorithms ? part->n_algorithms : 1;
}

static int make_trials(struct sl_performance *performance, uint32_t node)
{
        struct sl_part *part = &performance->parts[node];
        struct sl_stage_scene *scene;
        int r = sl_stage_enter(performance->stage, node, &scene);

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        for (uint32_t i = 0; i < trials_of(part) && r != -ENOMEM; i++) {
                part->microseconds[i] = INFINITY;
                r = part->n_algorithms ? sl_attrs_set_int(&scene->desc.attrs, SL_ATTR_ALGORITHM, part->algorithms[i]) : 0;
                if (r == 0)
                        r = sl_trial_new(performance->placement->backends[node], &scene->desc, scene->constants,
                                &performance->casts[node].trials[i], NULL);
        }
        sl_stage_leave(performance->stage, node, true);
        return r == -ENOMEM ? r : 0;
}

int sl_performance_new(const struct sl_placement *placement, struct sl_part *parts, sl_performance_clock *clock, uint64_t until_ns,
        struct sl_performance **ret_performance)
{
        SL_CLEANUP(sl_cleanup_sl_performance_free) struct sl_performance *performance = calloc(1, sizeof(*performance));
        uint32_t n = placement->graph->n_nodes;
        int r;

        if (!performance)
                return -ENOMEM;
        performance->placement = placement;
        performance->parts = parts;
        performance->clock = clock;
        performance->casts = calloc(n + 1u, sizeof(*performance->casts));
        r = performance->casts ? sl_stage_new(placement, &performance->stage) : -ENOMEM;
        for (uint32_t i = 0; i < n && r == 0; i++) {
                if (placement->backends[i])
                        r = clock() > until_ns ? -ETIME : make_trials(performance, i);
        }
        if (r < 0)
                return r;
        *ret_performance = sl_take(performance);
        return 0;
}

struct sl_performance *sl_performance_free(struct sl_performance *performance)
{
        if (!performance)
                return NULL;
        for (uint32_t i = 0; performance->casts && i < performance->placement->graph->n_nodes; i++) {
                for (uint32_t k = 0; k < SL_ALGORITHM_COUNT; k++)
                        sl_trial_free(performance->casts[i].trials[k]);
        }
        free(performance->casts);
        sl_stage_free(performance->stage);
        free(performance);
        return NULL;
}

/* Each once in every n runs; whom it follows, and who follows it, changes from round to round. */
static uint32_t turn_of(uint32_t run, uint32_t node, uint32_t n)
{
        uint32_t mixed = (run / n * 2654435761u) ^ (node * 2246822519u);

        return (run % n + (mixed >> 16)) % n;
}

/* What fails once is not asked again. */
static int play(struct sl_performance *performance, uint32_t node, uint32_t turn, struct sl_stage_scene *scene, bool *ret_done)
{
        struct sl_trial **trial = &performance->casts[node].trials[turn];
        double *least = &performance->parts[node].microseconds[turn];
        void *scratch;
        uint64_t start;
        int r = sl_stage_scratch(performance->stage, sl_trial_scratch_bytes(*trial), &scratch);

        if (r == 0)
                r = sl_trial_bind(*trial, scene->inputs, scene->outputs, scratch);
        if (r < 0)
                return r;
        start = performance->clock();
        r = sl_trial_launch(*trial);
        if (r == 0)
                *least = fmin(*least, (double)(performance->clock() - start) / (double)SL_NS_PER_US);
        else
                *trial = sl_trial_free(*trial);
        *ret_done = r == 0;
        return 0;
}

int sl_performance_run(struct sl_performance *performance)
{
        int r = 0;

        sl_stage_clear(performance->stage);
        for (uint32_t i = 0; i < performance->placement->graph->n_nodes && r == 0; i++) {
                uint32_t n = trials_of(&performance->parts[i]), turn = turn_of(performance->n_runs, i, n);
                struct sl_stage_scene *scene;
                bool done = false;

                for (uint32_t tries = 0; tries < n && !performance->casts[i].trials[turn]; tries++)
                        turn = (turn + 1) % n;
                if (!performance->casts[i].trials[turn])
                        continue;
                r = sl_stage_enter(performance->stage, i, &scene);
                if (r == 0)
                        r = play(performance, i, turn, scene, &done);
                sl_stage_leave(performance->stage, i, done);
        }
        performance->n_runs++;
        return r;
}
