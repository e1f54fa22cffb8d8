/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose next segment is broadcast, and how long it is. Nothing here looks at a clock, allocates, or knows of requests, workers and
 * memory: whoever asks says what windows there are, does what is decided and tells what came of it, so that a simulator decides as
 * the dispatcher does. One thread, its owner's.
 *
 * A round visits each queue once, and lets it have segments as long as its window is open. What all share may not suffice: records
 * of segments, and staging. Who finds none goes first the next time, and as long as it has got nothing: until then no other takes
 * staging, or records, in its stead, so that an ensemble with large segments does not wait for ever behind those with small ones.
 *
 *     begin --> next --decision--> (done) --> next
 *                 |                 \-- took (it is out) | lacks (what it lacks) --> next
 *                 +--false: the round is over
 */
#pragma once

#include "fair.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_decision_log;

struct sl_broadcast_ring;

/* What one ensemble has to broadcast. */
struct sl_broadcast_queue {
        struct sl_fair *waiting;  /* filled and emptied by what is below */
        uint64_t samples_out;     /* broadcast and not finished: whoever finishes them takes them off */
        uint64_t background_out;  /* of them, those of class SL_BACKGROUND, which take no room of others' */
        uint64_t window_samples;  /* as long as fewer are out, one more is broadcast */
        uint32_t segment_samples; /* of the largest segment that is cut; at least 1 */
        bool is_staged;           /* a segment needs staging */
        struct sl_broadcast_ring *ring;
        uint64_t place; /* in the ring, where it is while something waits */
        struct sl_broadcast_queue *next;
};

/* The queues in which something waits, by place, and who goes first in the next round: whoever is at @turn, or the next behind it.
 */
struct sl_broadcast_ring {
        struct sl_broadcast_queue *first;
        uint64_t turn, n_added;
        struct sl_decision_log *decisions; /* where they are written; NULL: nowhere */
};

/* Nothing waits in it yet: its place will be before all others. */
void sl_broadcast_ring_add(struct sl_broadcast_ring *ring, struct sl_broadcast_queue *queue);

/* Another item waits. */
void sl_broadcast_queue_push(struct sl_broadcast_queue *queue, struct sl_fair_item *item);

/* It waits no longer, wherever it stood. No round is under way. */
void sl_broadcast_queue_remove(struct sl_broadcast_queue *queue, struct sl_fair_item *item);

/* For SL_WALK(), between rounds: the queues are in order, and something waits in each, in order as well (sl_fair_walk()). */
void sl_broadcast_ring_walk(const struct sl_broadcast_ring *ring);

struct sl_broadcast_round {
        struct sl_broadcast_ring *ring;
        struct sl_broadcast_queue *at; /* NULL when it is over */
        uint64_t started;              /* at the place */
        bool wrapped;                  /* it has gone on at the first */
        uint32_t segments;             /* of the queue that it is at */
        bool is_staging_short, is_turn_claimed;
};

/* @samples of @item, the oldest of its client's, which has the turn of @queue. */
struct sl_broadcast_decision {
        struct sl_broadcast_queue *queue;
        struct sl_fair_item *item;
        uint32_t samples;
};

void sl_broadcast_round_begin(struct sl_broadcast_round *round, struct sl_broadcast_ring *ring);

/* False: nothing more in this round. Else one of the two below is due before it is asked again. */
bool sl_broadcast_round_next(struct sl_broadcast_round *round, struct sl_broadcast_decision *ret_decision);

/* The segment is out: its turn is charged, and an item of which nothing is left leaves its queue. */
void sl_broadcast_round_took(struct sl_broadcast_round *round, const struct sl_broadcast_decision *decision);

/* It is not. @status: -ENOMEM there is no staging for it; -EAGAIN there is no record for any segment. */
void sl_broadcast_round_lacks(struct sl_broadcast_round *round, int status);
