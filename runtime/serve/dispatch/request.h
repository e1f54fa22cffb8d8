/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request in flight: the dispatcher's record of one accepted entry. Records are allocated with the channel, one per tag,
 * and found by tag; the request path allocates nothing.
 *
 *     FREE --sl_broadcaster_enqueue()--> WAITING --last segment broadcast--> RUNNING --sl_complete()--> FREE
 *     WAITING --verdict, no segment out, or made room (places.h)--> FREE
 *     FREE --its sizes are being compiled--> PARKED --they are served--> (as a new one)
 *     RUNNING --the plan of any size has failed--> PARKED
 *
 * Owner: the dispatcher. Workers read `work`, from the first broadcast to the last answer (accumulator.h).
 */
#pragma once

#include "accumulator.h"
#include "fair.h"
#include "job.h"
#include "layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_ensemble;
struct sl_flight_record;
struct sl_queue;
struct sl_shape_slot;

enum sl_request_state { SL_REQUEST_FREE, SL_REQUEST_PARKED, SL_REQUEST_WAITING, SL_REQUEST_RUNNING };

struct sl_request {
        struct sl_work work;             /* all that workers see of it */
        int32_t verdict;                 /* 0, or the -errno that ends it early */
        struct sl_fault *fault;          /* words for why it failed */
        struct sl_flight_record *record; /* in the flight recorder; NULL: it has none */
        struct sl_queue *queue;
        struct sl_ensemble *ensemble;
        uint32_t samples;
        enum sl_request_state state;
        uint64_t user_data;
        uint32_t index; /* submission index */
        uint16_t tag;
        uint8_t priority;
        uint32_t broadcast; /* samples handed to the members */
        uint32_t finished;  /* samples of which every member's message has come back */

        uint64_t taken_ns, assigned_ns, started_ns, staged_ns, combined_ns;

        struct sl_fair_item turn;           /* WAITING: what of it waits */
        struct sl_request *next, *previous; /* PARKED: in its slot; WAITING: arrivals.h */
        struct sl_request *newer, *older;   /* places.h, while it yields */
        bool late;                          /* its deadline has passed, and those who have answered may be enough: partial.h */
        bool bore;                          /* a member failed, and was left out */
        uint64_t members_any, members_lack; /* in the result of some sample; not in that of all: a bit for each */
        bool yields;                        /* nothing of it is broadcast: it may end to make room for another user */
        uint64_t bytes_needed;              /* of a completion with -EMSGSIZE */
        uint64_t kind, units;               /* any_size: as of a task (task_queue.h) */
        uint32_t rows;                      /* the same */
        bool any_size;                      /* it came to an open ensemble, and the plan of any size computes it */
        struct sl_shape_slot *slot;         /* PARKED: where, and what has to be admitted again; of any_size as well */
        struct sl_entry entry;
};

/* The request whose work this is. */
static inline struct sl_request *sl_request_of(struct sl_work *work)
{
        return (struct sl_request *)((char *)work - offsetof(struct sl_request, work));
}

/* The request that waits so for its turn. */
static inline struct sl_request *sl_request_of_turn(struct sl_fair_item *turn)
{
        return (struct sl_request *)((char *)turn - offsetof(struct sl_request, turn));
}
