/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet_view.h"

#include "account.h"
#include "applied.h"
#include "base/clock.h"
#include "base/error.h"
#include "compilers.h"
#include "crew.h"
#include "ensemble.h"
#include "loads.h"
#include "model.h"
#include "names.h"
#include "news.h"
#include "registry_state.h"
#include "sizes.h"

#include <errno.h>

/* A process that hangs while it starts, or a file that takes long to read, is waited for by its own model alone. */
#define ASIDE_NS SL_NS_PER_SECOND

/* What takes longer is not worth the wait: the next one stands alone. */
#define BASE_WAIT_NS (3 * SL_NS_PER_SECOND)

static bool is_ensemble(const struct sl_served *served)
{
        return !served->want.spec->spec.path && !served->want.spec->spec.refused;
}

/* Looked up again when any name has come or gone, or when the ensemble is another. */
static void look_up_members(struct sl_registry *r, struct sl_served *served)
{
        const struct sl_model_spec *spec = &served->want.spec->spec;
        uint64_t key = r->names + (served->want.number << 32);

        if (served->members_looked_up == key)
                return;
        served->members_looked_up = key;
        for (uint32_t m = 0; m < spec->n_members; m++) {
                const struct sl_served *member = sl_names_find(r, spec->members[m]);

                served->members[m] = member ? member->index : SL_FLEET_NONE;
        }
}

/* In the fleet a name is known by its place among those that are awake. */
static void place_members(const struct sl_registry *r, struct sl_served *served)
{
        for (uint32_t m = 0; m < served->want.spec->spec.n_members; m++)
                served->member_places[m] =
                        served->members[m] == SL_FLEET_NONE ? SL_FLEET_NONE : r->served[served->members[m]].place;
}

static void note_use(struct sl_model *model, uint64_t idle_ns)
{
        model->seen.is_had = true;
        if (idle_ns > model->seen.idle_ns)
                model->seen.idle_ns = idle_ns;
}

/* Of sizes users have so many a minute; models of the repository are compiled once. */
static void view_user(const struct sl_registry *r, const struct sl_served *served, struct sl_fleet_name *name)
{
        const struct sl_account *account = sl_names_account(r, served);
        uint64_t due_ns;

        if (!account)
                return;
        due_ns = account->compile_due_ns;
        name->turn = account->load_turn + 1;
        name->is_late = served->is_shape && !sl_share_rate(&due_ns, r->options.runtime->uid_shapes, sl_clock_ns());
}

/* A variant that no query chooses goes when that has been so for longer than it takes to come back, unless an administrator has
 * said which workers it has. */
static uint64_t idle_standby_ns(struct sl_registry *r, const struct sl_served *served)
{
        const struct sl_model_spec *spec = &served->want.spec->spec;
        const struct sl_runtime_options *options = r->options.runtime;
        uint64_t back_ns = served->woke_ns ? served->woke_ns : served->took_ns;

        if (spec->idle_standby_ns)
                return spec->idle_standby_ns;
        if (!spec->plan_first || options->autoscale.mode != SL_AUTOSCALE_ON || sl_applied_is_pinned(r, served))
                return UINT64_MAX;
        return back_ns > options->autoscale.idle_least_ns ? back_ns : options->autoscale.idle_least_ns;
}

static void view_want(struct sl_registry *r, struct sl_served *served, struct sl_fleet_name *name)
{
        const struct sl_want *want = &served->want;

        name->kind = is_ensemble(served) ? SL_FLEET_ENSEMBLE : served->is_shape ? SL_FLEET_SIZES : SL_FLEET_MODEL;
        name->want = want->number;
        name->file = want->spec->file;
        name->anew = want->anew;
        name->workers = want->workers_number;
        name->group = want->group;
        if (is_ensemble(served)) {
                place_members(r, served);
                name->members = served->member_places;
                name->n_members = want->spec->spec.n_members;
        }
        name->on_request = want->spec->spec.on_request;
        name->idle_unload_ns = want->spec->spec.idle_unload_ns ? want->spec->spec.idle_unload_ns : UINT64_MAX;
        name->idle_standby_ns = idle_standby_ns(r, served);
        name->wants_plan = want->spec->spec.standby;
        name->wants_ports = want->spec->spec.plan_first;
        name->asked = want->request.is_asked;
        name->ask_due_ns = want->request.due_ns;
        view_user(r, served, name);
        if (!served->is_shape)
                return;
        name->open = r->served[served->open].place;
        name->own_sizes = sl_sizes_are_own(r, served);
        name->needs_base = sl_sizes_share(served);
}

static void view_load(const struct sl_served *served, struct sl_fleet_name *name)
{
        struct sl_error error;

        name->load = sl_loads_stage(served);
        name->load_want = served->load_want;
        name->load_file = served->load_file;
        name->load_since_ns = served->load_ns;
        name->waits_ns = sl_loads_waits_since(served);
        name->aside = served->aside;
        name->wants_turn = sl_loads_wants_turn(served);
        name->load_gone = served->load_gone;
        name->load_is_plan = served->load_is_plan;
        name->lacks_memory = name->load == SL_FLEET_LOAD_FAILED && sl_loads_explain(served, &error) == -ENOMEM;
}

static void view_name(struct sl_registry *r, struct sl_served *served, struct sl_fleet_name *name)
{
        *name = (struct sl_fleet_name){.used = served->used, .waits_ns = UINT64_MAX};
        if (!served->used)
                return;
        view_want(r, served, name);
        name->rests = served->rests;
        name->standby = served->standby_want;
        name->no_standby = served->no_standby;
        name->idle_ns = served->used_ns;
        if (served->model) {
                name->idle_ns = served->model->seen.idle_ns;
                name->has_place = !served->is_shape && served->model->seen.names == 1;
        }
        name->serves = served->serves;
        name->failed = served->failed;
        name->model = served->model ? served->model->serial : 0;
        name->begun = served->model ? served->model->begun : served->standby.begun;
        name->composition = served->composition;
        name->drains = served->drains;
        name->is_told = !sl_news_is_due(served);
        name->has_base = served->base;
        name->has_workers = served->has_workers;
        name->failed_workers = served->failed_workers;
        name->workers_start = served->changing && served->model->crew && sl_crew_is_starting(served->model->crew);
        name->workers_leave = served->changing && !name->workers_start;
        if (served->load)
                view_load(served, name);
}

/* A model is in use with each name that it serves, alone or among others, and an open one with its sizes. */
static void look_at_use(struct sl_registry *r)
{
        for (struct sl_model *model = r->loaded; model; model = model->next_loaded)
                model->seen = (typeof(model->seen)){0};
        for (uint32_t i = 0; i < r->n_awake; i++) {
                const struct sl_served *served = sl_awake_at(r, i);

                if (!served->ensemble || served->drains)
                        continue;
                uint64_t idle_ns = atomic_load_explicit(&served->ensemble->idle_ns, memory_order_relaxed);

                for (uint32_t m = 0; m < sl_ensemble_models(served->ensemble); m++)
                        note_use(served->ensemble->members[m], idle_ns);
                if (served->is_shape && r->served[served->open].model)
                        note_use(r->served[served->open].model, idle_ns);
                if (served->model && !served->is_shape)
                        served->model->seen.names++;
        }
}

/* Those of sizes are a part of what they are sizes of. */
static void count_models(const struct sl_registry *r, struct sl_fleet *fleet)
{
        for (const struct sl_model *model = r->loaded; model; model = model->next_loaded) {
                fleet->models += model->seen.names > 0;
                fleet->leaving += !model->seen.is_had;
        }
        for (const struct sl_model *model = r->ending; model; model = model->next_loaded)
                *(model->serial ? &fleet->leaving : &fleet->ending) += 1;
}

/* What others of the fleet are of is looked at with them. */
static void wake_others(struct sl_registry *r)
{
        for (uint32_t i = 0; i < r->n_awake; i++) {
                struct sl_served *served = sl_awake_at(r, i);

                if (!served->used)
                        continue;
                if (served->is_shape)
                        sl_names_wake(r, &r->served[served->open]);
                if (!is_ensemble(served))
                        continue;
                look_up_members(r, served);
                for (uint32_t m = 0; m < served->want.spec->spec.n_members; m++)
                        if (served->members[m] != SL_FLEET_NONE)
                                sl_names_wake(r, &r->served[served->members[m]]);
        }
        for (uint32_t i = 0; i < r->n_awake; i++)
                sl_awake_at(r, i)->place = i;
}

void sl_fleet_name_steps(const struct sl_registry *r, struct sl_step *steps, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                if (steps[i].name != SL_FLEET_NONE)
                        steps[i].name = r->awake[steps[i].name];
                if ((steps[i].kind == SL_STEP_SHARE || steps[i].kind == SL_STEP_STANDBY) && steps[i].from != SL_FLEET_NONE)
                        steps[i].from = r->awake[steps[i].from];
        }
}

void sl_fleet_view(struct sl_registry *r, struct sl_fleet_group *group, struct sl_fleet *ret_fleet)
{
        wake_others(r);
        look_at_use(r);
        for (uint32_t i = 0; i < r->n_awake; i++)
                view_name(r, sl_awake_at(r, i), &r->view[i]);
        *ret_fleet = (struct sl_fleet){
                .now_ns = sl_clock_ns(),
                .n = r->n_awake,
                .names = r->view,
                .n_groups = sl_applied_group(r, group),
                .groups = group,
                .loads = r->loads,
                .ending = sl_compilers_ending(r->compilers),
                .loads_max = r->options.runtime->compile_jobs,
                .aside_ns = ASIDE_NS,
                .base_ns = BASE_WAIT_NS,
                .models_max = r->options.runtime->models_max,
                .gone = r->gone,
        };
        count_models(r, ret_fleet);
}
