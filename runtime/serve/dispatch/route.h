/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an open ensemble to the ensemble of a request's sizes (shapes.h): the dispatcher's side of it. The other side is the
 * registry, which is told what is wanted by events and says what became of it by commands. Dispatcher only.
 */
#pragma once

#include "base/dim_sizes.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_descriptor;
struct sl_dispatcher;
struct sl_ensemble;
struct sl_entry;
struct sl_refused;
struct sl_shape_slot;
struct sl_user;

/*
 * *@ensemble, which is open or rests, becomes what serves these sizes, or any, and *@ret_slot NULL; or it stays, and the request
 * has to be parked in *@ret_slot. Return: 0; -EINVAL sizes that the signature does not allow; -EBUSY all slots are in use; -EDQUOT
 * the user has its share of them, or of what is being loaded; what the sizes failed with.
 */
int sl_route(struct sl_dispatcher *dispatcher, struct sl_user *user, const struct sl_entry *entry,
        const struct sl_descriptor *descriptors, struct sl_ensemble **ensemble, struct sl_shape_slot **ret_slot,
        struct sl_refused *ret_refused);

/*
 * The plan of any size has failed at a request that came to @open: a plan of its own sizes may do better, or says better why not.
 * *@ret_slot: where that is, or is waited for. Return: as sl_route().
 */
int sl_route_own(struct sl_dispatcher *dispatcher, struct sl_user *user, const struct sl_entry *entry,
        const struct sl_descriptor *descriptors, struct sl_ensemble *open, struct sl_shape_slot **ret_slot,
        struct sl_refused *ret_refused);

/*
 * @ensemble serves from now on: if it is for sizes of an open one, that one's requests go there. Return: its slot, in which
 * requests may be parked that have to be admitted again; NULL when nobody comes that way.
 */
struct sl_shape_slot *sl_route_attach(struct sl_dispatcher *dispatcher, struct sl_ensemble *ensemble);

/* Nothing is being loaded for this slot any more; what is parked there stays. */
void sl_route_end_loading(struct sl_dispatcher *dispatcher, struct sl_shape_slot *slot);

/* @ensemble takes no new requests: it leaves its slot; if it is open, what waits in its slots ends. */
void sl_route_detach(struct sl_dispatcher *dispatcher, struct sl_ensemble *ensemble);

/* The user has no clients any more. */
void sl_route_forget(struct sl_dispatcher *dispatcher, struct sl_user *user);

/* There will be no ensemble for sizes of the open one at @index: its requests end with @status. @keep: later ones as well. */
void sl_route_fail(struct sl_dispatcher *dispatcher, uint32_t index, const int64_t sizes[SL_SYMBOLS_MAX], int32_t status, bool keep,
        const char *why);
