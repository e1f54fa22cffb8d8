/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is served, by name: a table whose index is the catalogue's. Brings models and ensembles up and down, replaces them while
 * they serve, and answers whoever asked for it. Control thread only; it talks to the dispatcher by commands and hears of the
 * end of things by events.
 *
 *     (none) --sync, load--> WAITING --> LOADING --> READY <--> (replacement LOADING while the old one serves)
 *                               |           |          |
 *                               +-----------+--> FAILED    READY --unload--> DRAINING --> (none)
 *
 * Sizes of an open model that a request asked for have a name of their own, "bert[128]", which ends with the open one.
 *
 * A loaded model (struct sl_model) is shared by its own name and by the ensembles that have it as member. When a model is
 * replaced, every ensemble that uses it is made anew and takes the place of the old one; the old ones drain.
 */
#pragma once

#include "dispatcher.h"
#include "layout.h"
#include "runtime_options.h"

struct sl_accounts;
struct sl_accumulator;
struct sl_regions;
struct sl_memory;
struct sl_registry;
struct sl_stats;

struct sl_registry_options {
        const struct sl_runtime_options *runtime;
        struct sl_accounts *accounts;
        struct sl_catalogue *catalogue;
        struct sl_regions *regions;
        struct sl_accumulator *accumulator;
        uint32_t segments;
        uint32_t usable_cores; /* where workers run whose cores are not configured; 0: not known */
        struct sl_dispatcher *dispatcher;
        struct sl_bell *control;
        struct sl_wait *wait; /* of the control thread: compilations are watched there */
        struct sl_stats *stats;
        struct sl_memory *memory;
        struct sl_supervisor *supervisor; /* of worker processes */

        /* An operation that somebody asked for has ended, and the dispatcher has taken what came of it: @status 0 or -errno with
         * @text. */
        void (*answer)(void *context, uint64_t asker, int status, const char *text);
        void *context;
};

/* Return: 0, -ENOMEM. */
int sl_registry_new(const struct sl_registry_options *options, struct sl_registry **ret_registry);

/* The dispatcher has stopped: frees everything at once. NULL is fine. Returns NULL. */
struct sl_registry *sl_registry_free(struct sl_registry *registry);

/*
 * Makes the table as scan() says: loads what is new, replaces what has another stamp, changes the number of workers where that is
 * all that differs, unloads what is gone, leaves alone what is refused. Return: 0; -errno of scan() with text: nothing is changed.
 */
int sl_registry_sync(struct sl_registry *registry, struct sl_error *error);

/*
 * One name, on behalf of @asker (0: nobody), who is answered later through options.answer. RELOAD loads again whatever the stamp
 * says, unless no more than the number of workers has changed. Versions under names of their own ("lenet:2") that the repository
 * has come along, and those that it has no more go. Return: 0: an answer comes or has come; -errno with text: none comes. -ENOENT
 * no such name, -EINVAL it cannot be served as it is, -EBUSY a member of a loaded ensemble (UNLOAD), or something else is under
 * way, or somebody waits for it, -ENOSPC the catalogue is full
 */
int sl_registry_load(struct sl_registry *registry, const char *name, bool again, uint64_t asker, struct sl_error *error);
int sl_registry_unload(struct sl_registry *registry, const char *name, uint64_t asker, struct sl_error *error);

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

/* True while anything is waiting or loading. @ret_failed: names that are FAILED, or had no place. */
bool sl_registry_busy(const struct sl_registry *registry, uint32_t *ret_failed);

/* True when @name is there, and FAILED. */
bool sl_registry_has_failed(struct sl_registry *registry, const char *name);

/* Some model that serves has got its size of the open dimension @name from the option shapes. */
bool sl_registry_takes_size(const struct sl_registry *registry, const char *name);
