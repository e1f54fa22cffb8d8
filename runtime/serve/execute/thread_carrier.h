/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The carrier with a thread of its own: an inbox of launches, an outbox of answers, and the room in which its lanes compute in
 * turn.
 *
 * Threads: the inbox is filled and the outbox emptied by the dispatcher; sl_thread_carrier_room() is anybody's.
 */
#pragma once

#include "carrier.h"
#include "wait.h"

struct sl_accumulator;
struct sl_bell;
struct sl_error;
struct sl_let;

struct sl_thread_carrier_options {
        struct sl_accumulator *accumulator;
        struct sl_let *let;
        uint64_t room_bytes; /* of the largest lane; faulted by its thread before it waits for launches */
        uint64_t spin_ns;
        enum sl_wait_kind wait;
        const char *name;           /* of the thread */
        struct sl_bell *dispatcher; /* rung behind answers: sl_bell_ring_for() */
};

/* Starts the thread. Return: 0; -EAGAIN, -ENOMEM, -EMFILE, with a text. */
int sl_thread_carrier_new(const struct sl_thread_carrier_options *options, struct sl_carrier **ret_carrier, struct sl_error *error);

/* Memory that one takes. Pure. */
uint64_t sl_thread_carrier_bytes(uint64_t room_bytes);

/* Where a lane that takes @bytes may compute during its launches; NULL: the room is smaller. */
void *sl_thread_carrier_room(struct sl_carrier *carrier, uint64_t bytes);
