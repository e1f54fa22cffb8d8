/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that an administrator has applied, or the autoscaler, of several models at once: an allocation takes the place of another
 * while they serve.
 *
 *     draft --begin--> a group of wants --converge--> RELEASE, SETTLE: in force, answered
 *                                            |
 *                                            +------> UNDO: one cannot start: nothing has changed, answered
 *
 * The memory of all new workers is promised before the first of them serves; those that are too many leave once all new ones of all
 * models are ready. What is in force for a model goes before what the configuration says, until another allocation names the model,
 * or the configuration is asked for again: that is a group as well, of all models, but what can change does, and the rest is
 * reported.
 *
 * One group is under way at a time. An allocation that comes meanwhile joins it, and has the last word on the models that both
 * name: all or nothing is then both together, and both askers are answered. The configuration does not take back what is being
 * applied; an allocation takes the place of the configuration.
 *
 * An administrator goes before the autoscaler. Whatever an administrator asks for ends the autoscaler's group at once, which is
 * undone unless all of its new workers are ready. The autoscaler waits for an administrator's group, and leaves alone what an
 * administrator's allocation names. Asking for the configuration takes back what both have applied. Control thread only; nothing
 * waits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_draft;
struct sl_fleet_group;
struct sl_registry;
struct sl_served;

/*
 * Takes @draft in any case; whoever calls this advances the registry. Return: 0: who asks is answered later; -errno with text, and
 * nothing has changed: -EINVAL a model that is none or has no workers, or a batch size that it has not; -EBUSY it is being loaded,
 * or too many wait for an answer; -ENOMEM.
 */
int sl_applied_begin(struct sl_registry *registry, struct sl_draft *draft, uint64_t asker, struct sl_error *error);

/* The same on behalf of the autoscaler. Also: -EBUSY a group is under way; -EPERM an administrator's allocation names the model. */
int sl_applied_scale(struct sl_registry *registry, struct sl_draft *draft, struct sl_error *error);

/* An administrator's allocation names it, or another name of its file. */
bool sl_applied_is_pinned(struct sl_registry *registry, const struct sl_served *served);

/* Nothing is in force: all models get the workers that the configuration says. Return: 0: who asks is answered later; -EBUSY,
 * -ENOMEM. */
int sl_applied_end(struct sl_registry *registry, uint64_t asker, struct sl_error *error);

/* The group under way as converge sees it. Return: false: there is none. */
bool sl_applied_group(const struct sl_registry *registry, struct sl_fleet_group *ret_group);

/* Steps of the group. */
void sl_applied_release(struct sl_registry *registry);
void sl_applied_undo(struct sl_registry *registry);
void sl_applied_settle(struct sl_registry *registry);

/* A model of the group stays as it is: why. */
void sl_applied_note_failure(struct sl_registry *registry, const struct sl_served *served, int status, const char *text);

/* Its workers wait for those of others of the group. */
bool sl_applied_holds(const struct sl_registry *registry, const struct sl_served *served);

void sl_applied_free(struct sl_registry *registry);
