/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair turns among clients: deficit round robin (Shreedhar and Varghese, 1995) over the requests that wait for one ensemble,
 * in SL_PRIORITIES classes of which a lower number goes first. The cost of a turn is the number of samples, the quantum the largest
 * segment that may be cut just now, so that turns last a slice of time. One flow per client and class, allocated beforehand; all
 * operations O(1). Dispatcher only.
 *
 * Invariants: a flow is in its class's ring of active flows exactly when it has a request; its deficit is 0 when it has none; what
 * a flow has left of its turn when the turn passes on is at most one quantum.
 */
#pragma once

#include "layout.h"
#include "request.h"

#include <stdbool.h>

struct sl_fair;

/* Return: 0, -ENOMEM. */
int sl_fair_new(uint32_t clients_max, struct sl_fair **ret_fair);
struct sl_fair *sl_fair_free(struct sl_fair *fair);

bool sl_fair_is_empty(const struct sl_fair *fair);

/* Behind the other requests of this client and class. @client is below clients_max. */
void sl_fair_push(struct sl_fair *fair, uint32_t client, struct sl_request *request);

/*
 * The request whose next segment has its turn, NULL when none waits. Grants quanta as needed. @cost says what that segment costs:
 * at most @quantum.
 */
struct sl_request *sl_fair_peek(struct sl_fair *fair, uint32_t quantum, uint32_t (*cost)(const struct sl_request *));

/* Charges the turn that peek granted; the request stays until it is removed. */
void sl_fair_charge(struct sl_fair *fair, uint32_t client, struct sl_request *request, uint32_t cost);

/* Samples that go before those of a new request of this client and class, as far as can be seen now: at most. */
uint64_t sl_fair_ahead(const struct sl_fair *fair, uint32_t client, uint32_t priority, uint32_t quantum);

/* Takes a request out, wherever it stands. */
void sl_fair_remove(struct sl_fair *fair, uint32_t client, struct sl_request *request);
