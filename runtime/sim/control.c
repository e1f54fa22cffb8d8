/* SPDX-License-Identifier: Apache-2.0 */
#include "control_state.h"

#include <string.h>

uint64_t sl_sim_control_number(struct sl_sim_control *c)
{
        return ++c->numbers;
}

/* ---- models ---- */

static uint64_t plan_bytes(uint64_t file)
{
        return 20 + file * 7 % 41;
}

/* Another kind on other cores. */
static struct sl_sim_set on_cores(const struct sl_sim_control *c, struct sl_sim_set set)
{
        return (struct sl_sim_set){set.kind + 16 * c->cores, set.n};
}

/* Return: a plan with one holder; SL_SIM_NONE: there is no memory for it. */
static uint32_t add_plan(struct sl_sim_control *c, uint64_t file, uint64_t begun)
{
        uint32_t p = 0;

        while (p < SL_SIM_PLANS && c->plans[p].refs)
                p++;
        if (p == SL_SIM_PLANS || sl_sim_ledger_take(&c->ledger, plan_bytes(file)) < 0)
                return SL_SIM_NONE;
        c->plans[p] = (struct sl_sim_control_plan){.refs = 1, .file = file, .bytes = plan_bytes(file), .begun = begun};
        return p;
}

static uint32_t hold_plan(struct sl_sim_control *c, uint32_t p)
{
        c->plans[p].refs++;
        return p;
}

static void drop_plan(struct sl_sim_control *c, uint32_t p)
{
        if (p != SL_SIM_NONE && --c->plans[p].refs == 0)
                sl_sim_ledger_give(&c->ledger, c->plans[p].bytes);
}

/* @plan becomes its own, unless there is no memory for its staff. Return: the model; SL_SIM_NONE. */
static uint32_t add_model(struct sl_sim_control *c, uint32_t plan, bool is_open, struct sl_sim_set set)
{
        struct sl_sim_control_model *model = NULL;

        for (uint32_t i = 0; i < SL_SIM_MODELS && !model; i++)
                model = c->models[i].serial ? NULL : &c->models[i];
        if (!model || sl_sim_staff_open(&model->staff, on_cores(c, set), &c->ledger) < 0)
                return SL_SIM_NONE;
        model->serial = ++c->serials;
        model->file = c->plans[plan].file;
        model->is_open = is_open;
        model->plan = plan;
        return (uint32_t)(model - c->models);
}

static void drop_model(struct sl_sim_control *c, uint32_t m)
{
        struct sl_sim_control_model *model = &c->models[m];

        sl_sim_staff_close(&model->staff, &c->ledger);
        drop_plan(c, model->plan);
        *model = (struct sl_sim_control_model){0};
        c->gone++;
}

static void unref(struct sl_sim_control *c, const struct sl_sim_serving *serving)
{
        for (uint32_t m = 0; m < serving->n; m++)
                if (--c->models[serving->models[m]].refs == 0)
                        drop_model(c, serving->models[m]);
}

struct sl_sim_control_model *sl_sim_control_model_of(struct sl_sim_control *c, uint32_t i)
{
        uint32_t m = sl_sim_control_model(c, i);

        return m == SL_SIM_NONE ? NULL : &c->models[m];
}

uint32_t sl_sim_control_model(const struct sl_sim_control *c, uint32_t i)
{
        const struct sl_sim_control_name *name = &c->names[i];

        return name->serves && name->serves_kind != SL_FLEET_ENSEMBLE && !name->rests ? name->serving.models[0] : SL_SIM_NONE;
}

bool sl_sim_control_is_shared(const struct sl_sim_control *c, uint32_t i, uint32_t model)
{
        for (uint32_t k = 0; k < c->options.n_names; k++)
                if (k != i && c->names[k].used && c->names[k].serves_kind == SL_FLEET_MODEL && !c->names[k].drains &&
                        sl_sim_control_model(c, k) == model)
                        return true;
        return false;
}

uint64_t sl_sim_control_idle_ns(const struct sl_sim_control *c, uint32_t model)
{
        uint64_t idle_ns = 0;

        for (uint32_t i = 0; i < c->options.n_names; i++) {
                const struct sl_sim_control_name *name = &c->names[i];

                for (uint32_t m = 0; m < name->serving.n && name->serves; m++) {
                        if (name->serving.models[m] != model)
                                continue;
                        if (name->busy_ns > c->now_ns)
                                return UINT64_MAX;
                        idle_ns = name->busy_ns > idle_ns ? name->busy_ns : idle_ns;
                }
        }
        return idle_ns;
}

const struct sl_sim_staff *sl_sim_control_staff(const struct sl_sim_control *c, uint32_t i)
{
        const struct sl_sim_control_model *model = sl_sim_control_model_of((struct sl_sim_control *)c, i);

        return model ? &model->staff : NULL;
}

/* ---- groups ---- */

static struct sl_sim_control_group *group_of(struct sl_sim_control *c, uint64_t number)
{
        for (uint32_t g = 0; g < SL_SIM_GROUPS; g++)
                if (number && c->groups[g].number == number)
                        return &c->groups[g];
        return NULL;
}

static bool holds(struct sl_sim_control *c, uint32_t i)
{
        const struct sl_sim_control_group *group = group_of(c, c->names[i].group);

        return group && group->atomic && !group->released;
}

/* A staff is held as long as a name that it serves is in a group that holds it. */
static void look_at_holds(struct sl_sim_control *c)
{
        for (uint32_t m = 0; m < SL_SIM_MODELS; m++)
                c->models[m].staff.holds = false;
        for (uint32_t i = 0; i < c->options.n_names; i++)
                if (sl_sim_control_model_of(c, i) && holds(c, i))
                        sl_sim_control_model_of(c, i)->staff.holds = true;
}

void sl_sim_control_leave_group(struct sl_sim_control *c, uint32_t i)
{
        c->names[i].group = 0;
        look_at_holds(c);
}

static void end_group(struct sl_sim_control *c, struct sl_sim_control_group *group)
{
        for (uint32_t i = 0; i < c->options.n_names; i++)
                if (c->names[i].group == group->number)
                        c->names[i].group = 0;
        *group = (struct sl_sim_control_group){0};
        look_at_holds(c);
}

/* ---- workers ---- */

static void tell_later(struct sl_sim_control *c, struct sl_sim_control_name *name)
{
        name->told_ns = c->now_ns + 1 + sl_sim_roll(&c->dice, (uint32_t)SL_SIM_TOLD_NS);
}

static void end_change(struct sl_sim_control *c, struct sl_sim_control_name *name)
{
        name->changes = false;
        tell_later(c, name);
}

static void fail_change(struct sl_sim_control_name *name)
{
        name->changes = false;
        name->failed_workers = name->begun_workers;
        name->has_workers = 0;
}

static void hear_staff(struct sl_sim_control *c, uint32_t m)
{
        struct sl_sim_control_model *model = &c->models[m];
        int r = model->serial ? sl_sim_staff_hear(&model->staff, c->now_ns, &c->dice, &c->ledger) : 1;

        if (r > 0)
                return;
        if (r < 0)
                sl_sim_staff_undo(&model->staff, c->now_ns, &c->ledger);
        for (uint32_t i = 0; i < c->options.n_names; i++) {
                if (sl_sim_control_model_of(c, i) != model || !c->names[i].changes)
                        continue;
                if (r < 0)
                        fail_change(&c->names[i]);
                else
                        end_change(c, &c->names[i]);
        }
}

/* Other names of the model want, and get, the same. */
static void begin_workers(struct sl_sim_control *c, uint32_t i)
{
        struct sl_sim_control_name *name = &c->names[i];
        struct sl_sim_control_model *model = sl_sim_control_model_of(c, i);
        struct sl_sim_set set = on_cores(c, name->set);
        bool needs = set.kind != model->staff.wants.kind || set.n != model->staff.wants.n;
        int r = 0;

        name->begun_workers = name->workers;
        look_at_holds(c);
        if (needs)
                r = sl_sim_staff_change(&model->staff, set, c->now_ns, c->options.worker_fails_in, &c->dice, &c->ledger);
        if (r < 0) {
                fail_change(name);
                return;
        }
        name->has_workers = name->workers;
        name->changes = true;
        hear_staff(c, (uint32_t)(model - c->models));
}

/* ---- what serves ---- */

static void retire(struct sl_sim_control *c, const struct sl_sim_serving *serving, uint32_t name)
{
        c->retired[c->n_retired].serving = *serving;
        c->retired[c->n_retired].name = name;
        c->retired[c->n_retired++].due_ns = c->now_ns + 1 + sl_sim_roll(&c->dice, (uint32_t)SL_SIM_DRAIN_NS);
}

static void drain(struct sl_sim_control *c, uint32_t i)
{
        c->names[i].drains = true;
        c->names[i].group = 0;
        c->names[i].changes = false;
        retire(c, &c->names[i].serving, i);
        look_at_holds(c);
}

/* Sizes go with the model that they are of, those that come back with the next one as well. */
static void withdraw_sizes(struct sl_sim_control *c, uint32_t open)
{
        c->names[open].has_base = false;
        for (uint32_t i = 0; i < c->options.n_names; i++) {
                struct sl_sim_control_name *name = &c->names[i];

                if (!name->used || name->kind != SL_FLEET_SIZES || name->open != open || !name->want)
                        continue;
                sl_sim_control_want_nothing(c, i);
                if (name->serves && !name->drains)
                        drain(c, i);
        }
}

static void prepare_sizes(struct sl_sim_control *c, uint32_t open)
{
        for (uint32_t i = 0; i < c->options.n_names; i++) {
                struct sl_sim_control_name *name = &c->names[i];

                if (name->used && name->kind == SL_FLEET_SIZES && name->open == open && name->prepared)
                        sl_sim_control_want_sizes(c, i, open, name->own_sizes, name->needs_base, SL_SIM_NONE, true);
        }
}

static void lose_standby(struct sl_sim_control *c, struct sl_sim_control_name *name)
{
        if (name->standby)
                drop_plan(c, name->plan);
        name->standby = 0;
        name->plan = SL_SIM_NONE;
}

static void serve(struct sl_sim_control *c, uint32_t i, const struct sl_sim_serving *serving)
{
        struct sl_sim_control_name *name = &c->names[i];

        for (uint32_t m = 0; m < serving->n; m++)
                c->models[serving->models[m]].refs++;
        if (name->kind != SL_FLEET_ENSEMBLE)
                c->models[serving->models[0]].names++;
        if (name->serves) {
                withdraw_sizes(c, i);
                retire(c, &name->serving, SL_SIM_NONE);
        }
        if (name->asked)
                name->busy_ns = c->now_ns + sl_sim_roll(&c->dice, (uint32_t)SL_SIM_USE_NS);
        else if (name->busy_ns < c->now_ns)
                name->busy_ns = c->now_ns;
        name->asked = name->rests = false;
        lose_standby(c, name);
        name->serving = *serving;
        name->serves = name->want;
        name->serves_kind = name->kind;
        name->serves_file = name->file;
        name->changes = false;
        tell_later(c, name);
}

static void serve_model(struct sl_sim_control *c, uint32_t i, uint32_t model, uint64_t workers)
{
        struct sl_sim_control_name *name = &c->names[i];

        serve(c, i, &(struct sl_sim_serving){.n = 1, .models = {model}});
        name->has_workers = workers;
        name->composition = 0;
        sl_sim_control_leave_group(c, i);
        if (name->kind == SL_FLEET_SIZES && name->needs_base)
                c->names[name->open].has_base = true;
        if (c->models[model].is_open)
                prepare_sizes(c, i);
}

static void fail(struct sl_sim_control *c, uint32_t i, bool is_plan)
{
        struct sl_sim_control_name *name = &c->names[i];

        if (is_plan && name->lacks_memory) { /* it is loaded when somebody asks */
                name->no_standby = name->want;
                return;
        }
        if (!name->lacks_memory || !name->asked) /* there may be memory for a later request */
                name->failed = name->want;
        name->asked = false;
        if (name->kind == SL_FLEET_SIZES && !name->serves)
                sl_sim_control_want_nothing(c, i);
}

/* What it has served is let come to its end, and its name takes requests that wait. */
static void rest(struct sl_sim_control *c, uint32_t i)
{
        struct sl_sim_control_name *name = &c->names[i];

        if (name->rests) {
                lose_standby(c, name);
                c->gone++;
                return;
        }
        withdraw_sizes(c, i);
        retire(c, &name->serving, SL_SIM_NONE);
        name->serving = (struct sl_sim_serving){0};
        name->rests = true;
        name->has_workers = 0;
        name->changes = false;
        sl_sim_control_leave_group(c, i);
        tell_later(c, name);
}

static void serve_no_more(struct sl_sim_control *c, struct sl_sim_control_name *name)
{
        lose_standby(c, name);
        name->rests = false;
        name->serves = name->composition = name->has_workers = 0;
        name->serving = (struct sl_sim_serving){0};
        name->drains = name->changes = false;
        name->told_ns = 0;
        name->has_base = false;
}

/* ---- loads ---- */

static void end_load(struct sl_sim_control_name *name)
{
        name->load = SL_FLEET_LOAD_NONE;
        name->loaded = name->loaded_plan = SL_SIM_NONE;
        name->load_is_plan = false;
        name->load_due_ns = 0;
        name->aside = name->wants_turn = false;
}

static bool is_under_way(const struct sl_sim_control_name *name)
{
        return name->load == SL_FLEET_LOAD_SOON || name->load == SL_FLEET_LOAD_BOUND;
}

static void end_turn(struct sl_sim_control *c, struct sl_sim_control_name *name)
{
        if (!name->aside)
                c->loads--;
        name->aside = name->wants_turn = false;
}

/* What it was promised is its own until it is gone. */
static void kill_compiler(struct sl_sim_control *c)
{
        c->killed_ns[c->n_killed++] = c->now_ns + sl_sim_roll(&c->dice, (uint32_t)SL_SIM_KILL_NS);
}

static void hear_killed(struct sl_sim_control *c)
{
        for (uint32_t k = 0; k < c->n_killed;) {
                if (c->killed_ns[k] > c->now_ns) {
                        k++;
                        continue;
                }
                sl_sim_ledger_give(&c->ledger, SL_SIM_COMPILER_BYTES);
                c->gone++;
                c->killed_ns[k] = c->killed_ns[--c->n_killed];
        }
}

/* One that stands aside has no compiler yet, and others may have none yet. */
static void drop_load(struct sl_sim_control *c, struct sl_sim_control_name *name)
{
        if (is_under_way(name)) {
                bool compiles = !name->aside && name->loaded_plan == SL_SIM_NONE && sl_sim_one_in(&c->dice, 2);

                end_turn(c, name);
                if (compiles)
                        kill_compiler(c);
                else if (name->loaded_plan == SL_SIM_NONE)
                        sl_sim_ledger_give(&c->ledger, SL_SIM_COMPILER_BYTES);
        }
        if (name->loaded != SL_SIM_NONE)
                drop_model(c, name->loaded);
        drop_plan(c, name->loaded_plan);
        end_load(name);
}

static void begin_phase(struct sl_sim_control *c, struct sl_sim_control_name *name)
{
        name->load = name->phases[name->phase].is_bound ? SL_FLEET_LOAD_BOUND : SL_FLEET_LOAD_SOON;
        name->load_due_ns = c->now_ns + name->phases[name->phase].takes_ns;
        name->waits_ns = name->phases[name->phase].waits ? c->now_ns : UINT64_MAX;
        name->wants_turn = false;
}

static void note_load(struct sl_sim_control *c, struct sl_sim_control_name *name)
{
        name->load_want = name->want;
        name->load_file = name->file;
        name->load_kind = name->kind;
        name->load_workers = name->workers;
        name->load_set = name->set;
        name->load_open = name->is_open;
        name->load_begun = c->numbers;
        name->load_since_ns = c->now_ns;
        name->load_fails = c->options.load_fails_in && sl_sim_one_in(&c->dice, c->options.load_fails_in);
        name->phase = 0;
}

/* Its workers start: nothing is searched or compiled, and it stands aside from the beginning. */
static void wake(struct sl_sim_control *c, uint32_t i)
{
        struct sl_sim_control_name *name = &c->names[i];

        name->load_gone = c->gone;
        name->lacks_memory = false;
        note_load(c, name);
        name->aside = true;
        name->loaded_plan = hold_plan(c, name->plan);
        name->n_phases = 1;
        name->phases[0].is_bound = true;
        name->phases[0].waits = false;
        name->phases[0].takes_ns = 1 + sl_sim_roll(&c->dice, (uint32_t)SL_SIM_WAKE_NS);
        begin_phase(c, name);
}

static void begin_load(struct sl_sim_control *c, uint32_t i, enum sl_load_part part)
{
        struct sl_sim_control_name *name = &c->names[i];

        if (part == SL_LOAD_PART_WORKERS) {
                wake(c, i);
                return;
        }
        if (name->user != SL_SIM_NONE) {
                uint64_t due_ns = c->users[name->user].due_ns;

                c->users[name->user].turn = ++c->turns;
                c->users[name->user].due_ns = (due_ns > c->now_ns ? due_ns : c->now_ns) + SL_SIM_RATE_NS;
        }
        name->load_gone = c->gone;
        name->lacks_memory = false;
        note_load(c, name);
        name->load_is_plan = part == SL_LOAD_PART_PLAN;
        if (sl_sim_ledger_take(&c->ledger, SL_SIM_COMPILER_BYTES) < 0) {
                name->load = SL_FLEET_LOAD_FAILED;
                name->lacks_memory = true;
                return;
        }
        c->loads++;
        name->n_phases = 1 + sl_sim_roll(&c->dice, SL_SIM_PHASES);
        for (name->phase = 0; name->phase < name->n_phases; name->phase++) {
                name->phases[name->phase].is_bound = sl_sim_one_in(&c->dice, 2);
                name->phases[name->phase].waits = sl_sim_one_in(&c->dice, 3);
                name->phases[name->phase].takes_ns = 1 + sl_sim_roll(&c->dice, (uint32_t)SL_SIM_PHASE_NS);
        }
        name->phase = 0;
        begin_phase(c, name);
}

static void end_loading(struct sl_sim_control *c, struct sl_sim_control_name *name)
{
        uint32_t plan = name->loaded_plan;

        end_turn(c, name);
        if (plan == SL_SIM_NONE) {
                sl_sim_ledger_give(&c->ledger, SL_SIM_COMPILER_BYTES);
                plan = name->load_fails ? SL_SIM_NONE : add_plan(c, name->load_file, name->load_begun);
        }
        name->load_due_ns = 0;
        if (!name->load_is_plan && !name->load_fails && plan != SL_SIM_NONE)
                name->loaded = add_model(c, plan, name->load_open, name->load_set);
        name->loaded_plan = name->load_is_plan ? plan : SL_SIM_NONE;
        name->load = name->loaded != SL_SIM_NONE || name->loaded_plan != SL_SIM_NONE ? SL_FLEET_LOAD_LOADED : SL_FLEET_LOAD_FAILED;
        name->lacks_memory = name->load == SL_FLEET_LOAD_FAILED && !name->load_fails;
        if (name->load == SL_FLEET_LOAD_FAILED)
                drop_plan(c, plan);
}

/* One that is aside needs a turn to go on, but not to come to its end. */
static void go_on(struct sl_sim_control *c, struct sl_sim_control_name *name)
{
        name->phase++;
        if (name->phase == name->n_phases) {
                end_loading(c, name);
        } else if (name->aside) {
                name->phase--;
                name->load_due_ns = 0;
                name->wants_turn = true;
        } else {
                begin_phase(c, name);
        }
}

static void step_aside(struct sl_sim_control *c, struct sl_sim_control_name *name)
{
        name->aside = true;
        c->loads--;
}

static void resume(struct sl_sim_control *c, struct sl_sim_control_name *name)
{
        name->aside = false;
        c->loads++;
        name->phase++;
        begin_phase(c, name);
}

/* ---- steps ---- */

static void take_loaded(struct sl_sim_control *c, uint32_t i)
{
        struct sl_sim_control_name *name = &c->names[i];
        uint32_t model = name->loaded;
        uint64_t workers = name->load_workers;

        end_load(name);
        serve_model(c, i, model, workers);
}

/* The plan of what serves, of another name, or what has been loaded. */
static void stand_by(struct sl_sim_control *c, uint32_t i, uint64_t twin)
{
        struct sl_sim_control_name *name = &c->names[i];
        uint32_t of = twin == SL_FLEET_NONE ? i : (uint32_t)twin, plan;

        if (name->load == SL_FLEET_LOAD_LOADED) {
                plan = name->loaded_plan;
                end_load(name);
        } else {
                plan = hold_plan(c, sl_sim_control_model_of(c, of) ? sl_sim_control_model_of(c, of)->plan : c->names[of].plan);
        }
        name->busy_ns = sl_sim_control_model_of(c, i) ? sl_sim_control_idle_ns(c, sl_sim_control_model(c, i)) : c->now_ns;
        lose_standby(c, name);
        if (name->serves && !name->rests)
                rest(c, i);
        name->serves = name->want;
        name->serves_kind = name->kind;
        name->serves_file = name->file;
        name->rests = true;
        name->composition = 0;
        name->standby = name->want;
        name->plan = plan;
        tell_later(c, name);
}

static void share(struct sl_sim_control *c, uint32_t i, uint32_t twin)
{
        const struct sl_sim_control_name *other = &c->names[twin];
        bool alike = other->set.kind == c->names[i].set.kind && other->set.n == c->names[i].set.n &&
                     other->has_workers == other->workers;

        serve_model(c, i, other->serving.models[0], alike ? c->names[i].workers : 0);
}

static void compose(struct sl_sim_control *c, uint32_t i, uint64_t composition)
{
        struct sl_sim_control_name *name = &c->names[i];
        struct sl_sim_serving serving = {.n = name->n_members};

        name->composition = composition;
        if (c->options.compose_fails_in && sl_sim_one_in(&c->dice, c->options.compose_fails_in)) {
                fail(c, i, false);
                return;
        }
        for (uint32_t m = 0; m < name->n_members; m++)
                serving.models[m] = c->names[name->members[m]].serving.models[0];
        serve(c, i, &serving);
        name->composition = composition;
        name->has_workers = 0;
}

/* And on the cores that there are now. */
static bool has_set(struct sl_sim_control *c, uint32_t i, struct sl_sim_set set)
{
        const struct sl_sim_staff *staff = &sl_sim_control_model_of(c, i)->staff;

        return staff->wants.kind == on_cores(c, set).kind && staff->wants.n == set.n;
}

/* All names of the model, or that wait for it, want again what they had. */
static void undo_name(struct sl_sim_control *c, uint32_t i, struct sl_sim_set before)
{
        uint64_t file = c->names[i].file;

        sl_sim_staff_undo(&sl_sim_control_model_of(c, i)->staff, c->now_ns, &c->ledger);
        for (uint32_t k = 0; k < c->options.n_names; k++) {
                struct sl_sim_control_name *name = &c->names[k];

                if (sl_sim_control_model_of(c, k) == sl_sim_control_model_of(c, i))
                        name->changes = false;
                if (!sl_sim_control_is_of_file(c, k, file))
                        continue;
                name->set = before;
                name->workers = sl_sim_control_number(c);
                name->failed_workers = 0;
                if (sl_sim_control_model_of(c, k) == sl_sim_control_model_of(c, i) && has_set(c, i, before))
                        name->has_workers = name->workers;
        }
}

static void undo(struct sl_sim_control *c, uint64_t number)
{
        struct sl_sim_control_group *group = group_of(c, number);

        for (uint32_t i = 0; i < c->options.n_names; i++)
                if (c->names[i].group == number)
                        undo_name(c, i, group->before[i]);
        end_group(c, group);
}

static void forget(struct sl_sim_control_name *name)
{
        *name = (struct sl_sim_control_name){
                .loaded = SL_SIM_NONE, .loaded_plan = SL_SIM_NONE, .plan = SL_SIM_NONE, .user = SL_SIM_NONE};
}

static void release(struct sl_sim_control *c, uint64_t number)
{
        group_of(c, number)->released = true;
        look_at_holds(c);
        for (uint32_t m = 0; m < SL_SIM_MODELS; m++)
                hear_staff(c, m);
}

static void settle(struct sl_sim_control *c, const struct sl_step *step)
{
        if (step->from == SL_SETTLE_RELEASE)
                release(c, step->want);
        else if (step->from == SL_SETTLE_UNDO)
                undo(c, step->want);
        else
                end_group(c, group_of(c, step->want));
}

void sl_sim_control_act(struct sl_sim_control *c, const struct sl_step *step)
{
        struct sl_sim_control_name *name = step->name == SL_FLEET_NONE ? NULL : &c->names[step->name];

        switch (step->kind) {
        case SL_STEP_LOAD:
                begin_load(c, step->name, (enum sl_load_part)step->from);
                break;
        case SL_STEP_STANDBY:
                stand_by(c, step->name, step->from);
                break;
        case SL_STEP_CANCEL:
                drop_load(c, name);
                break;
        case SL_STEP_REST:
                rest(c, step->name);
                break;
        case SL_STEP_REFUSE:
                name->lacks_memory = false;
                if (!name->asked)
                        fail(c, step->name, false);
                name->asked = false;
                break;
        case SL_STEP_TURN:
                if (step->from == SL_TURN_ON)
                        resume(c, name);
                else
                        step_aside(c, name);
                break;
        case SL_STEP_SERVE:
                take_loaded(c, step->name);
                break;
        case SL_STEP_FAIL: {
                bool is_plan = name->load_is_plan;

                if (name->load != SL_FLEET_LOAD_NONE)
                        drop_load(c, name);
                else
                        name->composition = 0;
                fail(c, step->name, is_plan);
                break;
        }
        case SL_STEP_SHARE:
                share(c, step->name, (uint32_t)step->from);
                break;
        case SL_STEP_COMPOSE:
                compose(c, step->name, step->composition);
                break;
        case SL_STEP_WORKERS:
                begin_workers(c, step->name);
                break;
        case SL_STEP_WITHDRAW:
                withdraw_sizes(c, step->name);
                drain(c, step->name);
                break;
        case SL_STEP_FORGET:
                forget(name);
                break;
        case SL_STEP_SETTLE:
                settle(c, step);
                break;
        default:
                break;
        }
}

/* ---- time ---- */

static void sooner(uint64_t *at_ns, uint64_t other_ns)
{
        if (other_ns && other_ns < *at_ns)
                *at_ns = other_ns;
}

uint64_t sl_sim_control_due_ns(const struct sl_sim_control *c)
{
        uint64_t due_ns = UINT64_MAX;

        for (uint32_t i = 0; i < c->options.n_names; i++) {
                const struct sl_sim_control_name *name = &c->names[i];

                sooner(&due_ns, name->told_ns);
                sooner(&due_ns, name->load_due_ns);
                if (name->used && sl_sim_control_is_late(c, name->user))
                        sooner(&due_ns, c->users[name->user].due_ns - (SL_SIM_BURST - 1) * SL_SIM_RATE_NS);
                if (name->used && name->busy_ns > c->now_ns)
                        sooner(&due_ns, name->busy_ns);
        }
        for (uint32_t m = 0; m < SL_SIM_MODELS; m++)
                if (c->models[m].serial)
                        sooner(&due_ns, sl_sim_staff_due_ns(&c->models[m].staff));
        for (uint32_t k = 0; k < c->n_retired; k++)
                sooner(&due_ns, c->retired[k].due_ns);
        for (uint32_t k = 0; k < c->n_killed; k++)
                sooner(&due_ns, c->killed_ns[k]);
        return due_ns;
}

static void hear_retired(struct sl_sim_control *c)
{
        for (uint32_t k = 0; k < c->n_retired;) {
                if (c->retired[k].due_ns > c->now_ns) {
                        k++;
                        continue;
                }
                unref(c, &c->retired[k].serving);
                if (c->retired[k].name != SL_SIM_NONE)
                        serve_no_more(c, &c->names[c->retired[k].name]);
                c->retired[k] = c->retired[--c->n_retired];
        }
}

void sl_sim_control_pass(struct sl_sim_control *c, uint64_t now_ns)
{
        c->now_ns = now_ns;
        hear_retired(c);
        hear_killed(c);
        for (uint32_t m = 0; m < SL_SIM_MODELS; m++)
                hear_staff(c, m);
        for (uint32_t i = 0; i < c->options.n_names; i++) {
                struct sl_sim_control_name *name = &c->names[i];

                if (name->told_ns && name->told_ns <= now_ns)
                        name->told_ns = 0;
                if (name->load_due_ns && name->load_due_ns <= now_ns)
                        go_on(c, name);
        }
}

/* ---- from outside ---- */

void sl_sim_control_init(struct sl_sim_control *c, const struct sl_sim_control_options *options, uint64_t seed)
{
        memset(c, 0, sizeof(*c));
        c->options = *options;
        c->dice.state = seed * 0x9e3779b97f4a7c15ull + 1;
        c->ledger.limit_bytes = options->memory_bytes;
        c->now_ns = 1;
        for (uint32_t i = 0; i < SL_SIM_NAMES; i++)
                forget(&c->names[i]);
}

void sl_sim_control_change_cores(struct sl_sim_control *c)
{
        c->cores++;
        for (uint32_t i = 0; i < c->options.n_names; i++)
                if (c->names[i].serves && !c->names[i].drains)
                        c->names[i].has_workers = c->names[i].failed_workers = 0;
}

void sl_sim_control_kill_worker(struct sl_sim_control *c)
{
        uint32_t m = sl_sim_roll(&c->dice, SL_SIM_MODELS);

        if (c->models[m].serial)
                sl_sim_staff_kill(&c->models[m].staff, c->now_ns, &c->dice);
}
