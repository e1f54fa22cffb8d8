/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All names as the step function sees them: what is wanted of each, and what is there. Plain values, filled in by control or by a
 * simulator. Numbers are of one counter each, never used twice, and 0 is "none".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_FLEET_NONE      UINT32_MAX
#define SL_FLEET_NAMES_MAX 4096u

enum sl_fleet_kind {
        SL_FLEET_MODEL,
        SL_FLEET_SIZES,    /* of the open dimensions of another name, `open` */
        SL_FLEET_ENSEMBLE, /* of other names, `members` */
};

/* How far a load is. */
enum sl_fleet_load {
        SL_FLEET_LOAD_NONE,
        SL_FLEET_LOAD_SOON,   /* under way, and ends at once when it is told to */
        SL_FLEET_LOAD_BOUND,  /* under way, and whoever ends it waits for a thread or a process: it is let come to its end */
        SL_FLEET_LOAD_LOADED, /* a model is there, with its workers */
        SL_FLEET_LOAD_FAILED,
};

struct sl_fleet_name {
        bool used; /* the rest counts */
        enum sl_fleet_kind kind;

        /* Wanted. */
        uint64_t want;           /* which want: another file, configuration or time of asking is another number; 0: it is to go */
        uint64_t file;           /* names with the same number are served by one model */
        bool anew;               /* nothing will do whose load began before this want */
        uint64_t workers;        /* which set of workers */
        uint64_t group;          /* whose workers change together; 0: alone */
        const uint32_t *members; /* indices of names; SL_FLEET_NONE: there is none of that name */
        uint32_t n_members;
        uint32_t open;
        bool own_sizes;  /* the workers of the open name serve these sizes */
        bool needs_base; /* of sizes: its plan is derived from that of other sizes, where there is one */
        bool is_late;    /* its user has had as many loads as a minute has: not yet */
        uint64_t turn;   /* users take turns: the smallest comes first, and what no user has asked for has 0 */

        /* Wanted when somebody asks for it: a model that is loaded on request. */
        bool on_request;
        bool asked;               /* requests wait for it, or those who would open it */
        uint64_t ask_due_ns;      /* until then they wait at most */
        uint64_t idle_unload_ns;  /* so long nobody asks before it is unloaded again; UINT64_MAX: any time */
        uint64_t idle_standby_ns; /* and before its workers leave, and its plan stays; UINT64_MAX: any time */
        bool wants_plan;          /* its plan is to be there before anybody asks, and stays: after either time its workers leave */
        bool wants_ports;         /* its plan is loaded once before anybody asks: what rests afterwards has inputs and outputs */

        /* There. */
        uint64_t serves;      /* which want is served */
        uint64_t failed;      /* which want could not be served */
        uint64_t model;       /* which model serves */
        uint64_t begun;       /* the last number that a want had when the load of that began, or of its plan on standby */
        bool has_place;       /* it is one of `models`, and of this name alone: what replaces it takes its place */
        uint64_t composition; /* of an ensemble: sl_fleet_composition() of what it was last made of, or could not be made of */
        bool rests;           /* requests are taken, and wait: what serves has inputs and outputs, and no model */
        uint64_t standby;     /* of one that rests: of which want a plan is there; 0: none */
        uint64_t no_standby;  /* for the plan of which want there was no memory before somebody asked */
        uint64_t idle_ns;     /* since when no request is in flight of its model, under any name, or was; UINT64_MAX: some are */
        bool drains;          /* it takes no more requests, and the last have not ended */
        bool is_told;         /* the world knows what serves; false: it is about to be told, and nothing replaces it before */
        bool has_base;        /* of an open name: there is a plan that those of sizes are derived from */
        uint64_t has_workers; /* which set of workers it has, or is getting */
        uint64_t failed_workers;
        bool workers_start; /* some of them are not ready */
        bool workers_leave; /* or have not left */
        enum sl_fleet_load load;
        uint64_t load_want; /* for which want */
        uint64_t load_file; /* and of which file, also once another is wanted; 0: of `file`, if it is still for what is wanted */
        uint64_t load_since_ns; /* when it began */
        uint64_t waits_ns;      /* since when it waits for a process or for a file to be read; UINT64_MAX: it does not */
        bool aside;             /* it is not counted among those under way */
        bool load_is_plan;      /* it is of a plan, without workers */
        bool wants_turn;        /* it is, and would go on */
        bool lacks_memory;      /* of one that has failed: that was why */
        uint64_t load_gone;     /* fleet.gone when it began */
};

/* Workers of several names that change together, or as far as they can. */
struct sl_fleet_group {
        uint64_t number;
        bool atomic;   /* all new ones are ready before an old one leaves, or nothing changes; else what can change does */
        bool released; /* old ones leave */
};

struct sl_fleet {
        uint64_t now_ns;
        uint32_t n;
        const struct sl_fleet_name *names;
        uint32_t n_groups;
        const struct sl_fleet_group *groups;
        uint32_t loads, loads_max; /* under way, without those aside; at a time */
        uint32_t ending;           /* that were cancelled: until their compilers are gone they have their place and their memory */
        uint64_t aside_ns;         /* so long a load may wait before others go ahead */
        uint64_t base_ns;          /* so long sizes wait for a base that is being loaded */
        uint32_t models;           /* that names have, without those of sizes */
        uint32_t models_max;       /* that may be loaded; 0: any number */
        uint32_t leaving;          /* models that no name has any more, and which are still there */
        uint64_t gone;             /* how many models, plans on standby and such compilers have gone so far: that is free */
};

/* What tells one set of models of the members from another; 0: not all members serve. */
uint64_t sl_fleet_composition(const struct sl_fleet *fleet, uint32_t name);
