/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is served, by name: a table whose index is the catalogue's. Whatever anybody asks for becomes a want (want.h); what follows
 * from wants and from what is there, ../../converge says; act.h does it. Control thread only; it talks to the dispatcher by
 * commands and hears of the end of things by events.
 *
 * Sizes of an open model that a request asked for have a name of their own, "bert[128]", which ends with the open one.
 *
 * A loaded model (struct sl_model) is shared by its own name and by the ensembles that have it as member. When a model is
 * replaced, every ensemble that uses it is made anew and takes the place of the old one; the old ones drain.
 */
#pragma once

#include "registry_options.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_draft;
struct sl_error;
struct sl_event;
struct sl_registry;

/* Return: 0; -ENOMEM; -errno the history that is asked for cannot be written; with text. */
int sl_registry_new(const struct sl_registry_options *options, struct sl_registry **ret_registry, struct sl_error *error);

/* The dispatcher has stopped: frees everything at once. NULL is fine. Returns NULL. */
struct sl_registry *sl_registry_free(struct sl_registry *registry);

/*
 * Makes the table as scan() says: loads what is new, replaces what has another stamp, changes the number of workers where that is
 * all that differs, unloads what is gone, leaves alone what is refused. options.synced tells when that is wanted. Return: 0; -EBUSY
 * too much waits to be wanted, with text.
 */
int sl_registry_sync(struct sl_registry *registry, struct sl_error *error);

/*
 * On behalf of @asker (0: nobody), who is answered later through options.answer or options.refuse. What administrators ask for is
 * wanted in the order in which it came. Return: 0: an answer comes or has come; -EBUSY too much waits to be wanted, with text: none
 * comes.
 *
 * LOAD and RELOAD look at what the repository has from now on. RELOAD (@again) loads again whatever the stamp says, unless no more
 * than the workers have changed. Versions under names of their own ("lenet:2") that the repository has come along, and those that
 * it has no more go. Refused with -ENOENT no such name, -EINVAL it cannot be served as it is, -EEXIST it is loaded already, -EBUSY
 * a member of a loaded ensemble (UNLOAD), or too many wait for it, -ENOSPC the catalogue is full, -ENOMEM, -errno of scan().
 */
int sl_registry_load(struct sl_registry *registry, const char *name, bool again, uint64_t asker, struct sl_error *error);
int sl_registry_unload(struct sl_registry *registry, const char *name, uint64_t asker, struct sl_error *error);

/* Workers of several models at once; NULL: as the configuration says. Takes @draft in any case. Return: as above; applied.h. */
int sl_registry_apply(struct sl_registry *registry, struct sl_draft *draft, uint64_t asker, struct sl_error *error);

/* User @uid wants to open the model, which is loaded on request: the catalogue says what comes of it. Return: 0; -ENOENT; -EIO it
 * cannot be served; -EDQUOT. With text. */
int sl_registry_open(struct sl_registry *registry, const char *name, uint32_t uid, struct sl_error *error);

/* Cores where workers may run. */
const cpu_set_t *sl_registry_worker_cores(const struct sl_registry *registry);

/* A watched compilation has ended, or the control bell rang: goes on with everything as far as it can. */
void sl_registry_advance(struct sl_registry *registry);

/* At the end: worker processes that do not come to an end are killed, and what they had is lost. */
void sl_registry_kill_workers(struct sl_registry *registry);

/* When to advance it again at the latest, CLOCK_MONOTONIC; UINT64_MAX: nothing is due. */
uint64_t sl_registry_due_ns(const struct sl_registry *registry);
void sl_registry_compiled(struct sl_registry *registry, uint64_t token);

/* An event of that token is of a watched compilation. */
bool sl_registry_owns(uint64_t token);

/* An event of the dispatcher: ENSEMBLE_RETIRED, MODEL_GONE, WORKER_GONE, BLOCKS_GONE, MARKED, SHAPE_WANTED, SHAPE_UNWANTED. */
void sl_registry_event(struct sl_registry *registry, const struct sl_event *event);

/* True while anything is waiting or loading. @ret_failed: when nothing is any more, names that are FAILED, or had no place. */
bool sl_registry_busy(const struct sl_registry *registry, uint32_t *ret_failed);

/* True when @name is there, and FAILED. */
bool sl_registry_has_failed(struct sl_registry *registry, const char *name);

/* Some model that serves has got its size of the open dimension @name from the option shapes. */
bool sl_registry_takes_size(const struct sl_registry *registry, const char *name);
