/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the registry, for the files that it consists of. Control thread only; none of these functions waits.
 *
 *     registry.c   what is asked for: sync, load, unload, events
 *     loads.c      loads under way, from the start to a loaded model; the cores of its workers
 *     serving.c    from a loaded model to what serves under a name, and down again
 *     sizes.c      sizes of open dimensions: who wants them, and the plan whose weights they share
 *     entries.c    the table
 *
 * Each calls those below it.
 */
#pragma once

#include "account.h"
#include "registry.h"
#include "served.h"

struct sl_registry {
        struct sl_registry_options options;
        struct sl_served entries[SL_CATALOGUE_MODELS];
        uint32_t loads;          /* under way */
        uint32_t load_numbers;   /* given so far */
        uint64_t load_turn;      /* of the last load of sizes that a user asked for */
        cpu_set_t own_cores;     /* for workers one by one; empty when there are too few */
        struct sl_model *loaded; /* all models that have workers */
};

/* ---- entries.c ---- */

/* One line of the log about an entry, on behalf of whoever asked for its sizes; @text: its cause, or NULL. */
void sl_entries_report(struct sl_registry *registry, int level, const char *event, const struct sl_served *entry, const char *text);

/* The same on behalf of a user, or of nobody (NULL). */
void sl_entries_report_to(struct sl_registry *registry, struct sl_account *account, int level, const char *event,
        const struct sl_served *entry, const char *text);

/* The account of the user whose request asked for these sizes; NULL when no user did. */
struct sl_account *sl_entries_account(const struct sl_registry *registry, const struct sl_served *entry);

/* To whoever asked for the entry, if anybody has. */
void sl_entries_answer(struct sl_registry *registry, struct sl_served *entry, int status, const char *text);

void sl_entries_command(struct sl_registry *registry, enum sl_command_kind kind, void *pointer, uint32_t index);

/* The entry of that name; NULL. */
struct sl_served *sl_entries_find(struct sl_registry *registry, const char *name);

/*
 * What is to be served under one name: a new entry, a replacement (@again: even of the same), or what is there already or on its
 * way. Return: 0; -ENOSPC, -EBUSY with text.
 */
int sl_entries_want(struct sl_registry *registry, const struct sl_model_spec *spec, bool again, struct sl_served **ret_entry,
        struct sl_error *error);

/* What the repository has of that name cannot be served: FAILED, with the cause, unless something serves or is on its way. */
void sl_entries_refuse(struct sl_registry *registry, const struct sl_model_spec *spec);

/* It takes no more requests, and goes when the last has ended. */
void sl_entries_drain(struct sl_registry *registry, struct sl_served *entry);

/* ---- loads.c ---- */

/* Tokens of watched compilations have this bit; their entry is found by the rest. */
#define SL_LOADS_TOKEN (1ull << 62)

/* @workers: of all models. A core that the dispatcher has too is nobody's own. */
void sl_loads_choose_cores(struct sl_registry *registry, uint32_t workers);

/* The entry is served by, or waits for, another one of the same file. False: there is none, the model has to be loaded. */
bool sl_loads_follow(struct sl_registry *registry, struct sl_served *entry);

/* Begins to load; what fails is reported. */
void sl_loads_start(struct sl_registry *registry, struct sl_served *entry);

/* Goes on with a load that has something to say; @token: of a watched one whose event has come. */
void sl_loads_advance(struct sl_registry *registry, struct sl_served *entry);
void sl_loads_compiled(struct sl_registry *registry, uint64_t token);

/* Ends what is under way at once. */
void sl_loads_cancel(struct sl_registry *registry, struct sl_served *entry);

/* ---- serving.c ---- */

/* Brings a loaded model to its entry and into all ensembles that have it as member. Return: 0; -errno with text: nothing is
 * changed. */
int sl_serving_model(struct sl_registry *registry, struct sl_served *entry, struct sl_model *model, struct sl_error *error);

/* Makes the ensemble of the entry from its members, if they are there; what fails is reported. */
void sl_serving_build(struct sl_registry *registry, struct sl_served *entry);

/* The entry cannot be served, or not be replaced. */
void sl_serving_fail(struct sl_registry *registry, struct sl_served *entry, int status, const char *text);

/* The same as sl_entries_drain() for an entry and all of its sizes. */
void sl_serving_withdraw(struct sl_registry *registry, struct sl_served *entry);

/* The end of an entry. */
void sl_serving_clear(struct sl_registry *registry, struct sl_served *entry);

/* An ensemble has come out of the dispatcher; a model has. */
void sl_serving_retired(struct sl_registry *registry, struct sl_ensemble *ensemble);
void sl_serving_unload(struct sl_registry *registry, struct sl_model *model);

/* ---- sizes.c ---- */

/* Requests for sizes of the open model at @open end with @status; @keep: those who ask again are told that it never will be. */
void sl_sizes_failed(struct sl_registry *registry, uint32_t open, const int64_t *sizes, int status, bool keep,
        const char *why);

/* The sizes that the configuration names; whoever advances the registry starts them. */
void sl_sizes_prepare(struct sl_registry *registry, struct sl_served *open);

/* Events of the dispatcher. */
void sl_sizes_wanted(struct sl_registry *registry, struct sl_ensemble *ensemble, const int64_t *sizes, uint32_t uid);
void sl_sizes_unwanted(struct sl_registry *registry, const struct sl_ensemble *ensemble);

/* The open model goes, or another takes its place: so do its sizes, what is still being loaded when it is there. */
void sl_sizes_withdraw(struct sl_registry *registry, struct sl_served *open);

/* Sizes whose plan will be the base of the others are being loaded: @entry, which is WAITING, had better wait for it. */
bool sl_sizes_base_comes(const struct sl_registry *registry, const struct sl_served *entry);

/* The plan from which those of the entry's sizes are derived; NULL when there is none yet, or the entry is for no sizes. */
struct sl_plan *sl_sizes_base(const struct sl_registry *registry, const struct sl_served *entry);

/* That plan is of the entry's own sizes. */
bool sl_sizes_is_base(const struct sl_registry *registry, const struct sl_served *entry);

/* Sizes have been loaded: their plan, or its base, is the base of the next. */
void sl_sizes_loaded(struct sl_registry *registry, const struct sl_served *entry, const struct sl_model *model);
