/* SPDX-License-Identifier: Apache-2.0 */
#include "control_watch.h"

#include "control_facts.h"

#include <stddef.h>

#define MUST(condition, rule) must(w, (condition), i, (rule))

static void must(struct sl_control_watch *w, bool holds, uint32_t name, const char *rule)
{
        if (holds || w->broken)
                return;
        w->broken = rule;
        w->broken_name = name;
}

/* Of one that is on standby the plan goes, of another one all. */
static void watch_rest(struct sl_control_watch *w, const struct sl_sim_control *c, uint32_t i, const enum sl_await *awaits)
{
        const struct sl_sim_control_name *name = &c->names[i];
        bool is_useless = name->rests && name->standby && (name->standby != name->want || has_failed(name));
        uint64_t idle_ns = name->rests ? name->busy_ns : may_go(c, i) ? sl_sim_control_idle_ns(c, sl_sim_control_model(c, i)) : 0;
        bool is_old = is_over(idle_ns, name->idle_unload_ns, c->now_ns), for_memory;

        w->names[i].loaded = w->names[i].workers = 0;
        if (is_useless)
                return;
        MUST(name->rests ? may_lose_plan(c, i) : may_go(c, i), "no model is unloaded that is in use, asked for, or a member");
        MUST(!name->wants_plan || name->serves != name->want, "a plan that is to be there is not unloaded");
        MUST(is_old || makes_room(c, idle_ns, awaits, &for_memory),
                "a model is unloaded when it was used longest ago and has to make room, or has not been used for long");
        MUST(is_old || !something_leaves(c), "one model after another makes room");
        MUST(is_old || for_memory || name->idle_standby_ns == UINT64_MAX || name->serves != name->want,
                "a plan makes room for what lacks memory");
}

/* The plan of another name, one that has been loaded, or that of its own model. */
static void watch_standby(
        struct sl_control_watch *w, const struct sl_sim_control *c, const struct sl_step *step, const enum sl_await *awaits)
{
        uint32_t i = step->name;
        const struct sl_sim_control_name *name = &c->names[i];
        uint64_t idle_ns = may_go(c, i) ? sl_sim_control_idle_ns(c, sl_sim_control_model(c, i)) : 0;
        bool is_old = is_over(idle_ns, standby_after_ns(name), c->now_ns), is_needed, for_memory;

        MUST(name->want && !name->drains && !name->told_ns, "what is on standby is wanted, and told of");
        w->names[i].loaded = w->names[i].workers = 0;
        if (step->from != SL_FLEET_NONE) {
                const struct sl_sim_control_name *other = &c->names[step->from];

                MUST(name->wants_plan && !name->asked && !is_member(c, i) && sl_sim_control_model(c, i) == SL_SIM_NONE,
                        "the plan of another name is for what wants one, and has none");
                MUST(step->from < c->options.n_names && step->from != i && other->file == name->file &&
                                (is_served(other) || is_on_standby(other)),
                        "a plan is that of the file that is wanted");
                MUST(will_do(c, name, is_served(other) ? c->models[other->serving.models[0]].plan : other->plan),
                        "what is wanted anew is loaded after that");
                return;
        }
        if (name->load == SL_FLEET_LOAD_LOADED) {
                MUST(name->load_is_plan && name->load_want == name->want && name->load_file == name->file,
                        "a plan is that of the file that is wanted");
                return;
        }
        MUST(may_go(c, i) && name->serves == name->want, "no workers leave of a model that is in use, asked for, or a member");
        is_needed = makes_room(c, idle_ns, awaits, &for_memory);
        MUST(is_old || is_needed,
                "workers leave when their model was used longest ago and has to make room, or has not been used for long");
        MUST(is_old || !something_leaves(c), "one model after another makes room");
        MUST(is_old || name->wants_plan || !for_memory || name->idle_standby_ns != UINT64_MAX,
                "what is not to be on standby is unloaded");
        MUST(name->wants_plan || is_needed || !is_over(idle_ns, name->idle_unload_ns, c->now_ns), "what is to be unloaded is");
}

/* What is loaded: all, the workers of a plan on standby, or a plan for that. */
static void watch_part(struct sl_control_watch *w, const struct sl_sim_control *c, const struct sl_step *step)
{
        uint32_t i = step->name;
        const struct sl_sim_control_name *name = &c->names[i];

        if (step->from == SL_LOAD_PART_PLAN)
                MUST(name->wants_plan && !name->asked && !is_member(c, i) && sl_sim_control_model(c, i) == SL_SIM_NONE &&
                                name->no_standby != name->want,
                        "a plan alone is loaded before anybody asks, once");
        else
                MUST(!name->on_request || name->asked || is_member(c, i) || sl_sim_control_model(c, i) != SL_SIM_NONE,
                        "what is loaded on request is loaded when somebody asks for it");
        MUST((step->from == SL_LOAD_PART_WORKERS) == is_on_standby(name), "a plan that is there is not loaded again");
        MUST(step->from == SL_LOAD_PART_WORKERS || c->loads + c->n_killed < c->options.loads_max,
                "no more loads than may be at a time");
}

static void watch_refuse(struct sl_control_watch *w, const struct sl_sim_control *c, uint32_t i, uint64_t cause)
{
        const struct sl_sim_control_name *name = &c->names[i];

        if (cause == SL_REFUSED_LATE)
                MUST(name->asked && name->ask_due_ns <= c->now_ns, "who asks waits as long as it may");
        else
                MUST(is_full(c) && !has_older(c, UINT64_MAX, i) && !something_leaves(c),
                        "who asks has a place that another can leave");
}

/* ---- steps ---- */

/* A name of this user waits for a place; @awaits: of this moment. */
static bool user_waits(const struct sl_sim_control *c, uint32_t user, const enum sl_await *awaits)
{
        for (uint32_t i = 0; i < c->options.n_names; i++)
                if (awaits[i] == SL_AWAIT_SLOT && c->names[i].user == user)
                        return true;
        return false;
}

/* What one user has loaded while another waits. That one may wait no longer: its name is not wanted any more. */
static void watch_turns(struct sl_control_watch *w, const struct sl_sim_control *c, uint32_t i, const enum sl_await *awaits)
{
        uint32_t user = c->names[i].user;

        for (uint32_t u = 0; u < SL_SIM_USERS; u++) {
                w->users[u].waits = w->users[u].waits && user_waits(c, u, awaits);
                if (u != user && w->users[u].waits)
                        MUST(++w->users[u].before[user] <= 1, "no user has two loads while another waits for one");
        }
        w->users[user].waits = false;
}

static void watch_load(
        struct sl_control_watch *w, const struct sl_sim_control *c, const struct sl_step *step, const enum sl_await *awaits)
{
        uint32_t i = step->name;
        const struct sl_sim_control_name *name = &c->names[i];
        uint64_t turn = name->user == SL_SIM_NONE ? 0 : 1 + c->users[name->user].turn;

        if (step->from == SL_LOAD_PART_PLAN)
                MUST(name->want > w->names[i].planned, "a plan is loaded once");
        else
                MUST(name->want > w->names[i].loaded || name->asked, "a want is loaded once");
        watch_part(w, c, step);
        MUST(name->load == SL_FLEET_LOAD_NONE, "a name has one load");
        MUST(!is_loaded_elsewhere(c, i), "a file is loaded once at a time");
        MUST(!is_served_elsewhere(c, i), "a file is not loaded that another name serves");
        MUST(!base_loads(c, i, 0), "sizes wait a while for their base");
        MUST(name->kind != SL_FLEET_SIZES || has_something(&c->names[name->open]), "sizes are loaded of what serves");
        MUST(name->kind != SL_FLEET_ENSEMBLE && !name->own_sizes, "what others have is not loaded");
        MUST(step->from == SL_LOAD_PART_WORKERS || name->user == SL_SIM_NONE ||
                        c->users[name->user].due_ns <= c->now_ns + (SL_SIM_BURST - 1) * SL_SIM_RATE_NS,
                "a user has no more loads than its rate");
        *(step->from == SL_LOAD_PART_PLAN ? &w->names[i].planned : &w->names[i].loaded) = name->want;
        if (step->from == SL_LOAD_PART_WORKERS) /* which waits for no turn */
                return;
        for (uint32_t k = 0; k < c->options.n_names; k++) {
                const struct sl_sim_control_name *other = &c->names[k];

                MUST(awaits[k] != SL_AWAIT_SLOT || !is_on_standby(other), "what is on standby waits for no load");
                if (awaits[k] == SL_AWAIT_SLOT)
                        MUST(turn <= (other->user == SL_SIM_NONE ? 0 : 1 + c->users[other->user].turn),
                                "users take turns, and what none has asked for goes first");
        }
        if (name->user != SL_SIM_NONE)
                watch_turns(w, c, i, awaits);
}

static void watch_serve(struct sl_control_watch *w, const struct sl_sim_control *c, uint32_t i, const struct sl_step *step)
{
        const struct sl_sim_control_name *name = &c->names[i];

        MUST(!name->told_ns, "what serves is replaced once the world knows of it");
        MUST(name->want && !name->drains, "what is unwanted takes no name");
        if (step->kind == SL_STEP_SERVE) {
                MUST(name->load == SL_FLEET_LOAD_LOADED && name->load_want == name->want, "what is served is what is wanted");
                MUST(name->load_file == name->file, "of the file that is wanted");
        } else if (step->kind == SL_STEP_SHARE) {
                const struct sl_sim_control_name *other = &c->names[step->from];

                MUST(step->from < c->options.n_names && step->from != i && is_serving(other), "a model is shared that serves");
                MUST(name->own_sizes ? step->from == name->open : other->serves_file == name->file && is_served(other),
                        "a model is shared of the file that is wanted");
                MUST(name->own_sizes || will_do(c, name, c->models[other->serving.models[0]].plan),
                        "what is wanted anew is loaded after that");
                MUST(name->kind != SL_FLEET_SIZES || has_something(&c->names[name->open]), "sizes are shared of what serves");
                MUST(!name->serves || name->rests || name->serves_kind == SL_FLEET_ENSEMBLE || name->own_sizes ||
                                name->serving.models[0] != other->serving.models[0],
                        "what is wanted once more is not the model that serves");
        } else {
                MUST(name->kind == SL_FLEET_ENSEMBLE && has_members(c, name), "an ensemble is made of members that are there");
                /* one that could not be made of others meanwhile is made again */
                MUST(c->options.compose_fails_in || !is_served(name) || !is_composed_of_members(c, name),
                        "an ensemble is made once of the same members");
        }
}

/* It waits without an end: it could have been, or has been, served. */
static void watch_fail(struct sl_control_watch *w, const struct sl_sim_control *c, uint32_t i)
{
        const struct sl_sim_control_name *name = &c->names[i];

        MUST(name->want && name->failed != name->want && (name->serves != name->want || name->rests), "a want fails once");
        if (name->kind != SL_FLEET_ENSEMBLE) {
                MUST(name->load == SL_FLEET_LOAD_FAILED && name->load_want == name->want, "a model fails that cannot be loaded");
                MUST(!name->lacks_memory || name->load_is_plan || (!has_older(c, UINT64_MAX, i) && !something_leaves(c)),
                        "a model that lacks memory gets that of others which nobody uses");
                MUST(!name->lacks_memory || !compiler_ends(c), "what lacks memory waits for that of compilers that end");
                if (name->lacks_memory && (name->asked || name->load_is_plan)) /* a later request may find some */
                        w->names[i].loaded = 0;
                return;
        }
        MUST(!has_members(c, name), "an ensemble fails that lacks a member");
        for (uint32_t m = 0; m < name->n_members; m++)
                if (!member_serial(c, name->members[m]) && !member_comes(c, name->members[m]))
                        return;
        MUST(false, "an ensemble waits for members that come");
}

static void watch_workers(struct sl_control_watch *w, const struct sl_sim_control *c, uint32_t i)
{
        const struct sl_sim_control_name *name = &c->names[i];

        MUST(is_serving(name) && name->serves_kind != SL_FLEET_ENSEMBLE && name->want, "workers are those of a model that serves");
        MUST(name->kind != SL_FLEET_ENSEMBLE, "an ensemble has no workers");
        MUST(name->load != SL_FLEET_LOAD_LOADED || name->load_want != name->want, "what is about to be replaced stays as it is");
        MUST(!name->told_ns, "workers change once the world knows of the last change");
        MUST(name->serves == name->want || !is_kept_by_other(c, i), "a model has the workers of a name that it is wanted under");
        MUST(w->names[i].workers != name->workers || w->names[i].cores != c->cores || w->names[i].released != name->serves,
                "a set of workers is tried once");
        w->names[i].workers = name->workers;
        w->names[i].cores = c->cores;
        w->names[i].released = name->serves;
}

/* Where another name has been served by the model, that may have begun to change its workers once more. */
static bool is_ready(const struct sl_sim_control *c, uint32_t i)
{
        const struct sl_sim_staff *staff = sl_sim_control_staff(c, i);
        bool is_shared = staff && c->models[c->names[i].serving.models[0]].names > 1;

        return staff && c->names[i].has_workers == c->names[i].workers &&
               (is_shared ||
                       (!sl_sim_staff_starts(staff) && sl_sim_staff_of_kind(staff, staff->wants.kind, true) >= staff->wants.n));
}

static bool has_failed_workers(const struct sl_sim_control *c, uint32_t i)
{
        return c->names[i].workers && c->names[i].failed_workers == c->names[i].workers;
}

static void watch_group(struct sl_control_watch *w, const struct sl_sim_control *c, const struct sl_step *step)
{
        const struct sl_sim_control_group *group = group_of(c, step->want);
        bool failed = false;

        must(w, group, SL_SIM_NONE, "a group comes to its end once");
        if (!group)
                return;
        for (uint32_t i = 0; i < c->options.n_names; i++) {
                if (!c->names[i].used || c->names[i].group != group->number)
                        continue;
                failed |= has_failed_workers(c, i);
                if (step->from == SL_SETTLE_UNDO) {
                        w->undone |= 1u << i;
                        w->before[i] = group->before[i];
                }
                if (step->from == SL_SETTLE_RELEASE)
                        MUST(is_ready(c, i), "old workers leave when all new ones of the group are ready");
                if (step->from == SL_SETTLE_END)
                        MUST(!c->names[i].told_ns && !c->names[i].changes && (is_ready(c, i) || has_failed_workers(c, i)),
                                "a group settles when nothing changes any more, and the world knows");
        }
        must(w, step->from != SL_SETTLE_RELEASE || (group->atomic && !group->released), SL_SIM_NONE, "a group is released once");
        must(w, step->from != SL_SETTLE_UNDO || (group->atomic && !group->released && failed), SL_SIM_NONE,
                "a group is undone when one fails before its release");
        must(w, step->from != SL_SETTLE_END || !group->atomic || group->released, SL_SIM_NONE,
                "a group settles after its release");
}

static void watch_cancel(struct sl_control_watch *w, const struct sl_sim_control *c, uint32_t i, uint64_t cause)
{
        const struct sl_sim_control_name *name = &c->names[i];
        bool is_over = name->load == SL_FLEET_LOAD_LOADED || name->load == SL_FLEET_LOAD_FAILED;

        if (cause == SL_CANCEL_UNWANTED) {
                MUST((name->load == SL_FLEET_LOAD_SOON || is_over) && name->load_want != name->want,
                        "what is unwanted is cancelled where it has ended or ends at once");
                return;
        }
        MUST(name->load == SL_FLEET_LOAD_FAILED && name->lacks_memory && name->load_want == name->want && c->gone > name->load_gone,
                "a load is tried again when it has lacked memory and some has been freed");
        w->names[i].loaded = w->names[i].planned = 0;
}

static void watch_turn(struct sl_control_watch *w, const struct sl_sim_control *c, uint32_t i, uint64_t turn)
{
        const struct sl_sim_control_name *name = &c->names[i];

        if (turn == SL_TURN_ASIDE)
                MUST(is_under_way(name) && !name->aside && name->waits_ns != UINT64_MAX &&
                                name->waits_ns + SL_SIM_ASIDE_NS <= c->now_ns,
                        "others go ahead of a load that has waited for long");
        else
                MUST(name->aside && name->wants_turn && c->loads + c->n_killed < c->options.loads_max,
                        "a load goes on when there is room");
}

static void watch_of_name(
        struct sl_control_watch *w, const struct sl_sim_control *c, const struct sl_step *step, const enum sl_await *awaits)
{
        uint32_t i = step->name;
        const struct sl_sim_control_name *name = &c->names[i];

        MUST(name->used, "a step is of a name that there is");
        MUST(step->want == name->want, "a step is for what is wanted");
        switch (step->kind) {
        case SL_STEP_LOAD:
                watch_load(w, c, step, awaits);
                break;
        case SL_STEP_SERVE:
        case SL_STEP_SHARE:
        case SL_STEP_COMPOSE:
                watch_serve(w, c, i, step);
                break;
        case SL_STEP_FAIL:
                watch_fail(w, c, i);
                break;
        case SL_STEP_WORKERS:
                watch_workers(w, c, i);
                break;
        case SL_STEP_CANCEL:
                watch_cancel(w, c, i, step->from);
                break;
        case SL_STEP_TURN:
                watch_turn(w, c, i, step->from);
                break;
        case SL_STEP_REST:
                watch_rest(w, c, i, awaits);
                break;
        case SL_STEP_STANDBY:
                watch_standby(w, c, step, awaits);
                break;
        case SL_STEP_REFUSE:
                watch_refuse(w, c, i, step->from);
                break;
        case SL_STEP_WITHDRAW:
                MUST(!name->want && is_serving(name), "what serves goes on until it is unwanted");
                break;
        case SL_STEP_FORGET:
                MUST(!name->want && !name->serves && name->load == SL_FLEET_LOAD_NONE,
                        "a name is free when nothing of it is there");
                break;
        default:
                break;
        }
}

void sl_control_watch_step(
        struct sl_control_watch *w, const struct sl_sim_control *c, const struct sl_step *step, const enum sl_await *awaits)
{
        uint64_t words[] = {step->kind, step->name, step->from, step->want, c->now_ns};

        for (uint32_t k = 0; k < 5; k++)
                w->log = (w->log ^ words[k]) * 0x100000001b3ull;
        w->n_steps++;
        w->count[step->kind]++;
        must(w, sl_step_cause(step), step->name, "each step has a cause");
        if (step->name == SL_FLEET_NONE)
                watch_group(w, c, step);
        else
                watch_of_name(w, c, step, awaits);
}

/* ---- moments ---- */

/* Deaths apart, which stand for the worker that is about to take the place of the dead one. */
static void watch_staff(struct sl_control_watch *w, const struct sl_sim_control *c, uint32_t i)
{
        const struct sl_sim_staff *staff = sl_sim_control_staff(c, i);
        const struct sl_sim_control_group *group = group_of(c, c->names[i].group);
        uint32_t least, old;

        if (!staff)
                return;
        least = staff->has.n < staff->wants.n ? staff->has.n : staff->wants.n;
        MUST(sl_sim_staff_works(staff, true) >= least, "a name has no fewer workers than before or after");
        if (!group || !group->atomic || group->released) {
                w->names[i].group = 0;
                return;
        }
        old = sl_sim_staff_old(staff);
        if (w->names[i].group != group->number)
                w->names[i].old = old;
        w->names[i].group = group->number;
        MUST(old == w->names[i].old, "no old worker of a group leaves before all new ones are ready");
}

/* The workers that were there are there, and no new one will be. */
static void watch_undone(struct sl_control_watch *w, const struct sl_sim_control *c)
{
        for (uint32_t i = 0; i < c->options.n_names; i++) {
                const struct sl_sim_staff *staff = w->undone >> i & 1 ? sl_sim_control_staff(c, i) : NULL;

                if (!staff)
                        continue;
                MUST(c->names[i].set.kind == w->before[i].kind && c->names[i].set.n == w->before[i].n,
                        "when one of a group fails all want what they had");
                MUST(!sl_sim_staff_starts(staff) && sl_sim_staff_old(staff) == sl_sim_staff_works(staff, true) &&
                                sl_sim_staff_old(staff) == w->names[i].old,
                        "when one of a group fails all have what they had");
        }
        w->undone = 0;
}

/* Each plan once, whoever has it; workers; what compiles, and what has been killed and is not gone. */
static uint64_t count_bytes(const struct sl_sim_control *c)
{
        bool is_held[SL_SIM_PLANS] = {false};
        uint64_t bytes = SL_SIM_COMPILER_BYTES * c->n_killed;

        for (uint32_t m = 0; m < SL_SIM_MODELS; m++) {
                if (!c->models[m].serial)
                        continue;
                is_held[c->models[m].plan] = true;
                bytes += SL_SIM_WORKER_BYTES * sl_sim_staff_count(&c->models[m].staff);
        }
        for (uint32_t i = 0; i < c->options.n_names; i++) {
                const struct sl_sim_control_name *name = &c->names[i];

                if (name->standby)
                        is_held[name->plan] = true;
                if (name->loaded_plan != SL_SIM_NONE)
                        is_held[name->loaded_plan] = true;
                else if (is_under_way(name))
                        bytes += SL_SIM_COMPILER_BYTES;
        }
        for (uint32_t p = 0; p < SL_SIM_PLANS; p++)
                bytes += is_held[p] ? c->plans[p].bytes : 0;
        return bytes;
}

void sl_control_watch_moment(struct sl_control_watch *w, const struct sl_sim_control *c)
{
        uint32_t loads = 0;

        for (uint32_t i = 0; i < c->options.n_names; i++) {
                const struct sl_sim_control_name *name = &c->names[i];

                /* what has been withdrawn was checked then; sizes go with what they are of */
                MUST(!w->names[i].serves || is_serving(name) || !name->want || name->kind == SL_FLEET_SIZES || name->drains,
                        "a name that serves goes on until it is unwanted");
                MUST(!name->used || name->load == SL_FLEET_LOAD_NONE || loads_of(c, name->load_file, i) + is_under_way(name) <= 1,
                        "a file is loaded once at a time");
                w->names[i].serves = is_serving(name);
                loads += is_under_way(name) && !name->aside;
                watch_staff(w, c, i);
        }
        must(w, loads == c->loads && loads + c->n_killed <= c->options.loads_max, SL_SIM_NONE,
                "no more loads than may be at a time");
        must(w, !c->options.models_max || count_models(c) <= c->options.models_max, SL_SIM_NONE,
                "no more models than may be loaded");
        must(w, c->ledger.promised_bytes <= c->ledger.limit_bytes, SL_SIM_NONE, "memory is promised up to its limit");
        must(w, c->ledger.promised_bytes == count_bytes(c), SL_SIM_NONE, "memory is promised for what is there");
        watch_undone(w, c);
}

/* ---- when there are no more steps ---- */

static bool is_true(const struct sl_sim_control *c, uint32_t i, enum sl_await await, uint64_t due_ns)
{
        const struct sl_sim_control_name *name = &c->names[i];
        bool set_is_there = name->has_workers == name->workers || name->failed_workers == name->workers ||
                            (name->serves != name->want && is_kept_by_other(c, i));

        switch (await) {
        case SL_AWAIT_NOTHING:
                if (!name->used)
                        return true;
                if (name->load != SL_FLEET_LOAD_NONE || !is_serving(name) || !name->want || name->rests)
                        return false;
                if (name->kind == SL_FLEET_ENSEMBLE)
                        return name->serves == name->want;
                return (name->serves == name->want || name->failed == name->want) &&
                       (name->serves_kind == SL_FLEET_ENSEMBLE || (set_is_there && !name->changes));
        case SL_AWAIT_LOAD:
                return is_under_way(name) && name->load_want == name->want;
        case SL_AWAIT_OLD_LOAD:
                return name->load == SL_FLEET_LOAD_BOUND && name->load_want != name->want;
        case SL_AWAIT_SLOT:
                return c->loads + c->n_killed == c->options.loads_max && !is_on_standby(name);
        case SL_AWAIT_RATE:
                return name->user != SL_SIM_NONE && c->users[name->user].due_ns > c->now_ns + (SL_SIM_BURST - 1) * SL_SIM_RATE_NS;
        case SL_AWAIT_TWIN:
                return is_loaded_elsewhere(c, i);
        case SL_AWAIT_BASE:
                return base_loads(c, i, due_ns);
        case SL_AWAIT_OPEN:
                return name->kind == SL_FLEET_SIZES && !has_something(&c->names[name->open]);
        case SL_AWAIT_MEMBERS:
                return name->kind == SL_FLEET_ENSEMBLE && waits_for_member(c, name);
        case SL_AWAIT_TOLD:
                return name->told_ns;
        case SL_AWAIT_DRAIN:
                return name->drains;
        case SL_AWAIT_WORKERS:
                return name->changes;
        case SL_AWAIT_FAILED:
                return name->want && name->failed == name->want && (name->serves != name->want || name->rests);
        case SL_AWAIT_REQUEST:
                return name->on_request && !name->asked && !is_member(c, i) && sl_sim_control_model(c, i) == SL_SIM_NONE &&
                       name->load == SL_FLEET_LOAD_NONE &&
                       (!name->wants_plan || is_on_standby(name) || name->no_standby == name->want);
        case SL_AWAIT_ROOM:
                return (something_leaves(c) || (lacks_memory(c, i) && compiler_ends(c))) &&
                       (name->load == SL_FLEET_LOAD_FAILED ? name->lacks_memory : c->options.models_max > 0);
        default:
                return false;
        }
}

/* Of a model that is not in use. */
static void watch_due(struct sl_control_watch *w, const struct sl_sim_control *c, uint32_t i, uint64_t due_ns)
{
        const struct sl_sim_control_name *name = &c->names[i];
        uint64_t idle_ns = sl_sim_control_idle_ns(c, sl_sim_control_model(c, i)), standby_ns = standby_after_ns(name);

        if (!name->wants_plan && name->idle_unload_ns != UINT64_MAX)
                MUST(idle_ns + name->idle_unload_ns > c->now_ns && idle_ns + name->idle_unload_ns >= due_ns,
                        "a model that nobody has asked for so long goes");
        if (standby_ns != UINT64_MAX && name->serves == name->want)
                MUST(idle_ns + standby_ns > c->now_ns && idle_ns + standby_ns >= due_ns,
                        "workers leave whose model nobody has asked for so long");
}

/* Nothing that could be done is left undone. */
static void watch_idle(struct sl_control_watch *w, const struct sl_sim_control *c, uint32_t i, uint64_t due_ns)
{
        const struct sl_sim_control_name *name = &c->names[i];
        bool can_change = name->want && is_serving(name) && name->serves_kind != SL_FLEET_ENSEMBLE && !name->told_ns &&
                          !name->rests && name->kind != SL_FLEET_ENSEMBLE;
        bool ends_here = name->serves == name->want || name->failed == name->want || is_under_way(name);

        MUST(!can_change || !ends_here || (name->serves != name->want && is_kept_by_other(c, i)) ||
                        name->has_workers == name->workers || name->failed_workers == name->workers,
                "workers change while a name serves");
        MUST(name->load != SL_FLEET_LOAD_SOON || name->load_want == name->want, "an unwanted load that can end ends");
        MUST(name->load != SL_FLEET_LOAD_FAILED || (name->lacks_memory && (something_leaves(c) || compiler_ends(c))),
                "a load that has failed is over");
        if (may_go(c, i) && ends_here)
                watch_due(w, c, i, due_ns);
        if (may_lose_plan(c, i) && name->idle_unload_ns != UINT64_MAX)
                MUST(name->busy_ns + name->idle_unload_ns > c->now_ns && name->busy_ns + name->idle_unload_ns >= due_ns,
                        "a plan that nobody has asked for so long goes");
        MUST(!name->used || !name->want || !name->standby || name->standby == name->want || name->told_ns || name->drains ||
                        name->load != SL_FLEET_LOAD_NONE,
                "a plan that is not wanted any more goes");
        MUST(!name->asked || name->ask_due_ns >= due_ns, "converge asks to be asked again when somebody has waited for long");
        MUST(name->load != SL_FLEET_LOAD_LOADED || (name->told_ns && name->load_want == name->want), "what is loaded is served");
        MUST(!name->wants_turn || c->loads + c->n_killed == c->options.loads_max, "a load that can go on does");
        if (is_under_way(name) && !name->aside && name->waits_ns != UINT64_MAX)
                MUST(name->waits_ns + SL_SIM_ASIDE_NS >= due_ns && name->waits_ns + SL_SIM_ASIDE_NS > c->now_ns,
                        "converge asks to be asked again when a load has waited for long");
        MUST(name->used ? name->want || name->drains || name->load == SL_FLEET_LOAD_BOUND : true, "what is unwanted goes");
        if (name->used && name->kind == SL_FLEET_ENSEMBLE && is_served(name) && has_members(c, name) && !name->told_ns &&
                !c->options.compose_fails_in)
                MUST(is_composed_of_members(c, name), "an ensemble follows its members");
}

void sl_control_watch_quiet(
        struct sl_control_watch *w, const struct sl_sim_control *c, const enum sl_await *awaits, uint64_t due_ns)
{
        bool waits[SL_SIM_USERS] = {false};

        must(w, due_ns > c->now_ns, SL_SIM_NONE, "when converge asks to be asked again is not over");
        for (uint32_t i = 0; i < c->options.n_names; i++) {
                w->awaited[awaits[i]]++;
                MUST(is_true(c, i, awaits[i], due_ns), sl_await_text(awaits[i]));
                watch_idle(w, c, i, due_ns);
                if (awaits[i] == SL_AWAIT_SLOT && c->names[i].user != SL_SIM_NONE)
                        waits[c->names[i].user] = true;
        }
        for (uint32_t u = 0; u < SL_SIM_USERS; u++) {
                for (uint32_t v = 0; v < SL_SIM_USERS && (!waits[u] || !w->users[u].waits); v++)
                        w->users[u].before[v] = 0;
                w->users[u].waits = waits[u];
        }
}

/* Sizes wait as long as nothing serves of which they are, and an ensemble for such members. */
static bool waits_for_open(const struct sl_sim_control *c, uint32_t i)
{
        const struct sl_sim_control_name *name = &c->names[i];

        if (name->kind == SL_FLEET_SIZES)
                return !has_something(&c->names[name->open]);
        for (uint32_t m = 0; name->kind == SL_FLEET_ENSEMBLE && m < name->n_members; m++)
                if (member_comes(c, name->members[m]) && waits_for_open(c, name->members[m]))
                        return true;
        return false;
}

void sl_control_watch_end(struct sl_control_watch *w, const struct sl_sim_control *c)
{
        for (uint32_t i = 0; i < c->options.n_names; i++) {
                const struct sl_sim_control_name *name = &c->names[i];
                const struct sl_sim_control_model *model = is_serving(name) && sl_sim_control_model(c, i) != SL_SIM_NONE
                                                                   ? &c->models[sl_sim_control_model(c, i)]
                                                                   : NULL;

                MUST(name->used == (name->want != 0), "in the end what is unwanted is gone");
                if (!name->used)
                        continue;
                MUST(!name->asked, "in the end nobody waits for a load");
                MUST(is_served(name) || name->failed == name->want || waits_for_open(c, i) ||
                                (name->on_request && !is_member(c, i)),
                        "in the end what is wanted serves, or has failed");
                MUST(!name->wants_plan || is_served(name) || is_on_standby(name) || name->failed == name->want ||
                                name->no_standby == name->want || is_member(c, i) || has_something(name),
                        "in the end a plan is there that is to be");
                MUST(name->load == SL_FLEET_LOAD_NONE && !name->drains && !name->changes && !name->group && !name->told_ns,
                        "in the end nothing is under way");
                MUST(!is_served(name) || name->serves_kind == SL_FLEET_ENSEMBLE || name->own_sizes || model->file == name->file,
                        "in the end a name serves its file");
                if (is_served(name) && model && model->names == 1 && name->failed_workers != name->workers)
                        MUST(model->staff.has.n == name->set.n && model->staff.has.kind == name->set.kind + 16 * c->cores,
                                "in the end a name has its workers");
        }
        for (uint32_t g = 0; g < SL_SIM_GROUPS; g++)
                must(w, !c->groups[g].number, SL_SIM_NONE, "in the end there is no group");
        must(w, !c->n_killed, SL_SIM_NONE, "in the end no compiler is there");
}
