/* SPDX-License-Identifier: Apache-2.0 */
#include "team_model.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "node_profile.h"
#include "part.h"
#include "target.h"
#include "team.h"

#include <errno.h>
#include <stdlib.h>

SL_DEFINE_CLEANUP(struct sl_instance *, sl_instance_free)
SL_DEFINE_CLEANUP(struct sl_team_model *, sl_team_model_free)

/* All parts together: each of some rows reads all weights. */
static double shared_ns(const struct sl_step_info *info, const struct sl_step_split *split, const struct sl_core_figures *core)
{
        double times = split->axis == SL_AXIS_ROWS ? split->members : 1;

        return 1e9 * times * (double)info->weight_bytes / sl_core_team_bandwidth(core, split->members);
}

static void model_step(double ns, const struct sl_step_info *info, const struct sl_core_figures *core, struct sl_team_step *step)
{
        const struct sl_step_split *split = &step->split;
        double shared;

        step->part_ns = ns;
        if (split->members < 2)
                return;
        step->part_ns = ns * (double)((split->units + split->members - 1) / split->members) / (double)split->units;
        shared = shared_ns(info, split, core);
        shared = shared < ns ? shared : ns; /* what one core was seen to bring */
        step->part_ns = shared > step->part_ns ? shared : step->part_ns;
}

/* Steps that the team computes at once, from this one on: it, and those behind it that call nobody. */
static uint64_t chain_of(const struct sl_team_step *steps, uint64_t n_steps)
{
        uint64_t n = 1;

        while (n < n_steps && steps[0].split.stages && steps[n].split.members && !steps[n].split.stages)
                n++;
        return n;
}

/* The member that has most to do, and the call of all who have something. */
static void add_chain(struct sl_team_point *point, struct sl_team_step *steps, uint64_t n, const struct sl_core_figures *core)
{
        double loads[SL_TEAM_MEMBERS_MAX] = {0}, longest = 0;
        uint32_t members = 2;

        for (uint64_t i = 0; i < n; i++) {
                const struct sl_step_split *split = &steps[i].split;

                members = split->first + split->members > members ? split->first + split->members : members;
                for (uint32_t m = split->first; m < split->first + split->members && m < SL_TEAM_MEMBERS_MAX; m++) {
                        loads[m] += steps[i].part_ns;
                        longest = loads[m] > longest ? loads[m] : longest;
                }
        }
        steps->call_ns = 1e9 * (double)steps->split.stages * sl_core_team_call(core, members);
        point->divided_ns += longest;
        point->call_ns += steps->call_ns;
}

static void add_steps(struct sl_team_point *point, uint64_t n_steps, const struct sl_core_figures *core)
{
        for (uint64_t i = 0, n; i < n_steps; i += n) {
                n = chain_of(&point->steps[i], n_steps - i);
                if (point->steps[i].split.stages)
                        add_chain(point, &point->steps[i], n, core);
                else
                        point->whole_ns += point->steps[i].part_ns;
        }
        point->ns = point->divided_ns + point->call_ns + point->whole_ns;
}

static int model_point(struct sl_instance *instance, const struct sl_node_profile *profile, const struct sl_core_figures *core,
        struct sl_team_point *point, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_step_split *splits = calloc(profile->n_steps + 1, sizeof(*splits));
        int r;

        point->steps = calloc(profile->n_steps + 1, sizeof(*point->steps));
        if (!splits || !point->steps)
                return sl_error_set(error, ENOMEM, "no memory for %llu steps", (unsigned long long)profile->n_steps);
        r = sl_instance_splits(instance, profile->batch, point->threads, splits, error);
        for (uint64_t i = 0; r == 0 && i < profile->n_steps; i++) {
                point->steps[i].split = splits[i];
                model_step(profile->step_ns[i], &profile->steps[i], core, &point->steps[i]);
        }
        if (r == 0)
                add_steps(point, profile->n_steps, core);
        return r;
}

int sl_team_model_new(const struct sl_plan *plan, const struct sl_node_profile *profile, const struct sl_core_figures *core,
        const uint32_t *sizes, uint32_t n, struct sl_team_model **ret_model, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_team_model_free) struct sl_team_model *model = calloc(1, sizeof(*model));
        SL_CLEANUP(sl_cleanup_sl_instance_free) struct sl_instance *instance = NULL;
        int r;

        if (model)
                model->points = calloc(n + 1, sizeof(*model->points));
        if (!model || !model->points)
                return sl_error_set(error, ENOMEM, "no memory for %u sizes of teams", n);
        model->n_steps = profile->n_steps;
        r = sl_instance_new(plan, profile->batch, &instance, error);
        for (uint32_t i = 0; r == 0 && i < n; i++) {
                struct sl_team_point *point = &model->points[model->n_points++];

                point->threads = sizes[i];
                r = model_point(instance, profile, core, point, error);
        }
        if (r == 0)
                *ret_model = sl_take(model);
        return r;
}

struct sl_team_model *sl_team_model_free(struct sl_team_model *model)
{
        if (!model)
                return NULL;
        for (uint32_t i = 0; i < model->n_points; i++)
                free(model->points[i].steps);
        free(model->points);
        free(model);
        return NULL;
}
