/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From requests, and entries that became none, to completions, and to the clients that sleep until theirs is there. Dispatcher
 * only.
 */
#pragma once

#include <stdint.h>

struct sl_dispatcher;
struct sl_entry;
struct sl_queue;
struct sl_refused;
struct sl_request;

/* Fills the completion of a request without a segment in flight; RUNNING -> FREE. */
void sl_complete(struct sl_dispatcher *dispatcher, struct sl_request *request, int32_t status);

/* The same of one that is refused when it is looked at again. */
void sl_complete_refused(
        struct sl_dispatcher *dispatcher, struct sl_request *request, int32_t status, const struct sl_refused *refused);

/* Completes an entry that became no request. */
void sl_complete_entry(struct sl_queue *queue, const struct sl_entry *entry, int32_t status, const struct sl_refused *refused);

/* Publishes what was filled. A client that sleeps is woken at the end of the pass, once for all that it got. */
void sl_completions_publish(struct sl_dispatcher *dispatcher, struct sl_queue *queue);

/* Wakes the clients that sleep of those that something was published for. */
void sl_clients_wake(struct sl_dispatcher *dispatcher);

/* The queue pair is about to be freed. */
void sl_clients_forget(struct sl_dispatcher *dispatcher, struct sl_queue *queue);
