/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sl_converge() sees, under a virtual clock: names, loads, models with their staff, what is still to be told, users, groups
 * and memory. Whoever drives it wants this and that, carries out the steps that converge says, and lets time pass:
 *
 *     sl_sim_control_want_*(...)                 as an administrator, the repository or a request would
 *     sl_sim_control_view(...), sl_converge(...), sl_sim_control_act(...)   until there are no more steps
 *     sl_sim_control_pass(...)                   until something is due
 *
 * It believes each step: that it is a right one is for its driver to check. All of it is one struct without pointers into
 * itself: it may be copied. Loads, workers and memory fail as the dice fall.
 */
#pragma once

#include "dice.h"
#include "ledger.h"
#include "staff.h"
#include "step.h"

#define SL_SIM_NAMES   16u
#define SL_SIM_MODELS  64u /* there at a time, with those that requests are still in */
#define SL_SIM_PLANS   (SL_SIM_MODELS + 2 * SL_SIM_NAMES)
#define SL_SIM_MEMBERS 3u
#define SL_SIM_USERS   3u
#define SL_SIM_GROUPS  2u
#define SL_SIM_PHASES  4u
#define SL_SIM_RETIRED 96u
#define SL_SIM_KILLED  SL_SIM_NAMES /* compilers, at a time: each has a place among the loads */
#define SL_SIM_NONE    UINT32_MAX

/* Each at most. */
#define SL_SIM_PHASE_NS 2500000000ull
#define SL_SIM_DRAIN_NS 3000000000ull
#define SL_SIM_TOLD_NS  50000000ull
#define SL_SIM_ASIDE_NS 1000000000ull
#define SL_SIM_BASE_NS  3000000000ull
#define SL_SIM_RATE_NS  4000000000ull /* from one load of a user to the next, in the long run */
#define SL_SIM_BURST    1u            /* so many at once */
#define SL_SIM_ASK_NS   4000000000ull
#define SL_SIM_USE_NS   4000000000ull
#define SL_SIM_KILL_NS  500000000ull /* from a compiler that is killed to its end */
#define SL_SIM_WAKE_NS  20000000ull  /* from a plan on standby to its workers */

#define SL_SIM_COMPILER_BYTES 30ull

struct sl_sim_control_options {
        uint32_t n_names, loads_max;
        uint64_t memory_bytes;
        uint32_t load_fails_in, worker_fails_in, compose_fails_in; /* one in so many; 0: none */
        uint32_t models_max;                                       /* loaded at a time; 0: any number */
};

struct sl_sim_control_model {
        uint64_t serial, file; /* 0: none */
        uint32_t refs, names;  /* what serves it; names that it has been served under, so far */
        bool is_open;
        uint32_t plan;
        struct sl_sim_staff staff;
};

/* Models and names on standby share it; the last one gives its memory back. */
struct sl_sim_control_plan {
        uint32_t refs; /* 0: there is none */
        uint64_t file, bytes;
        uint64_t begun; /* numbers given when its load began */
};

/* What a name serves: a model, or an ensemble's members. */
struct sl_sim_serving {
        uint32_t n;
        uint32_t models[SL_SIM_MEMBERS];
};

struct sl_sim_control_name {
        bool used;

        /* Wanted. */
        enum sl_fleet_kind kind;
        uint64_t want, file, workers, group;
        struct sl_sim_set set;
        uint32_t members[SL_SIM_MEMBERS], n_members;
        uint32_t open;
        bool anew;
        bool own_sizes, needs_base, is_open, prepared; /* a model that has open dimensions; sizes that come back with it */
        uint32_t user;                                 /* SL_SIM_NONE: no user has asked */
        bool on_request, asked;
        bool wants_plan;
        uint64_t ask_due_ns, idle_unload_ns, idle_standby_ns;

        /* There. */
        uint64_t serves, failed, composition, has_workers, failed_workers;
        enum sl_fleet_kind serves_kind;
        uint64_t serves_file;
        struct sl_sim_serving serving; /* of one that rests nothing */
        bool drains, has_base, changes, rests;
        uint64_t standby, no_standby; /* of which want its plan is there; could not be there */
        uint32_t plan;                /* that one */
        uint64_t busy_ns;             /* until then, or since then not, it is in use */
        uint64_t begun_workers;       /* the set that it goes over to */
        uint64_t told_ns;             /* 0: it is told */

        /* Its load. */
        enum sl_fleet_load load;
        uint64_t load_want, load_file, load_workers, load_begun, load_since_ns, waits_ns;
        struct sl_sim_set load_set;
        enum sl_fleet_kind load_kind;
        bool aside, wants_turn, load_open, load_fails, lacks_memory, load_is_plan;
        uint64_t load_gone;
        uint32_t phase, n_phases;
        struct {
                bool is_bound, waits;
                uint64_t takes_ns;
        } phases[SL_SIM_PHASES];
        uint64_t load_due_ns; /* of the phase; 0: none */
        uint32_t loaded;      /* the model, */
        uint32_t loaded_plan; /* or the plan alone, also of one on standby that gets its workers */
};

struct sl_sim_control_group {
        uint64_t number; /* 0: none */
        bool atomic, released;
        struct sl_sim_set before[SL_SIM_NAMES];
};

struct sl_sim_control {
        struct sl_sim_control_options options;
        struct sl_sim_dice dice;
        struct sl_sim_ledger ledger;
        uint64_t now_ns;
        uint64_t numbers, serials, turns; /* given so far */
        uint32_t cores;                   /* how often they have changed */
        uint32_t loads;
        uint64_t gone; /* models, plans on standby, and compilers that were killed, so far */
        struct sl_sim_control_name names[SL_SIM_NAMES];
        struct sl_sim_control_model models[SL_SIM_MODELS];
        struct sl_sim_control_plan plans[SL_SIM_PLANS];
        struct {
                struct sl_sim_serving serving;
                uint32_t name; /* that drains; SL_SIM_NONE: something else serves under it */
                uint64_t due_ns;
        } retired[SL_SIM_RETIRED];
        uint32_t n_retired;
        uint64_t killed_ns[SL_SIM_KILLED]; /* compilers that end: when each is gone */
        uint32_t n_killed;
        struct {
                uint64_t turn, due_ns;
        } users[SL_SIM_USERS];
        struct sl_sim_control_group groups[SL_SIM_GROUPS];
};

/* What sl_converge() is asked; borrowed from @control as it is now. */
struct sl_sim_view {
        struct sl_fleet fleet;
        struct sl_fleet_name names[SL_SIM_NAMES];
        struct sl_fleet_group groups[SL_SIM_GROUPS];
};

void sl_sim_control_init(struct sl_sim_control *control, const struct sl_sim_control_options *options, uint64_t seed);
void sl_sim_control_view(const struct sl_sim_control *control, struct sl_sim_view *view);
void sl_sim_control_act(struct sl_sim_control *control, const struct sl_step *step);

/* When something is due; UINT64_MAX: nothing is. */
uint64_t sl_sim_control_due_ns(const struct sl_sim_control *control);
void sl_sim_control_pass(struct sl_sim_control *control, uint64_t now_ns);

/* ---- what is wanted ---- */

/* A model of @file under name @i, once more if it is the same. */
void sl_sim_control_want(struct sl_sim_control *control, uint32_t i, uint64_t file, bool is_open);
void sl_sim_control_want_sizes(
        struct sl_sim_control *control, uint32_t i, uint32_t open, bool own_sizes, bool needs_base, uint32_t user, bool prepared);
void sl_sim_control_want_ensemble(struct sl_sim_control *control, uint32_t i, const uint32_t *members, uint32_t n);

/* What it serves, in the place of what is wanted. False: it serves nothing. */
bool sl_sim_control_want_back(struct sl_sim_control *control, uint32_t i);
void sl_sim_control_want_nothing(struct sl_sim_control *control, uint32_t i);

/* By no model whose load has begun before. */
void sl_sim_control_want_anew(struct sl_sim_control *control, uint32_t i);

/* When a model is loaded, and when it is unloaded again. */
struct sl_sim_control_when {
        bool on_request, wants_plan;
        uint64_t idle_unload_ns, idle_standby_ns;
};
void sl_sim_control_load_when(struct sl_sim_control *control, uint32_t i, const struct sl_sim_control_when *when);

/* A request for a model: it is in use from now until @busy_ns, or its load is asked for. */
void sl_sim_control_ask(struct sl_sim_control *control, uint32_t i, uint64_t busy_ns);

/* All names of the file. */
void sl_sim_control_want_workers(struct sl_sim_control *control, uint32_t i, struct sl_sim_set set);

/* Of those of @names, a bit each, that serve what is wanted. False: none does, or there are as many groups as there may be. */
bool sl_sim_control_apply(struct sl_sim_control *control, uint32_t names, bool atomic);

/* All serving names get other workers. */
void sl_sim_control_change_cores(struct sl_sim_control *control);
void sl_sim_control_kill_worker(struct sl_sim_control *control);

/* Since when no name of the model is in use; UINT64_MAX: one is. */
uint64_t sl_sim_control_idle_ns(const struct sl_sim_control *control, uint32_t model);

/* What serves under the name; SL_SIM_NONE: nothing, an ensemble, or what rests. */
uint32_t sl_sim_control_model(const struct sl_sim_control *control, uint32_t i);

/* Names other than @i, models by themselves, that have it. */
bool sl_sim_control_is_shared(const struct sl_sim_control *control, uint32_t i, uint32_t model);

/* Of the name's model, where one serves; NULL. */
const struct sl_sim_staff *sl_sim_control_staff(const struct sl_sim_control *control, uint32_t i);
