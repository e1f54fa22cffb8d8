/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading one model: the plan looked for in the cache, else compiled in a child and opened (plan_fetch.h), workers started, each of
 * them "ready". Nothing here waits; the control thread calls sl_load_advance() when the fd at hand or its own bell says that
 * something happened.
 *
 * One for GPUs is ASKING whether they can be used before that (gpu_asks.h).
 *
 *     SEARCHING --no plan--> COMPILING --plan file--> OPENING --plan--> STARTING --every worker ready--> READY
 *         |                      |                       |                 |  "not enough memory", or no plan
 *         +--plan--> STARTING    +-----------------------+-----------------+--> FAILED
 */
#pragma once

#include "model.h"
#include "runtime_options.h"
#include "standby.h"

struct sl_accounts;
struct sl_accumulator;
struct sl_bundles;
struct sl_compilers;
struct sl_dispatcher;
struct sl_lets;
struct sl_memory;
struct sl_stats;
struct sl_load;

enum sl_load_state {
        SL_LOAD_ASKING,
        SL_LOAD_SEARCHING,
        SL_LOAD_COMPILING,
        SL_LOAD_OPENING,
        SL_LOAD_STARTING,
        SL_LOAD_READY,
        SL_LOAD_FAILED
};

struct sl_load_options {
        const struct sl_runtime_options *runtime;
        struct sl_regions *regions;
        struct sl_accumulator *accumulator;
        struct sl_stats *stats;
        struct sl_accounts *accounts; /* the log, on behalf of whoever asked */
        struct sl_memory *memory;
        uint32_t segments;                /* of the accumulator */
        struct sl_supervisor *supervisor; /* of worker processes */
        struct sl_lets *lets;
        struct sl_bundles *bundles;
        struct sl_compilers *compilers;
        struct sl_bell *control;
        struct sl_dispatcher *dispatcher;
        struct sl_model *const *replaced; /* where the model is whose place it takes; NULL there: there is none */
        bool background;                  /* something is served meanwhile, which the load must not delay */
        bool sized;           /* sizes of open dimensions: the plan is derived from that of others, where there is one */
        struct sl_plan *base; /* of those; NULL: none is loaded, but the cache may have it. Held by the load */
        bool is_base;         /* and its sizes are just these: there is nothing to compile */
        const struct sl_tried_sizes *tried; /* what it will be asked for; copied */
        const struct sl_standby *standby;   /* the plan; NULL: it is searched for. Held by the load */
        bool plan_only;                     /* no workers */
        bool asked;                         /* for a request of this user: */
        uint32_t uid;
};

/* Starts the search, the compilation, or the workers; what cannot be started has FAILED. @spec is read during the call only.
 * Return: 0; -ENOMEM with text. */
int sl_load_new(
        const struct sl_model_spec *spec, const struct sl_load_options *options, struct sl_load **ret_load, struct sl_error *error);

/* Ends whatever is under way and frees; a model that was not taken goes with it. NULL is fine. Returns NULL. */
struct sl_load *sl_load_free(struct sl_load *load);

/* Another one in each state up to OPENING: readable when there is something to advance. -1 in other states. */
int sl_load_fd(const struct sl_load *load);

/* When it is to be advanced whatever its fd says, by sl_clock_ns(); UINT64_MAX: never. */
uint64_t sl_load_due_ns(const struct sl_load *load);

/* It asks its GPUs or the cache. */
bool sl_load_has_no_plan(const struct sl_load *load);

/* To free it waits for nobody: no plan is being opened, and no worker starts. */
bool sl_load_may_be_given_up(const struct sl_load *load);

/* Since when it has waited for GPUs, for the cache, or for a process to start, by sl_clock_ns(); UINT64_MAX: it does not. */
uint64_t sl_load_waits_since(const struct sl_load *load);

/* Goes as far as it can without waiting. */
enum sl_load_state sl_load_advance(struct sl_load *load);
enum sl_load_state sl_load_state(const struct sl_load *load);

/* Why it has FAILED. Return: -ENOMEM when memory was too short for it, which may be better later; -EINVAL the sizes do not suit the
 * model or its limits; else -EIO. */
int sl_load_why(const struct sl_load *load, struct sl_error *error);

/* Whoever cannot go on with it lets it fail. */
void sl_load_fail(struct sl_load *load, int status, const char *text);

/* It had to be compiled: the cache has not had it. */
bool sl_load_compiled(const struct sl_load *load);

/* READY, with workers: to free it waits for those. */
bool sl_load_has_workers(const struct sl_load *load);

/* READY: the model, which is now the caller's. */
struct sl_model *sl_load_take(struct sl_load *load);

/* READY, without workers: its plan. Held by the caller. */
struct sl_standby sl_load_standby(const struct sl_load *load);

/* Joins its workers and frees. The dispatcher no longer knows it. NULL is fine. Returns NULL. */
struct sl_model *sl_model_free(struct sl_model *model);
