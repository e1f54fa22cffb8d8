/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variants of tasks that come and go by load (`autoscale: advise, on`). Queries choose among those that serve; which there are to
 * choose among follows from how these do (runtime/planner/scale/rungs.h). One that is to come is asked for as by a request
 * (../want/requested.h): it is loaded beside what serves, its memory is promised first, and what cannot be had is refused with the
 * numbers. One that no query has chosen for longer than it takes to come back leaves as any model on request that is idle.
 *
 *     (at rest) --sl_offers_look()--> offered --a query chooses it--> used
 *         ^                              |                              |
 *         |                              +--- it went idle, or could not be loaded: it waits, each time twice as long
 *         +------------------------------+------------------------------+
 *
 * Only variants that are on request are offered. Control thread only; nothing waits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_offers;
struct sl_registry;
struct sl_served;

/* How a name that serves does: as the scaler has found. */
struct sl_offer_load {
        double rate;     /* samples a second of one worker; 0: not known */
        double required; /* samples a second */
        bool lacks;      /* that is more than there can be, or all workers that there can be are overloaded (condition.h) */
};
typedef struct sl_offer_load (*sl_offer_load_fn)(void *context, const struct sl_served *served);

/* Return: 0, -ENOMEM. */
int sl_offers_new(struct sl_registry *registry, struct sl_offers **ret_offers);

/* NULL is fine. Returns NULL. */
struct sl_offers *sl_offers_free(struct sl_offers *offers);

/* Looks at all tasks. @acts: what is to come is asked for; else the log only says so. */
void sl_offers_look(struct sl_offers *offers, bool acts, uint64_t now_ns, sl_offer_load_fn load, void *context);
