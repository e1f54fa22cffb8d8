/* SPDX-License-Identifier: Apache-2.0 */
#include "broadcast_round.h"

#include "base/assert.h"
#include "decision_log.h"

#include <errno.h>
#include <stddef.h>

/* Whoever is at @place, or the next behind it. */
static struct sl_broadcast_queue **link_at(struct sl_broadcast_ring *ring, uint64_t place)
{
        struct sl_broadcast_queue **link = &ring->first;

        while (*link && (*link)->place < place)
                link = &(*link)->next;
        return link;
}

static void join(struct sl_broadcast_ring *ring, struct sl_broadcast_queue *queue)
{
        struct sl_broadcast_queue **link = link_at(ring, queue->place);

        queue->next = *link;
        *link = queue;
}

static void leave(struct sl_broadcast_ring *ring, const struct sl_broadcast_queue *queue)
{
        *link_at(ring, queue->place) = queue->next;
}

void sl_broadcast_ring_add(struct sl_broadcast_ring *ring, struct sl_broadcast_queue *queue)
{
        SL_ASSERT(sl_fair_is_empty(queue->waiting));
        queue->ring = ring;
        queue->place = UINT64_MAX - ++ring->n_added;
}

void sl_broadcast_queue_push(struct sl_broadcast_queue *queue, struct sl_fair_item *item)
{
        if (sl_fair_is_empty(queue->waiting))
                join(queue->ring, queue);
        sl_fair_push(queue->waiting, item);
}

void sl_broadcast_queue_remove(struct sl_broadcast_queue *queue, struct sl_fair_item *item)
{
        sl_fair_remove(queue->waiting, item);
        if (sl_fair_is_empty(queue->waiting))
                leave(queue->ring, queue);
}

void sl_broadcast_ring_walk(const struct sl_broadcast_ring *ring)
{
        for (const struct sl_broadcast_queue *queue = ring->first; queue; queue = queue->next) {
                SL_ASSERT(queue->ring == ring && !sl_fair_is_empty(queue->waiting));
                SL_ASSERT(!queue->next || queue->place < queue->next->place);
                sl_fair_walk(queue->waiting);
        }
}

/* Goes to @next, or to the first behind the last; the round is over where it has begun. */
static void visit(struct sl_broadcast_round *round, struct sl_broadcast_queue *next)
{
        if (!next && !round->wrapped) {
                round->wrapped = true;
                next = round->ring->first;
        }
        round->at = next && (!round->wrapped || next->place < round->started) ? next : NULL;
        round->segments = 0;
}

void sl_broadcast_round_begin(struct sl_broadcast_round *round, struct sl_broadcast_ring *ring)
{
        *round = (struct sl_broadcast_round){.ring = ring, .started = ring->turn};
        visit(round, *link_at(ring, ring->turn));
}

/* A queue of which the round has taken everything leaves the ring behind it. */
static void visit_next_queue(struct sl_broadcast_round *round)
{
        struct sl_broadcast_queue *left = round->at;

        if (sl_fair_is_empty(left->waiting))
                leave(round->ring, left);
        visit(round, left->next);
}

static struct sl_fair_item *peek_queue(const struct sl_broadcast_round *round)
{
        const struct sl_broadcast_queue *queue = round->at;
        struct sl_fair_item *item;

        if ((round->is_staging_short && queue->is_staged) || queue->samples_out - queue->background_out >= queue->window_samples)
                return NULL;
        item = sl_fair_peek(queue->waiting, queue->segment_samples);
        return item && item->priority == SL_BACKGROUND && queue->samples_out >= queue->window_samples ? NULL : item;
}

bool sl_broadcast_round_next(struct sl_broadcast_round *round, struct sl_broadcast_decision *ret_decision)
{
        for (; round->at; visit_next_queue(round)) {
                struct sl_fair_item *item = peek_queue(round);

                if (!item)
                        continue;
                *ret_decision = (struct sl_broadcast_decision){
                        .queue = round->at, .item = item, .samples = sl_fair_cost(item, round->at->segment_samples)};
                return true;
        }
        return false;
}

void sl_broadcast_round_took(struct sl_broadcast_round *round, const struct sl_broadcast_decision *decision)
{
        struct sl_broadcast_queue *queue = decision->queue;

        if (round->ring->decisions)
                sl_decision_log_decide(round->ring->decisions,
                        &(struct sl_logged){.kind = SL_LOGGED_BROADCAST, .request = decision->item, .samples = decision->samples});
        if (decision->item->priority == SL_BACKGROUND)
                queue->background_out += decision->samples;
        sl_fair_charge(queue->waiting, decision->item, decision->samples);
        if (decision->item->samples == 0)
                sl_fair_remove(queue->waiting, decision->item);
        queue->samples_out += decision->samples;
        round->segments++;
}

void sl_broadcast_round_lacks(struct sl_broadcast_round *round, int status)
{
        round->is_staging_short |= status == -ENOMEM;
        if (!round->is_turn_claimed)
                round->ring->turn = round->at->place + (round->segments > 0);
        round->is_turn_claimed = true;
        if (status == -EAGAIN)
                round->at = NULL;
        else
                visit_next_queue(round);
}
