/* SPDX-License-Identifier: Apache-2.0 */
/* What converge sees of control. */
#include "control_state.h"

bool sl_sim_control_is_late(const struct sl_sim_control *c, uint32_t user)
{
        return user != SL_SIM_NONE && c->users[user].due_ns > c->now_ns + (SL_SIM_BURST - 1) * SL_SIM_RATE_NS;
}

static void view_load(const struct sl_sim_control_name *name, struct sl_fleet_name *v)
{
        bool is_over = name->load == SL_FLEET_LOAD_LOADED || name->load == SL_FLEET_LOAD_FAILED;

        v->load = name->load;
        v->load_want = name->load_want;
        v->load_file = name->load_file;
        v->load_since_ns = name->load_since_ns;
        v->waits_ns = is_over || name->wants_turn ? UINT64_MAX : name->waits_ns;
        v->aside = name->aside;
        v->wants_turn = name->wants_turn;
        v->lacks_memory = name->load == SL_FLEET_LOAD_FAILED && name->lacks_memory;
        v->load_gone = name->load_gone;
        v->load_is_plan = name->load_is_plan;
}

/* Of a name that is not used the rest does not count: it looks as if all kinds of things were there. */
static void view_rubbish(const struct sl_sim_control *c, uint32_t i, struct sl_fleet_name *v)
{
        *v = (struct sl_fleet_name){.want = 1 + i,
                .serves = i % 3 ? 1 + i : 0,
                .file = 1 + i % 4,
                .model = 1 + i,
                .group = c->groups[i % SL_SIM_GROUPS].number,
                .workers = 1,
                .failed_workers = i % 2,
                .is_told = true,
                .on_request = i % 2,
                .asked = i % 5 == 1,
                .wants_plan = i % 3 == 1,
                .standby = i % 7 < 2 ? 1 + i : 0,
                .idle_standby_ns = UINT64_MAX,
                .load = i % 4 ? SL_FLEET_LOAD_NONE : SL_FLEET_LOAD_LOADED,
                .load_want = 1 + i,
                .load_file = 1 + i % 4,
                .waits_ns = UINT64_MAX};
}

static void view_name(const struct sl_sim_control *c, uint32_t i, struct sl_fleet_name *v)
{
        const struct sl_sim_control_name *name = &c->names[i];
        const struct sl_sim_control_model *model = sl_sim_control_model_of((struct sl_sim_control *)c, i);

        *v = (struct sl_fleet_name){.used = name->used, .waits_ns = UINT64_MAX};
        if (!name->used) {
                view_rubbish(c, i, v);
                return;
        }
        v->kind = name->kind;
        v->want = name->want;
        v->file = name->kind == SL_FLEET_ENSEMBLE ? 1 + i % 4 : name->file; /* of an ensemble it does not count */
        v->workers = name->workers;
        v->group = name->group;
        v->members = name->members;
        v->n_members = name->kind == SL_FLEET_ENSEMBLE ? name->n_members : 0;
        v->open = name->open;
        v->own_sizes = name->own_sizes;
        v->needs_base = name->kind == SL_FLEET_SIZES && name->needs_base;
        v->is_late = sl_sim_control_is_late(c, name->user);
        v->turn = name->user == SL_SIM_NONE ? 0 : 1 + c->users[name->user].turn;
        v->on_request = name->on_request;
        v->asked = name->asked;
        v->ask_due_ns = name->ask_due_ns;
        v->idle_unload_ns = name->idle_unload_ns;
        v->idle_standby_ns = name->idle_standby_ns;
        v->wants_plan = name->wants_plan;
        v->rests = name->rests;
        v->standby = name->standby;
        v->no_standby = name->no_standby;
        v->idle_ns = model ? sl_sim_control_idle_ns(c, (uint32_t)(model - c->models)) : name->standby ? name->busy_ns : 0;
        v->has_place =
                model && name->serves_kind == SL_FLEET_MODEL && !sl_sim_control_is_shared(c, i, (uint32_t)(model - c->models));
        v->anew = name->anew;
        v->begun = model ? c->plans[model->plan].begun : name->standby ? c->plans[name->plan].begun : 0;
        v->serves = name->serves;
        v->failed = name->failed;
        v->model = model ? model->serial : 0;
        v->composition = name->composition;
        v->drains = name->drains;
        v->is_told = !name->told_ns;
        v->has_base = name->has_base;
        v->has_workers = name->has_workers;
        v->failed_workers = name->failed_workers;
        v->workers_start = name->changes && sl_sim_staff_starts(&model->staff);
        v->workers_leave = name->changes && !v->workers_start;
        if (name->load != SL_FLEET_LOAD_NONE)
                view_load(name, v);
}

/* Whether a name of any kind has the model; @ret_by_model: one that is a model by itself. */
static bool is_had(const struct sl_sim_control *c, uint32_t model, bool *ret_by_model)
{
        bool is_had = false;

        *ret_by_model = sl_sim_control_is_shared(c, SL_SIM_NONE, model);
        for (uint32_t i = 0; i < c->options.n_names; i++)
                for (uint32_t m = 0; m < c->names[i].serving.n; m++)
                        is_had |= c->names[i].used && c->names[i].serves && !c->names[i].drains &&
                                  c->names[i].serving.models[m] == model;
        return is_had;
}

/* One that has been loaded and serves nothing yet is its name's load. */
static void view_models(const struct sl_sim_control *c, struct sl_fleet *fleet)
{
        for (uint32_t m = 0; m < SL_SIM_MODELS; m++) {
                bool by_model;

                if (!c->models[m].serial || !c->models[m].refs)
                        continue;
                fleet->leaving += !is_had(c, m, &by_model);
                fleet->models += by_model;
        }
}

void sl_sim_control_view(const struct sl_sim_control *c, struct sl_sim_view *view)
{
        uint32_t n_groups = 0;

        for (uint32_t i = 0; i < c->options.n_names; i++)
                view_name(c, i, &view->names[i]);
        for (uint32_t g = 0; g < SL_SIM_GROUPS; g++)
                if (c->groups[g].number)
                        view->groups[n_groups++] = (struct sl_fleet_group){
                                .number = c->groups[g].number, .atomic = c->groups[g].atomic, .released = c->groups[g].released};
        view->fleet = (struct sl_fleet){
                .now_ns = c->now_ns,
                .n = c->options.n_names,
                .names = view->names,
                .n_groups = n_groups,
                .groups = view->groups,
                .loads = c->loads,
                .ending = c->n_killed,
                .loads_max = c->options.loads_max,
                .aside_ns = SL_SIM_ASIDE_NS,
                .base_ns = SL_SIM_BASE_NS,
                .models_max = c->options.models_max,
                .gone = c->gone,
        };
        view_models(c, &view->fleet);
}
