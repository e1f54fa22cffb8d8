/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of open dimensions: who wants them, and the plan whose weights they share. Control thread only; nothing waits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_ensemble;
struct sl_model;
struct sl_plan;
struct sl_registry;
struct sl_served;
struct sl_tried_sizes;

/* Requests for sizes of the open model at @open end with @status; @keep: those who ask again are told that it never will be. */
void sl_sizes_failed(struct sl_registry *registry, uint32_t open, const int64_t *sizes, int status, bool keep, const char *why);

/* The sizes that the configuration names; whoever advances the registry starts them. */
void sl_sizes_prepare(struct sl_registry *registry, struct sl_served *open);

/* A model that has no open dimension is ready: sizes that its configuration names are reported. */
void sl_sizes_closed(struct sl_registry *registry, struct sl_served *served);

/* Events of the dispatcher. */
void sl_sizes_wanted(struct sl_registry *registry, struct sl_ensemble *ensemble, const int64_t *sizes, uint32_t uid);
void sl_sizes_unwanted(struct sl_registry *registry, const struct sl_ensemble *ensemble);

/* The open model goes, or another takes its place: so do its sizes. */
void sl_sizes_withdraw(struct sl_registry *registry, struct sl_served *open);

/* The workers of the open model serve these: they are the sizes of its own plan. */
bool sl_sizes_are_own(const struct sl_registry *registry, const struct sl_served *served);

/* It is for sizes whose plan may be the base of others: neither any size nor given inputs. */
bool sl_sizes_share(const struct sl_served *served);

/* The plan from which those of the name's sizes are derived; NULL when there is none yet, or the name is for no sizes. */
struct sl_plan *sl_sizes_base(const struct sl_registry *registry, const struct sl_served *served);

/* What a model that is to be loaded will be asked for: what its configuration prepares, and what of the name is served now. */
struct sl_tried_sizes sl_sizes_to_try(const struct sl_registry *registry, const struct sl_served *served);

/* That plan is of the name's own sizes. */
bool sl_sizes_is_base(const struct sl_registry *registry, const struct sl_served *served);

/* Sizes have been loaded: their plan, or its base, is the base of the next, and of that of any size. */
void sl_sizes_loaded(struct sl_registry *registry, const struct sl_served *served, const struct sl_model *model);

/* Each of the sizes is to have the workers that the open model is to have. */
void sl_sizes_want_workers(struct sl_registry *registry, struct sl_served *open);
