/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the registry, for the files that it consists of (../want, ../actual, ../merge, ../registry). Control thread only;
 * none of their functions waits.
 */
#pragma once

#include "account.h"
#include "base/error.h"
#include "bundles.h"
#include "fleet.h"
#include "registry_options.h"
#include "served.h"

struct sl_answer;
struct sl_applied_group;
struct sl_autoscale;
struct sl_compilers;
struct sl_draft;
struct sl_history_file;
struct sl_mitigation;
struct sl_orders;
struct sl_tasks;

#define SL_NAME_BUCKETS (2 * SL_CATALOGUE_MODELS)

struct sl_registry {
        struct sl_registry_options options;
        struct sl_served served[SL_CATALOGUE_MODELS]; /* a page that no name has had is not touched */
        uint32_t n_served;                            /* places below have had a name: the bound of a walk over all */
        uint32_t first_free;                          /* places below are taken */
        uint32_t n_used;
        uint32_t n_awake;
        uint16_t awake[SL_CATALOGUE_MODELS];      /* ascending: names for which something may be done (names.h) */
        uint16_t by_name[SL_NAME_BUCKETS];        /* 1 + index of the first name of that hash; 0: none */
        uint16_t next_named[SL_CATALOGUE_MODELS]; /* of the same bucket */
        uint32_t name_hashes[SL_CATALOGUE_MODELS];
        uint16_t by_file[SL_NAME_BUCKETS]; /* 1 + number of the first specification of that path (files.h) */
        uint16_t next_of_file[2 * SL_CATALOGUE_MODELS];
        uint64_t wants, files, models; /* numbers given so far: of wants and sets of workers, of files, of models */
        uint64_t gone;                 /* as converge counts them (fleet.h) */
        uint64_t names;                /* times that a name has come or gone */
        uint32_t loads;                /* under way, without those aside */
        uint32_t load_numbers;         /* given so far */
        uint64_t listings;             /* of the repository that have been followed so far */
        uint32_t n_left_out;           /* names of the repository for which the table had no room when it was last read */
        uint64_t load_turn;            /* of the last load of sizes that a user asked for */
        struct sl_lets *lets;
        struct sl_orders *orders;       /* that are no wants yet */
        struct sl_compilers *compilers; /* of loads */
        struct sl_bundles bundles;      /* of models that share workers */
        struct sl_tasks *tasks;         /* over its names */
        struct sl_merger *merger;       /* of those */
        struct sl_autoscale *autoscale; /* NULL: it is off */
        struct sl_mitigation *mitigation;
        struct sl_model *loaded;        /* all models that have workers */
        struct sl_model *ending;        /* models that nobody knows any more, of loads too, until their workers have ended */
        struct sl_draft *in_force;      /* what is applied, or about to be; NULL: nothing */
        struct sl_applied_group *group; /* that is under way; NULL: none */
        struct sl_answer *answers;      /* that are due (answers.c), the first of a list */
        struct {
                uint64_t given, sent, heard;
        } marks;                 /* of commands to the dispatcher (news.c): heard <= sent <= given */
        uint64_t cores;          /* grows whenever the worker cores are others */
        uint64_t looked_ns;      /* when it was last looked which cores there are */
        uint64_t catalogue_end;  /* of the parts that the catalogue has had so far, behind the last; what lies behind is a hole */
        uint64_t catalogue_room; /* bytes for models and parts that are promised */
        uint64_t due_ns;         /* when to advance again though nothing has happened; UINT64_MAX: never */
        struct sl_fleet_name view[SL_CATALOGUE_MODELS]; /* of those that are awake, in that order */
        enum sl_await awaits[SL_CATALOGUE_MODELS];
        struct sl_history_file *history;                 /* NULL: none is written */
        struct sl_step_stats *taken[SL_STEP_KIND_COUNT]; /* counted here alone (act.c) */
};

/* Of those that are awake, number @i. */
static inline struct sl_served *sl_awake_at(const struct sl_registry *r, uint32_t i)
{
        return (struct sl_served *)&r->served[r->awake[i]];
}
