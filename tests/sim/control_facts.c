/* SPDX-License-Identifier: Apache-2.0 */
#include "control_facts.h"

#include <stddef.h>

/* ---- what is there ---- */

bool is_serving(const struct sl_sim_control_name *name)
{
        return name->used && name->serves && !name->drains;
}

bool has_something(const struct sl_sim_control_name *name)
{
        return is_serving(name) && !name->rests;
}

bool is_served(const struct sl_sim_control_name *name)
{
        return is_serving(name) && name->want && name->serves == name->want && !name->rests;
}

bool is_under_way(const struct sl_sim_control_name *name)
{
        return name->load == SL_FLEET_LOAD_SOON || name->load == SL_FLEET_LOAD_BOUND;
}

uint64_t member_serial(const struct sl_sim_control *c, uint32_t i)
{
        const struct sl_sim_control_name *name = i < SL_SIM_NAMES ? &c->names[i] : NULL;

        return name && is_serving(name) && name->want && name->kind != SL_FLEET_ENSEMBLE &&
                               sl_sim_control_model(c, i) != SL_SIM_NONE
                       ? c->models[sl_sim_control_model(c, i)].serial
                       : 0;
}

bool has_members(const struct sl_sim_control *c, const struct sl_sim_control_name *name)
{
        for (uint32_t m = 0; m < name->n_members; m++)
                if (!member_serial(c, name->members[m]))
                        return false;
        return true;
}

bool member_comes(const struct sl_sim_control *c, uint32_t i)
{
        const struct sl_sim_control_name *name = i < SL_SIM_NAMES ? &c->names[i] : NULL;

        return name && name->used && name->want && name->kind != SL_FLEET_ENSEMBLE && !member_serial(c, i) &&
               (name->failed != name->want || name->drains);
}

bool waits_for_member(const struct sl_sim_control *c, const struct sl_sim_control_name *name)
{
        for (uint32_t m = 0; m < name->n_members; m++)
                if (member_comes(c, name->members[m]))
                        return true;
        return false;
}

bool is_composed_of_members(const struct sl_sim_control *c, const struct sl_sim_control_name *name)
{
        if (name->serving.n != name->n_members)
                return false;
        for (uint32_t m = 0; m < name->n_members; m++)
                if (c->models[name->serving.models[m]].serial != member_serial(c, name->members[m]))
                        return false;
        return true;
}

const struct sl_sim_control_group *group_of(const struct sl_sim_control *c, uint64_t number)
{
        for (uint32_t g = 0; g < SL_SIM_GROUPS; g++)
                if (number && c->groups[g].number == number)
                        return &c->groups[g];
        return NULL;
}

bool compiler_ends(const struct sl_sim_control *c)
{
        return c->n_killed > 0;
}

uint32_t loads_of(const struct sl_sim_control *c, uint64_t file, uint32_t but)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < c->options.n_names; i++)
                n += i != but && is_under_way(&c->names[i]) && c->names[i].load_file == file;
        return n;
}

bool is_kept_by_other(const struct sl_sim_control *c, uint32_t i)
{
        for (uint32_t k = 0; k < c->options.n_names; k++)
                if (k != i && is_served(&c->names[k]) && sl_sim_control_staff(c, k) &&
                        sl_sim_control_staff(c, k) == sl_sim_control_staff(c, i))
                        return true;
        return false;
}

bool is_loaded_elsewhere(const struct sl_sim_control *c, uint32_t i)
{
        for (uint32_t k = 0; k < c->options.n_names; k++) {
                const struct sl_sim_control_name *other = &c->names[k];

                if (k != i && (is_under_way(other) || other->load == SL_FLEET_LOAD_LOADED) && other->load_file == c->names[i].file)
                        return true;
        }
        return false;
}

bool will_do(const struct sl_sim_control *c, const struct sl_sim_control_name *name, uint32_t plan)
{
        return !name->anew || c->plans[plan].begun >= name->want;
}

bool is_served_elsewhere(const struct sl_sim_control *c, uint32_t i)
{
        for (uint32_t k = 0; k < c->options.n_names; k++) {
                const struct sl_sim_control_name *other = &c->names[k];

                if (k != i && is_served(other) && other->kind != SL_FLEET_ENSEMBLE && other->file == c->names[i].file &&
                        sl_sim_control_staff(c, k) != sl_sim_control_staff(c, i) &&
                        will_do(c, &c->names[i], c->models[sl_sim_control_model(c, k)].plan))
                        return true;
        }
        return false;
}

bool base_loads(const struct sl_sim_control *c, uint32_t i, uint64_t due_ns)
{
        if (c->names[i].kind != SL_FLEET_SIZES)
                return false;
        for (uint32_t k = 0; k < c->options.n_names; k++) {
                const struct sl_sim_control_name *other = &c->names[k];

                if (k != i && (is_under_way(other) || other->load == SL_FLEET_LOAD_LOADED) && other->load_want == other->want &&
                        other->kind == SL_FLEET_SIZES && other->open == c->names[i].open && other->needs_base &&
                        other->load_since_ns + SL_SIM_BASE_NS > c->now_ns && due_ns <= other->load_since_ns + SL_SIM_BASE_NS)
                        return !c->names[c->names[i].open].has_base && c->names[i].needs_base;
        }
        return false;
}

/* ---- models that are loaded on request ---- */

bool is_member(const struct sl_sim_control *c, uint32_t i)
{
        for (uint32_t k = 0; k < c->options.n_names; k++) {
                const struct sl_sim_control_name *name = &c->names[k];

                for (uint32_t m = 0; name->used && name->want && name->kind == SL_FLEET_ENSEMBLE && m < name->n_members; m++)
                        if (name->members[m] == i)
                                return true;
        }
        return false;
}

bool may_go(const struct sl_sim_control *c, uint32_t i)
{
        const struct sl_sim_control_name *name = &c->names[i];
        uint32_t model = sl_sim_control_model(c, i);

        return name->used && name->want && name->on_request && !name->asked && is_serving(name) && model != SL_SIM_NONE &&
               sl_sim_control_idle_ns(c, model) != UINT64_MAX && !is_member(c, i) && name->load == SL_FLEET_LOAD_NONE &&
               !name->told_ns && !name->group;
}

bool is_on_standby(const struct sl_sim_control_name *name)
{
        return name->used && name->want && name->rests && name->standby == name->want;
}

bool may_lose_plan(const struct sl_sim_control *c, uint32_t i)
{
        const struct sl_sim_control_name *name = &c->names[i];

        return is_on_standby(name) && name->on_request && !name->wants_plan && !name->asked && !name->drains && !name->told_ns &&
               !is_member(c, i) && name->load == SL_FLEET_LOAD_NONE;
}

bool lacks_memory(const struct sl_sim_control *c, uint32_t i)
{
        return c->names[i].load == SL_FLEET_LOAD_FAILED && c->names[i].lacks_memory;
}

bool has_older(const struct sl_sim_control *c, uint64_t idle_ns, uint32_t room)
{
        for (uint32_t i = 0; i < c->options.n_names; i++) {
                bool is_older = may_go(c, i) && sl_sim_control_idle_ns(c, sl_sim_control_model(c, i)) < idle_ns;

                is_older |= lacks_memory(c, room) && may_lose_plan(c, i) && c->names[i].busy_ns < idle_ns;
                if (is_older && (c->names[room].kind != SL_FLEET_SIZES || c->names[room].open != i))
                        return true;
        }
        return false;
}

/* No name has it any more. */
static bool is_left(const struct sl_sim_control *c, uint32_t model)
{
        for (uint32_t i = 0; i < c->options.n_names; i++)
                for (uint32_t m = 0; is_serving(&c->names[i]) && m < c->names[i].serving.n; m++)
                        if (c->names[i].serving.models[m] == model)
                                return false;
        return true;
}

/* What is loaded for it comes beside what it has. */
static bool needs_place(const struct sl_sim_control *c, uint32_t i)
{
        uint32_t model = sl_sim_control_model(c, i);

        return model == SL_SIM_NONE || c->names[i].serves_kind != SL_FLEET_MODEL || sl_sim_control_is_shared(c, i, model);
}

bool something_leaves(const struct sl_sim_control *c)
{
        for (uint32_t m = 0; m < SL_SIM_MODELS; m++)
                if (c->models[m].serial && c->models[m].refs && is_left(c, m))
                        return true;
        for (uint32_t i = 0; i < c->options.n_names; i++) {
                const struct sl_sim_control_name *name = &c->names[i];

                if (name->load != SL_FLEET_LOAD_NONE && name->load_want != name->want && name->kind == SL_FLEET_MODEL &&
                        !name->load_is_plan && needs_place(c, i))
                        return true;
        }
        return false;
}

uint32_t count_models(const struct sl_sim_control *c)
{
        uint32_t n = 0;

        for (uint32_t m = 0; m < SL_SIM_MODELS; m++)
                n += c->models[m].serial && sl_sim_control_is_shared(c, SL_SIM_NONE, m);
        for (uint32_t i = 0; i < c->options.n_names; i++) {
                const struct sl_sim_control_name *name = &c->names[i];

                n += name->used && name->load != SL_FLEET_LOAD_NONE && name->load_kind == SL_FLEET_MODEL &&
                     name->load_want == name->want && !name->load_is_plan && needs_place(c, i);
        }
        return n;
}

bool is_full(const struct sl_sim_control *c)
{
        return c->options.models_max && count_models(c) >= c->options.models_max;
}

bool makes_room(const struct sl_sim_control *c, uint64_t idle_ns, const enum sl_await *awaits, bool *ret_for_memory)
{
        bool found = false;

        *ret_for_memory = false;
        for (uint32_t k = 0; k < c->options.n_names; k++) {
                if (awaits[k] != SL_AWAIT_ROOM || c->names[k].load_is_plan || has_older(c, idle_ns, k))
                        continue;
                found = true;
                *ret_for_memory |= lacks_memory(c, k);
        }
        return found;
}

bool has_failed(const struct sl_sim_control_name *name)
{
        return name->failed == name->want && (name->serves != name->want || name->rests);
}

uint64_t standby_after_ns(const struct sl_sim_control_name *name)
{
        uint64_t least_ns = name->idle_unload_ns < name->idle_standby_ns ? name->idle_unload_ns : name->idle_standby_ns;

        return name->wants_plan ? least_ns : name->idle_standby_ns;
}

bool is_over(uint64_t idle_ns, uint64_t after_ns, uint64_t now_ns)
{
        return after_ns != UINT64_MAX && idle_ns + after_ns <= now_ns;
}
