/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Early ends of requests, whoever wants them: the client, a deadline, a worker that failed, one who makes room, the end of a client
 * or of the runtime. Dispatcher only.
 */
#pragma once

#include <stdint.h>

struct sl_dispatcher;
struct sl_queue;
struct sl_request;

/* Ends a request early: at once when nothing of it is in flight, else when its last piece is back. The first end counts. */
void sl_give_up(struct sl_dispatcher *dispatcher, struct sl_request *request, int32_t status);

/* Every request of a queue pair. */
void sl_give_up_queue(struct sl_dispatcher *dispatcher, struct sl_queue *queue, int32_t status);

/* What is past its deadline. */
void sl_give_up_expired(struct sl_dispatcher *dispatcher, uint64_t now_ns);

/* A request just taken: its cancellation may have been counted while its entry was still in the ring. */
void sl_give_up_if_cancelled(struct sl_dispatcher *dispatcher, struct sl_request *request);

/* What the client has cancelled since the last look. Return: requests given up. */
uint32_t sl_give_up_cancelled(struct sl_dispatcher *dispatcher, struct sl_queue *queue);
