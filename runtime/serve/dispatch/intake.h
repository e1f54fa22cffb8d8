/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a queue pair's entries to requests, or to the reasons why not. Dispatcher only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_dispatcher;
struct sl_ensemble;
struct sl_queue;
struct sl_request;

/* Entries taken from one queue pair in one pass: the turn that it gets. */
#define SL_INTAKE_ENTRIES_MAX 32u

/* Takes up to SL_INTAKE_ENTRIES_MAX entries, completes no-ops and refusals. Return: entries taken. */
uint32_t sl_intake(struct sl_dispatcher *dispatcher, struct sl_queue *queue);

/*
 * Is there a completion slot for one more entry? One is reserved for every entry that is taken, so that the completion ring can
 * never be full. A client of this library never runs out: it keeps at most `depth` requests in flight.
 */
bool sl_intake_room(struct sl_queue *queue);

/* Is there anything that the client rings for, an entry or a cancellation? seq_cst: W2 of the doorbell protocol. */
bool sl_intake_waiting(struct sl_queue *queue);

/*
 * The plan of any size has failed at a request, of which nothing is in flight any more: it goes to the plan of its own sizes, or
 * waits for that. Return: false: it came for no such plan, or there will be none for it, and it ends as it has failed.
 */
bool sl_intake_own_size(struct sl_dispatcher *dispatcher, struct sl_request *request);

/* A request that was parked, and no longer is, goes to the ensemble of its sizes, or is completed as refused. */
void sl_intake_again(struct sl_dispatcher *dispatcher, struct sl_request *request, struct sl_ensemble *ensemble);
