/* SPDX-License-Identifier: Apache-2.0 */
#include "step.h"

#include "leads.h"

#include <stddef.h>
#include <string.h>

#define LOOK_NS 10000000ull /* at least from one look at a model that is in use to the next */

struct plan {
        const struct sl_fleet *fleet;
        struct sl_step *steps;
        uint32_t n;
        uint32_t loads; /* under way, with the steps so far */
        uint32_t first; /* of the names that would load: whose turn it is */
        uint32_t woken; /* of those on standby that are asked for: the same */
        uint64_t due_ns;
        uint32_t models;                           /* that are loaded, or for the first time being loaded, or leaving */
        bool makes_room;                           /* one of them is leaving, or to rest, or is a load that nobody wants any more */
        uint32_t idle[2];                          /* names that may rest: those that were used longest ago */
        uint32_t idle_held[2];                     /* the same, and names whose plan on standby may go: of all that take memory */
        uint64_t members[SL_FLEET_NAMES_MAX / 64]; /* a bit for each name that an ensemble has */
        struct sl_leads leads;
};

const char *sl_step_name(enum sl_step_kind kind)
{
        static const char *const names[] = {
#define X(id, name, text) [SL_STEP_##id] = name,
                SL_STEP_KINDS(X)
#undef X
        };

        return names[kind];
}

const char *sl_step_cause(const struct sl_step *step)
{
        static const char *const causes[SL_STEP_KIND_COUNT][SL_SETTLE_END + 1] = {
                [SL_STEP_LOAD] = {"it is wanted", "its plan is on standby, and it is asked for", "its plan is to be on standby"},
                [SL_STEP_CANCEL] = {"it is not wanted any more", "it lacked memory, and some has been given back"},
                [SL_STEP_TURN] = {"it waits for a process or a file", "it may go on, and there is room among the loads"},
                [SL_STEP_SERVE] = {"its load has ended"},
                [SL_STEP_FAIL] = {"its load has failed, or one of its members is missing"},
                [SL_STEP_REST] = {"it is not used, or its plan is of another want"},
                [SL_STEP_STANDBY] = {"it is not used, or its plan has been loaded", "another name of its file has the plan"},
                [SL_STEP_REFUSE] = {"it takes longer than may be waited for", "no model that is loaded can leave"},
                [SL_STEP_SHARE] = {"another name of its file serves"},
                [SL_STEP_COMPOSE] = {"its members are there"},
                [SL_STEP_WORKERS] = {"other workers are wanted"},
                [SL_STEP_SETTLE] = {"all new workers are ready", "one of its workers cannot start", "nothing of it is under way"},
                [SL_STEP_WITHDRAW] = {"it is not wanted any more"},
                [SL_STEP_FORGET] = {"nothing of it is left"},
        };
        bool has_twin = step->kind == SL_STEP_STANDBY && step->from != SL_FLEET_NONE;

        switch (step->kind) {
        case SL_STEP_STANDBY:
        case SL_STEP_SHARE:
                return causes[step->kind][has_twin];
        default:
                return causes[step->kind][step->from];
        }
}

const char *sl_await_text(enum sl_await await)
{
        static const char *const texts[] = {
#define X(id, text) [SL_AWAIT_##id] = text,
                SL_AWAITS(X)
#undef X
        };

        return texts[await];
}

enum sl_step_kind sl_await_step(enum sl_await await)
{
        switch (await) {
        case SL_AWAIT_LOAD:
                return SL_STEP_SERVE;
        case SL_AWAIT_OLD_LOAD:
                return SL_STEP_CANCEL;
        case SL_AWAIT_SLOT:
        case SL_AWAIT_RATE:
        case SL_AWAIT_BASE:
        case SL_AWAIT_REQUEST:
        case SL_AWAIT_ROOM:
                return SL_STEP_LOAD;
        case SL_AWAIT_TWIN:
                return SL_STEP_SHARE;
        case SL_AWAIT_MEMBERS:
                return SL_STEP_COMPOSE;
        case SL_AWAIT_DRAIN:
                return SL_STEP_FORGET;
        default:
                return SL_STEP_KIND_COUNT;
        }
}

bool sl_step_is_wide(const struct sl_step *step)
{
        return step->kind != SL_STEP_LOAD && !(step->kind == SL_STEP_TURN && step->from == SL_TURN_ON);
}

/* ---- what is there ---- */

static const struct sl_fleet_name *name_at(const struct sl_fleet *fleet, uint32_t index)
{
        static const struct sl_fleet_name none = {.used = false};

        return index < fleet->n ? &fleet->names[index] : &none;
}

/* It answers requests, of whichever want. */
static bool is_serving(const struct sl_fleet_name *name)
{
        return name->used && name->serves && !name->drains;
}

/* Of one that is wanted. */
static bool has_failed(const struct sl_fleet_name *name)
{
        return name->failed == name->want && (name->serves != name->want || name->rests);
}

/* A member whose model an ensemble can have now: also one that is about to be replaced. */
static bool is_there(const struct sl_fleet_name *member)
{
        return member->used && member->want && member->model && !member->drains && member->kind != SL_FLEET_ENSEMBLE;
}

/* A member that will be there, unless it fails. */
static bool is_coming(const struct sl_fleet_name *member)
{
        return member->used && member->want && member->kind != SL_FLEET_ENSEMBLE && !has_failed(member);
}

uint64_t sl_fleet_composition(const struct sl_fleet *fleet, uint32_t index)
{
        const struct sl_fleet_name *name = &fleet->names[index];
        uint64_t sum = 0xcbf29ce484222325ull;

        for (uint32_t m = 0; m < name->n_members; m++) {
                const struct sl_fleet_name *member = name_at(fleet, name->members[m]);

                if (!is_there(member))
                        return 0;
                sum = (sum ^ member->model) * 0x100000001b3ull;
        }
        return sum ? sum : 1;
}

/* ---- steps ---- */

static enum sl_await add(struct plan *p, enum sl_step_kind kind, uint32_t name, uint64_t from, uint64_t composition)
{
        if (p->n < SL_STEPS_MAX)
                p->steps[p->n++] = (struct sl_step){
                        .kind = kind,
                        .name = name,
                        .from = from,
                        .want = p->fleet->names[name].want,
                        .composition = composition,
                };
        return SL_AWAIT_NOTHING;
}

static void settle(struct plan *p, const struct sl_fleet_group *group, enum sl_settle_part part)
{
        if (p->n < SL_STEPS_MAX)
                p->steps[p->n++] = (struct sl_step){
                        .kind = SL_STEP_SETTLE,
                        .name = SL_FLEET_NONE,
                        .from = part,
                        .want = group->number,
                };
}

static void note_due(struct plan *p, uint64_t due_ns)
{
        p->due_ns = due_ns < p->due_ns ? due_ns : p->due_ns;
}

/* Others go ahead of a load that waits for a process; it has its turn again before anybody new. */
static void take_turns(struct plan *p, uint32_t i)
{
        const struct sl_fleet_name *name = &p->fleet->names[i];

        if (name->wants_turn && p->loads < p->fleet->loads_max) {
                p->loads++;
                add(p, SL_STEP_TURN, i, SL_TURN_ON, 0);
        } else if (!name->aside && name->waits_ns != UINT64_MAX) {
                uint64_t due_ns = name->waits_ns + p->fleet->aside_ns;

                if (due_ns > p->fleet->now_ns) {
                        note_due(p, due_ns);
                        return;
                }
                add(p, SL_STEP_TURN, i, SL_TURN_ASIDE, 0);
        }
}

/* A model has the workers that a name wants which serves what it wants; one that is to be replaced asks for none of those. */
static bool is_kept_by_other(struct plan *p, const struct sl_fleet_name *name)
{
        if (name->serves == name->want)
                return false;
        sl_leads_fill(&p->leads, p->fleet);
        return sl_leads_keep(&p->leads, name->model);
}

static enum sl_await change_workers(struct plan *p, uint32_t i)
{
        const struct sl_fleet_name *name = &p->fleet->names[i];

        if (!name->model) /* an ensemble serves, and what is wanted is a model */
                return SL_AWAIT_NOTHING;
        if (name->workers != name->has_workers && name->workers != name->failed_workers && !is_kept_by_other(p, name))
                return name->is_told ? add(p, SL_STEP_WORKERS, i, 0, 0) : SL_AWAIT_TOLD;
        return name->workers_start || name->workers_leave ? SL_AWAIT_WORKERS : SL_AWAIT_NOTHING;
}

/* ---- models that are loaded on request ---- */

static bool is_member(const struct plan *p, uint32_t i)
{
        return p->members[i / 64] >> i % 64 & 1;
}

static void note_members(struct plan *p, const struct sl_fleet_name *ensemble)
{
        for (uint32_t m = 0; m < ensemble->n_members; m++)
                if (ensemble->members[m] < p->fleet->n)
                        p->members[ensemble->members[m] / 64] |= 1ull << ensemble->members[m] % 64;
}

/* Its plan is there, and has no workers: it goes on from there as soon as somebody asks. */
static bool is_on_standby(const struct sl_fleet_name *name)
{
        return name->standby && name->standby == name->want;
}

/* What is loaded for it takes a place among the models. */
static bool needs_place(const struct sl_fleet_name *name)
{
        return name->kind == SL_FLEET_MODEL && !name->has_place;
}

/* Nobody has asked for it, and no ensemble has it. */
static bool is_not_asked(const struct plan *p, uint32_t i)
{
        const struct sl_fleet_name *name = &p->fleet->names[i];

        return name->on_request && name->kind == SL_FLEET_MODEL && !name->asked && !is_member(p, i);
}

static bool may_rest(const struct plan *p, uint32_t i)
{
        const struct sl_fleet_name *name = &p->fleet->names[i];

        return name->used && name->want && is_not_asked(p, i) && name->model && name->idle_ns != UINT64_MAX && is_serving(name) &&
               name->is_told && name->load == SL_FLEET_LOAD_NONE && !name->group;
}

/* Its plan is on standby, and may be unloaded. */
static bool may_lose_plan(const struct plan *p, uint32_t i)
{
        const struct sl_fleet_name *name = &p->fleet->names[i];

        return name->used && is_on_standby(name) && !name->wants_plan && is_not_asked(p, i) && name->load == SL_FLEET_LOAD_NONE &&
               name->is_told && !name->drains;
}

/* Keeps the two that were used longest ago, the first one first. */
static void note_oldest(const struct sl_fleet_name *names, uint32_t oldest[2], uint32_t i)
{
        if (oldest[0] == SL_FLEET_NONE || names[i].idle_ns < names[oldest[0]].idle_ns) {
                oldest[1] = oldest[0];
                oldest[0] = i;
        } else if (oldest[1] == SL_FLEET_NONE || names[i].idle_ns < names[oldest[1]].idle_ns) {
                oldest[1] = i;
        }
}

static void note_idle(struct plan *p, uint32_t i)
{
        bool rests = may_rest(p, i);

        if (rests)
                note_oldest(p->fleet->names, p->idle, i);
        if (rests || may_lose_plan(p, i))
                note_oldest(p->fleet->names, p->idle_held, i);
}

/* Returns whether there are names that are loaded on request. */
static bool count_places(struct plan *p)
{
        bool on_request = false;

        p->models = p->fleet->models + p->fleet->leaving;
        p->makes_room = p->fleet->leaving > 0;
        for (uint32_t i = 0; i < p->fleet->n; i++) {
                const struct sl_fleet_name *name = &p->fleet->names[i];

                on_request |= name->used && name->on_request;
                if (!name->used || name->load == SL_FLEET_LOAD_NONE || !needs_place(name) || name->load_is_plan)
                        continue;
                p->models++;
                p->makes_room |= name->load_want != name->want;
        }
        return on_request;
}

static void look_around(struct plan *p)
{
        p->idle[0] = p->idle[1] = p->idle_held[0] = p->idle_held[1] = SL_FLEET_NONE;
        memset(p->members, 0, sizeof(p->members));
        if (!count_places(p))
                return;
        for (uint32_t i = 0; i < p->fleet->n; i++)
                if (p->fleet->names[i].used && p->fleet->names[i].want && p->fleet->names[i].kind == SL_FLEET_ENSEMBLE)
                        note_members(p, &p->fleet->names[i]);
        for (uint32_t i = 0; i < p->fleet->n; i++)
                note_idle(p, i);
}

/* The plan of what serves is the one that is wanted. */
static bool may_stand_by(const struct sl_fleet_name *name)
{
        return name->model && name->serves == name->want;
}

/* So long nobody asks before its workers leave, which is all that is unloaded of a plan that stays; or before all is unloaded. */
static uint64_t standby_after_ns(const struct sl_fleet_name *name)
{
        if (!may_stand_by(name))
                return UINT64_MAX;
        return name->wants_plan && name->idle_unload_ns < name->idle_standby_ns ? name->idle_unload_ns : name->idle_standby_ns;
}

static uint64_t unload_after_ns(const struct sl_fleet_name *name)
{
        return name->wants_plan ? UINT64_MAX : name->idle_unload_ns;
}

/* Its workers leave, and its plan stays where it is to. */
static enum sl_await stand_by(struct plan *p, uint32_t i)
{
        return add(p, SL_STEP_STANDBY, i, SL_FLEET_NONE, 0);
}

/*
 * For what is loaded for @i: the one of @oldest that was used longest ago goes, but not the one that @i is sizes of. Whatever
 * leaves is waited for, before another has to. False: all are in use.
 */
static bool make_room(struct plan *p, uint32_t i, const uint32_t oldest[2])
{
        const struct sl_fleet_name *name = &p->fleet->names[i];
        uint32_t idle = oldest[name->kind == SL_FLEET_SIZES && name->open == oldest[0]];

        if (p->makes_room || idle == SL_FLEET_NONE)
                return p->makes_room;
        /* To have its workers leave is enough for a place, and all that may be taken of a plan that is to stay. */
        if (may_stand_by(&p->fleet->names[idle]) &&
                (p->fleet->names[idle].wants_plan || (oldest == p->idle && standby_after_ns(&p->fleet->names[idle]) != UINT64_MAX)))
                stand_by(p, idle);
        else
                add(p, SL_STEP_REST, idle, 0, 0);
        return p->makes_room = true;
}

/* A load that has failed: with what other models leave it may not. */
static enum sl_await end_failed(struct plan *p, uint32_t i)
{
        const struct sl_fleet_name *name = &p->fleet->names[i];

        if (!name->lacks_memory)
                return add(p, SL_STEP_FAIL, i, 0, 0);
        if (p->fleet->gone > name->load_gone)
                return add(p, SL_STEP_CANCEL, i, SL_CANCEL_RETRY, 0);
        if (p->fleet->ending) /* which leaves memory by itself */
                return SL_AWAIT_ROOM;
        if (name->load_is_plan) /* nobody has asked: that takes no room from others */
                return add(p, SL_STEP_FAIL, i, 0, 0);
        return make_room(p, i, p->idle_held) ? SL_AWAIT_ROOM : add(p, SL_STEP_FAIL, i, 0, 0);
}

/* There are as many models as there may be. */
static enum sl_await take_place(struct plan *p, uint32_t i)
{
        return make_room(p, i, p->idle) ? SL_AWAIT_ROOM : add(p, SL_STEP_REFUSE, i, SL_REFUSED_PLACES, 0);
}

/* Whoever has asked waits as long as it may, whatever the name waits for. */
static bool is_asked_too_long(struct plan *p, const struct sl_fleet_name *name)
{
        if (!name->asked || !name->want)
                return false;
        if (name->ask_due_ns <= p->fleet->now_ns)
                return true;
        note_due(p, name->ask_due_ns);
        return false;
}

/* Of what is in use nobody hears when that ends. */
static void look_again(struct plan *p, uint64_t idle_unload_ns)
{
        uint64_t step_ns = idle_unload_ns / 8;

        note_due(p, p->fleet->now_ns + (step_ns > LOOK_NS ? step_ns : LOOK_NS));
}

/* Nobody asks for what is loaded: it goes when that has been so for long, or its workers do. */
static enum sl_await rest(struct plan *p, uint32_t i)
{
        const struct sl_fleet_name *name = &p->fleet->names[i];
        uint64_t unload_ns = unload_after_ns(name), standby_ns = standby_after_ns(name);
        uint64_t idle_ns = unload_ns < standby_ns ? unload_ns : standby_ns;

        if (idle_ns != UINT64_MAX && name->idle_ns == UINT64_MAX)
                look_again(p, idle_ns);
        if (idle_ns == UINT64_MAX || !may_rest(p, i))
                return change_workers(p, i);
        if (name->idle_ns + idle_ns > p->fleet->now_ns) {
                note_due(p, name->idle_ns + idle_ns);
                return change_workers(p, i);
        }
        return unload_ns == UINT64_MAX || name->idle_ns + unload_ns > p->fleet->now_ns ? stand_by(p, i)
                                                                                       : add(p, SL_STEP_REST, i, 0, 0);
}

static void take_turn(const struct plan *p, uint32_t *first, uint32_t i)
{
        if (*first == SL_FLEET_NONE || p->fleet->names[i].turn < p->fleet->names[*first].turn)
                *first = i;
}

/* Whose turn it is, of those that need nothing but a place among the loads; and of those whose plan is there, which need none. */
static enum sl_await queue_load(struct plan *p, uint32_t i)
{
        take_turn(p, is_on_standby(&p->fleet->names[i]) ? &p->woken : &p->first, i);
        return SL_AWAIT_SLOT;
}

/* Of what nobody has asked for the plan alone is loaded. */
static bool loads_plan(const struct plan *p, uint32_t i)
{
        return is_not_asked(p, i) && !p->fleet->names[i].model;
}

/* What other names of the file have will do that began to be loaded then, or later. */
static uint64_t since(const struct sl_fleet_name *name)
{
        return name->anew ? name->want : 0;
}

/* That of another name of the file, or one that is loaded for it: whose turn it is, as for any load. */
static enum sl_await get_plan(struct plan *p, uint32_t i)
{
        const struct sl_fleet_name *name = &p->fleet->names[i];
        uint32_t twin;

        if (!name->is_told)
                return SL_AWAIT_TOLD;
        sl_leads_fill(&p->leads, p->fleet);
        twin = sl_leads_serving(&p->leads, name->file, 0, since(name));
        if (twin == SL_FLEET_NONE)
                twin = sl_leads_standby(&p->leads, name->file, since(name));
        if (twin != SL_FLEET_NONE)
                return add(p, SL_STEP_STANDBY, i, twin, 0);
        if (sl_leads_load(&p->leads, name->file))
                return SL_AWAIT_TWIN;
        return name->is_late ? SL_AWAIT_RATE : queue_load(p, i);
}

/* Its plan is to be there though nobody has asked: always, or until its inputs and outputs are known. */
static bool lacks_plan(const struct sl_fleet_name *name)
{
        return (name->wants_plan || (name->wants_ports && !name->serves)) && !name->standby && name->no_standby != name->want;
}

/* Nobody asks for what is not loaded, but for its plan perhaps, which goes when that has been so for long. */
static enum sl_await lie_idle(struct plan *p, uint32_t i)
{
        const struct sl_fleet_name *name = &p->fleet->names[i];

        if (has_failed(name))
                return SL_AWAIT_FAILED;
        if (lacks_plan(name))
                return get_plan(p, i);
        if (!name->standby || unload_after_ns(name) == UINT64_MAX)
                return SL_AWAIT_REQUEST;
        if (name->idle_ns + unload_after_ns(name) <= p->fleet->now_ns)
                return name->is_told ? add(p, SL_STEP_REST, i, 0, 0) : SL_AWAIT_TOLD;
        note_due(p, name->idle_ns + unload_after_ns(name));
        return SL_AWAIT_REQUEST;
}

/* What serves meanwhile goes on as it is wanted. */
static enum sl_await follow_load(struct plan *p, uint32_t i)
{
        const struct sl_fleet_name *name = &p->fleet->names[i];
        bool is_over = name->load == SL_FLEET_LOAD_LOADED || name->load == SL_FLEET_LOAD_FAILED;

        if (!is_over && name->want && !name->drains && name->kind != SL_FLEET_ENSEMBLE)
                change_workers(p, i);
        if (name->load_want != name->want && (is_over || name->load == SL_FLEET_LOAD_SOON))
                return add(p, SL_STEP_CANCEL, i, SL_CANCEL_UNWANTED, 0);
        take_turns(p, i);
        if (name->load_want != name->want)
                return SL_AWAIT_OLD_LOAD;
        if (name->load == SL_FLEET_LOAD_FAILED)
                return end_failed(p, i);
        if (name->load != SL_FLEET_LOAD_LOADED)
                return SL_AWAIT_LOAD;
        if (!name->is_told)
                return SL_AWAIT_TOLD;
        return name->load_is_plan ? stand_by(p, i) : add(p, SL_STEP_SERVE, i, 0, 0);
}

static enum sl_await end_name(struct plan *p, uint32_t i)
{
        const struct sl_fleet_name *name = &p->fleet->names[i];

        if (name->drains)
                return SL_AWAIT_DRAIN;
        return add(p, name->serves ? SL_STEP_WITHDRAW : SL_STEP_FORGET, i, 0, 0);
}

/* Whether one of the members is not there and will not come. */
static bool lacks_member(const struct sl_fleet *fleet, const struct sl_fleet_name *name)
{
        for (uint32_t m = 0; m < name->n_members; m++) {
                const struct sl_fleet_name *member = name_at(fleet, name->members[m]);

                if (!is_there(member) && !is_coming(member))
                        return true;
        }
        return false;
}

/* Made anew whenever a member has another model; what could not be made of these is tried again with others. */
static enum sl_await compose(struct plan *p, uint32_t i)
{
        const struct sl_fleet_name *name = &p->fleet->names[i];
        uint64_t composition = sl_fleet_composition(p->fleet, i);
        bool is_new = name->serves != name->want && !has_failed(name);

        if (is_new && lacks_member(p->fleet, name))
                return add(p, SL_STEP_FAIL, i, 0, 0);
        if (!composition)
                return has_failed(name) ? SL_AWAIT_FAILED : is_new ? SL_AWAIT_MEMBERS : SL_AWAIT_NOTHING;
        if (!is_new && composition == name->composition)
                return has_failed(name) ? SL_AWAIT_FAILED : SL_AWAIT_NOTHING;
        return name->is_told ? add(p, SL_STEP_COMPOSE, i, 0, composition) : SL_AWAIT_TOLD;
}

/* Sizes whose plan will be the base of the others are being loaded: these had better wait, but not for long. */
static bool base_comes(struct plan *p, const struct sl_fleet_name *name)
{
        uint32_t lead = sl_leads_base(&p->leads, name->open);
        uint64_t due_ns = lead == SL_FLEET_NONE ? 0 : p->fleet->names[lead].load_since_ns + p->fleet->base_ns;

        if (!name->needs_base || name_at(p->fleet, name->open)->has_base || due_ns <= p->fleet->now_ns)
                return false;
        note_due(p, due_ns);
        return true;
}

static enum sl_await begin_load(struct plan *p, uint32_t i)
{
        const struct sl_fleet_name *name = &p->fleet->names[i];
        uint32_t twin;

        if (!name->is_told)
                return SL_AWAIT_TOLD;
        if (name->kind == SL_FLEET_SIZES && (!is_serving(name_at(p->fleet, name->open)) || name_at(p->fleet, name->open)->rests))
                return SL_AWAIT_OPEN;
        sl_leads_fill(&p->leads, p->fleet);
        twin = name->own_sizes ? name->open : sl_leads_serving(&p->leads, name->file, name->model, since(name));
        if (twin != SL_FLEET_NONE)
                return add(p, SL_STEP_SHARE, i, twin, 0);
        if (sl_leads_load(&p->leads, name->file))
                return SL_AWAIT_TWIN;
        if (name->is_late && !is_on_standby(name))
                return SL_AWAIT_RATE;
        if (p->fleet->models_max && needs_place(name) && p->models >= p->fleet->models_max)
                return take_place(p, i);
        return base_comes(p, name) ? SL_AWAIT_BASE : queue_load(p, i);
}

static enum sl_await look_at(struct plan *p, uint32_t i)
{
        const struct sl_fleet_name *name = &p->fleet->names[i];

        if (is_asked_too_long(p, name))
                return add(p, SL_STEP_REFUSE, i, SL_REFUSED_LATE, 0);
        if (name->load != SL_FLEET_LOAD_NONE)
                return follow_load(p, i);
        if (!name->want)
                return end_name(p, i);
        if (name->drains)
                return SL_AWAIT_DRAIN;
        if (name->standby && (!is_on_standby(name) || has_failed(name)))
                return name->is_told ? add(p, SL_STEP_REST, i, 0, 0) : SL_AWAIT_TOLD;
        if (name->kind == SL_FLEET_ENSEMBLE)
                return compose(p, i);
        if (is_not_asked(p, i) && !name->model)
                return lie_idle(p, i);
        if (is_not_asked(p, i) && (name->serves == name->want || has_failed(name)))
                return rest(p, i);
        if (!name->rests && (name->serves == name->want || (name->serves && has_failed(name))))
                return change_workers(p, i);
        return has_failed(name) ? SL_AWAIT_FAILED : begin_load(p, i);
}

/* ---- groups ---- */

static void look_at_group(struct plan *p, const struct sl_fleet_group *group)
{
        bool is_held = group->atomic && !group->released;
        bool failed = false, pending = false, start = false, leave = false, told = true;

        for (uint32_t i = 0; i < p->fleet->n; i++) {
                const struct sl_fleet_name *name = &p->fleet->names[i];

                if (!name->used || name->group != group->number)
                        continue;
                failed |= name->failed_workers == name->workers;
                pending |= name->has_workers != name->workers && name->failed_workers != name->workers;
                start |= name->workers_start;
                leave |= name->workers_leave;
                told &= name->is_told;
        }
        if (is_held && failed)
                settle(p, group, SL_SETTLE_UNDO);
        else if (pending || start)
                return;
        else if (is_held)
                settle(p, group, SL_SETTLE_RELEASE);
        else if (!leave && told)
                settle(p, group, SL_SETTLE_END);
}

uint32_t sl_converge(
        const struct sl_fleet *fleet, struct sl_step steps[SL_STEPS_MAX], enum sl_await *ret_awaits, uint64_t *ret_due_ns)
{
        struct plan p;

        p.fleet = fleet;
        p.steps = steps;
        p.n = 0;
        p.loads = fleet->loads + fleet->ending;
        p.first = p.woken = SL_FLEET_NONE;
        p.due_ns = UINT64_MAX;
        p.leads.fleet = NULL; /* the rest of it is written when it is needed: it is large */
        look_around(&p);
        for (uint32_t i = 0; i < fleet->n; i++) {
                enum sl_await await = fleet->names[i].used ? look_at(&p, i) : SL_AWAIT_NOTHING;

                if (ret_awaits)
                        ret_awaits[i] = await;
        }
        if (p.woken != SL_FLEET_NONE)
                add(&p, SL_STEP_LOAD, p.woken, SL_LOAD_PART_WORKERS, 0);
        else if (p.first != SL_FLEET_NONE && p.loads < fleet->loads_max)
                add(&p, SL_STEP_LOAD, p.first, loads_plan(&p, p.first) ? SL_LOAD_PART_PLAN : SL_LOAD_PART_ALL, 0);
        for (uint32_t i = 0; i < fleet->n_groups; i++)
                look_at_group(&p, &fleet->groups[i]);
        *ret_due_ns = p.due_ns;
        return p.n;
}
