/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in the queue of one ensemble: its requests that are accepted and not completed, by user. A user that is alone may have
 * them all. Of a full queue each user has its share (sl_share_each()): who is below it gets in, and the newest request that still
 * waits of the user that is most above ends instead; when all of those compute already, the queue is longer than it should be until
 * they are done. Who has its share is refused.
 *
 * All operations are O(1), but for asking when the queue is full: O(users in it). Dispatcher only.
 *
 * Invariants: a user is in the list of users exactly when it holds a place; a request is in its user's list of those that can be
 * taken back from sl_places_enter() to sl_places_pin().
 */
#pragma once

#include <stdint.h>

struct sl_places;
struct sl_request;

/* @users: more than the number of any user. Return: 0, -ENOMEM. */
int sl_places_new(uint32_t users, struct sl_places **ret_places);
struct sl_places *sl_places_free(struct sl_places *places);

/*
 * One more for @user, of @total of which @taken are held? Return: 0, and *ret_victim has to be ended to make room (NULL: there is
 * room); -EBUSY the queue is full of the requests of this user alone; -EDQUOT it is full, and this user has its share.
 */
int sl_places_ask(const struct sl_places *places, uint32_t total, uint32_t taken, uint32_t user, struct sl_request **ret_victim);

/* The request holds a place of its user, and waits; can no longer be taken back (which may be said twice); has ended. */
void sl_places_enter(struct sl_places *places, struct sl_request *request);
void sl_places_pin(struct sl_places *places, struct sl_request *request);
void sl_places_leave(struct sl_places *places, struct sl_request *request);
