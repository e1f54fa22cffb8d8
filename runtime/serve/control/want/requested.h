/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits for a model that is loaded on request: those who would open it, whose client looks at the catalogue, and requests for a
 * name that rests, which are parked with the dispatcher. Both wait as long as `limits.load_wait_s` says, from the first on. What
 * is done for them is converge's business (../../converge/step.h). Control thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_registry;
struct sl_served;

#define SL_ASKED_BY_NOBODY UINT32_MAX

/*
 * Somebody waits for it; who asks for what has been asked for waits for the same. @uid: the user, or SL_ASKED_BY_NOBODY an
 * administrator. Return: 0; -EIO what it failed with; -EDQUOT the user waits for as many as its share is, or, of a task's variant
 * whose plan is not there, has had as many loads as a minute has.
 */
int sl_requested_ask(struct sl_registry *registry, struct sl_served *served, uint32_t uid, struct sl_error *error);

/* Nobody does any more: it serves, or goes. */
void sl_requested_end(struct sl_served *served);

/* They wait in vain: requests end with @status, and what the catalogue has of the name says @why. */
void sl_requested_refuse(struct sl_registry *registry, struct sl_served *served, int status, const char *why);
