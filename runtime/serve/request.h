/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request in flight: the dispatcher's record of one accepted entry. Records are allocated with the channel, one per tag,
 * and found by tag; the request path allocates nothing.
 *
 *     FREE --sl_broadcaster_enqueue()--> WAITING --last segment broadcast--> RUNNING --sl_dispatcher_complete()--> FREE
 *     WAITING --verdict, no segment out, or made room (places.h)--> FREE
 *     FREE --its sizes are being compiled--> PARKED --they are served--> (as a new one)
 *
 * Owner: the dispatcher. Workers read the fields above `verdict`, which do not change from the first broadcast to the last
 * message of the last segment, and `verdict` itself.
 */
#pragma once

#include "layout.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_ensemble;
struct sl_fault;
struct sl_queue;
struct sl_shape_slot;

enum sl_request_state { SL_REQUEST_FREE, SL_REQUEST_PARKED, SL_REQUEST_WAITING, SL_REQUEST_RUNNING };

/*
 * An output whose shape hangs on the data. The dispatcher writes the capacity before the first broadcast; the worker that makes
 * the output writes the rest before its message.
 */
struct sl_made_output {
        uint64_t capacity_bytes, bytes;
        uint32_t dims[SL_WIRE_RANK_MAX];
        uint32_t rank;
};

struct sl_request {
        struct sl_queue *queue;
        struct sl_ensemble *ensemble;
        void **tensors;              /* inputs, then outputs, in the runtime's mapping of the client's arena */
        struct sl_made_output *made; /* of each output */
        struct sl_fault *fault;      /* where the words go when it fails */
        uint64_t deadline_ns;
        uint32_t samples;

        /* 0, or the -errno that ends the request early. Dispatcher stores (release), workers load (acquire): a hint to skip work.
         */
        _Atomic int32_t verdict;

        enum sl_request_state state;
        uint64_t user_data;
        uint32_t index; /* submission index */
        uint16_t tag;
        uint8_t priority;
        uint32_t broadcast; /* samples handed to the members */
        uint32_t finished;  /* samples of which every member's message has come back */

        uint64_t taken_ns, assigned_ns, started_ns, staged_ns, combined_ns;

        struct sl_request *next, *previous; /* in its flow of the fair queue, or in its slot */
        struct sl_request *newer, *older;   /* places.h, while it yields */
        bool yields;                        /* nothing of it is broadcast: it may end to make room for another user */
        uint32_t waiting_samples;           /* in its flow: not given out yet */
        uint64_t bytes_needed;              /* of a completion with -EMSGSIZE */
        struct sl_shape_slot *slot;         /* PARKED: where, and what has to be admitted again */
        struct sl_entry entry;
};

static inline int32_t sl_request_verdict(const struct sl_request *request)
{
        return atomic_load_explicit(&request->verdict, memory_order_acquire);
}
