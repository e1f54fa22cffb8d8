/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair turns among clients: deficit round robin (Shreedhar and Varghese, 1995) over what waits for one ensemble, in SL_CLASSES
 * classes of which a lower number goes first. The cost of a turn is the number of samples, the quantum the largest segment that may
 * be cut just now, so that turns last a slice of time. One flow per client and class, allocated beforehand; all operations O(1). It
 * knows of nothing but its items, and of no time: whose turn it is follows from what was pushed, charged and removed. One thread,
 * its owner's.
 *
 * Sources: M. Shreedhar, G. Varghese, "Efficient Fair Queuing Using Deficit Round Robin", SIGCOMM 1995, section 3.
 */
#pragma once

#include "layout.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_fair;

/* One thing that waits; whoever pushes it fills the first three and keeps it until it is removed. */
struct sl_fair_item {
        uint32_t client;   /* below clients_max */
        uint32_t priority; /* below SL_CLASSES */
        uint32_t samples;  /* that wait: what was charged is taken off */
        struct sl_fair_item *next, *previous;
};

/* Return: 0, -ENOMEM. */
int sl_fair_new(uint32_t clients_max, struct sl_fair **ret_fair);
struct sl_fair *sl_fair_free(struct sl_fair *fair);

bool sl_fair_is_empty(const struct sl_fair *fair);

/* Of all items. */
uint64_t sl_fair_samples(const struct sl_fair *fair);

/* But for those in the background. */
uint64_t sl_fair_urgent_samples(const struct sl_fair *fair);

/* Behind the other items of this client and class. */
void sl_fair_push(struct sl_fair *fair, struct sl_fair_item *item);

/* What the item's next segment costs. */
static inline uint32_t sl_fair_cost(const struct sl_fair_item *item, uint32_t quantum)
{
        return item->samples < quantum ? item->samples : quantum;
}

/* The item whose next segment has its turn, NULL when none waits. Grants quanta as needed; looking twice grants nothing more. */
struct sl_fair_item *sl_fair_peek(struct sl_fair *fair, uint32_t quantum);

/* Charges the turn that peek granted; the item stays until it is removed, which is due when nothing of it is left. */
void sl_fair_charge(struct sl_fair *fair, struct sl_fair_item *item, uint32_t cost);

/* Samples that go before those of a new item of this client and class, as far as can be seen now: at most. */
uint64_t sl_fair_ahead(const struct sl_fair *fair, uint32_t client, uint32_t priority, uint32_t quantum);

/* Takes an item out, wherever it stands. */
void sl_fair_remove(struct sl_fair *fair, struct sl_fair_item *item);

/* For SL_WALK(): what holds between two calls, as fair.c lists it. Not between the last charge of an item and its removal. */
void sl_fair_walk(const struct sl_fair *fair);
