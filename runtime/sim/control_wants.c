/* SPDX-License-Identifier: Apache-2.0 */
/* What is wanted: of one name, of its workers, of several names at once. */
#include "control_state.h"

#include <string.h>

/* One model is to serve both. */
bool sl_sim_control_is_of_file(const struct sl_sim_control *c, uint32_t i, uint64_t file)
{
        const struct sl_sim_control_name *name = &c->names[i];

        if (name->kind == SL_FLEET_SIZES && name->own_sizes)
                name = &c->names[name->open];
        return c->names[i].used && name->used && name->kind != SL_FLEET_ENSEMBLE && name->file == file;
}

/* Of the open name whose model it shares, of the other names of the file, or of a dice. */
static struct sl_sim_set set_for(struct sl_sim_control *c, uint32_t i)
{
        if (c->names[i].kind == SL_FLEET_SIZES && c->names[i].own_sizes)
                return c->names[c->names[i].open].set;
        for (uint32_t k = 0; k < c->options.n_names; k++)
                if (k != i && c->names[k].used && c->names[k].want && c->names[k].kind != SL_FLEET_ENSEMBLE &&
                        c->names[k].file == c->names[i].file)
                        return c->names[k].set;
        return (struct sl_sim_set){1 + sl_sim_roll(&c->dice, 3), 1 + sl_sim_roll(&c->dice, 4)};
}

static void want_set(struct sl_sim_control *c, uint32_t i)
{
        struct sl_sim_control_name *name = &c->names[i];
        struct sl_sim_set set = set_for(c, i);

        if (!name->workers || set.kind != name->set.kind || set.n != name->set.n)
                name->workers = sl_sim_control_number(c);
        name->set = set;
}

static struct sl_sim_control_name *want(struct sl_sim_control *c, uint32_t i, enum sl_fleet_kind kind, uint64_t file)
{
        struct sl_sim_control_name *name = &c->names[i];
        bool is_other = !name->used || !name->want || name->file != file || name->kind != kind || kind == SL_FLEET_SIZES;

        name->used = true;
        name->kind = kind;
        name->want = sl_sim_control_number(c);
        name->file = file;
        name->anew = false;
        name->user = SL_SIM_NONE;
        name->on_request = kind == SL_FLEET_MODEL && name->on_request;
        name->wants_plan = name->on_request && name->wants_plan;
        name->asked = name->on_request && name->asked;
        sl_sim_control_leave_group(c, i);
        if (kind != SL_FLEET_ENSEMBLE && is_other)
                want_set(c, i);
        return name;
}

void sl_sim_control_want(struct sl_sim_control *c, uint32_t i, uint64_t file, bool is_open)
{
        c->names[i].own_sizes = false;
        want(c, i, SL_FLEET_MODEL, file)->is_open = is_open;
}

void sl_sim_control_want_anew(struct sl_sim_control *c, uint32_t i)
{
        c->names[i].anew = true;
}

void sl_sim_control_load_when(struct sl_sim_control *c, uint32_t i, const struct sl_sim_control_when *when)
{
        struct sl_sim_control_name *name = &c->names[i];

        name->on_request = when->on_request && name->kind == SL_FLEET_MODEL;
        name->wants_plan = when->wants_plan && name->on_request;
        name->idle_unload_ns = when->idle_unload_ns;
        name->idle_standby_ns = when->idle_standby_ns;
        name->asked = name->asked && name->on_request;
}

/* Of what has failed nobody asks for a load. */
void sl_sim_control_ask(struct sl_sim_control *c, uint32_t i, uint64_t busy_ns)
{
        struct sl_sim_control_name *name = &c->names[i];

        if (!name->used || !name->want || name->drains)
                return;
        if (name->serves && !name->rests) {
                name->busy_ns = busy_ns > name->busy_ns ? busy_ns : name->busy_ns;
        } else if (name->on_request && !name->asked && name->failed != name->want) {
                name->asked = true;
                name->ask_due_ns = c->now_ns + SL_SIM_ASK_NS;
        }
}

static uint64_t sizes_file(const struct sl_sim_control *c, uint32_t i)
{
        return 1000 + 16 * c->names[c->names[i].open].serves_file + i;
}

void sl_sim_control_want_sizes(
        struct sl_sim_control *c, uint32_t i, uint32_t open, bool own_sizes, bool needs_base, uint32_t user, bool prepared)
{
        struct sl_sim_control_name *name = &c->names[i];

        name->open = open;
        name->own_sizes = own_sizes;
        want(c, i, SL_FLEET_SIZES, sizes_file(c, i));
        name->needs_base = needs_base && !own_sizes;
        name->user = user;
        name->prepared = prepared;
        name->is_open = false;
}

void sl_sim_control_want_ensemble(struct sl_sim_control *c, uint32_t i, const uint32_t *members, uint32_t n)
{
        struct sl_sim_control_name *name = want(c, i, SL_FLEET_ENSEMBLE, 0);

        name->own_sizes = false;
        name->n_members = n;
        memcpy(name->members, members, n * sizeof(*members));
}

bool sl_sim_control_want_back(struct sl_sim_control *c, uint32_t i)
{
        struct sl_sim_control_name *name = &c->names[i];

        if (!name->serves || name->drains || name->rests || name->serves_kind == SL_FLEET_SIZES || name->want == name->serves ||
                name->serves_kind != name->kind)
                return false;
        if (name->kind == SL_FLEET_ENSEMBLE) /* its members may be others now */
                return false;
        name->want = name->serves;
        name->anew = false;
        name->file = name->serves_file;
        sl_sim_control_leave_group(c, i);
        want_set(c, i);
        return true;
}

void sl_sim_control_want_nothing(struct sl_sim_control *c, uint32_t i)
{
        c->names[i].want = 0;
        c->names[i].asked = false;
        sl_sim_control_leave_group(c, i);
}

void sl_sim_control_want_workers(struct sl_sim_control *c, uint32_t i, struct sl_sim_set set)
{
        const struct sl_sim_control_name *name = &c->names[i];
        uint64_t file = name->own_sizes ? c->names[name->open].file : name->file;

        for (uint32_t k = 0; k < c->options.n_names; k++) {
                if (k != i && !sl_sim_control_is_of_file(c, k, file))
                        continue;
                c->names[k].set = set;
                c->names[k].workers = sl_sim_control_number(c);
        }
}

/* One name of each model. */
static bool may_join(struct sl_sim_control *c, uint32_t i)
{
        const struct sl_sim_control_name *name = &c->names[i];

        for (uint32_t k = 0; k < c->options.n_names; k++)
                if (c->names[k].group && c->names[k].used &&
                        (sl_sim_control_model_of(c, k) == sl_sim_control_model_of(c, i) || c->names[k].file == name->file))
                        return false;
        return name->used && name->want && name->serves == name->want && !name->drains && name->load == SL_FLEET_LOAD_NONE &&
               sl_sim_control_model_of(c, i) && !name->own_sizes && !name->group && !sl_sim_control_model_of(c, i)->staff.changes;
}

bool sl_sim_control_apply(struct sl_sim_control *c, uint32_t names, bool atomic)
{
        struct sl_sim_control_group *group = NULL;

        for (uint32_t g = 0; g < SL_SIM_GROUPS && !group; g++)
                group = c->groups[g].number ? NULL : &c->groups[g];
        for (uint32_t i = 0; i < c->options.n_names && group; i++) {
                struct sl_sim_set set = {1 + sl_sim_roll(&c->dice, 3), 1 + sl_sim_roll(&c->dice, 4)};

                if (!(names >> i & 1) || !may_join(c, i))
                        continue;
                if (!group->number)
                        *group = (struct sl_sim_control_group){.number = sl_sim_control_number(c), .atomic = atomic};
                group->before[i] = c->names[i].set;
                sl_sim_control_want_workers(c, i, set);
                c->names[i].group = group->number;
        }
        return group && group->number;
}
