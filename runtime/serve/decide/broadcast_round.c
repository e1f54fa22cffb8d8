/* SPDX-License-Identifier: Apache-2.0 */
#include "broadcast_round.h"

#include "base/assert.h"
#include "decision_log.h"

#include <errno.h>
#include <stddef.h>

void sl_broadcast_ring_add(struct sl_broadcast_ring *ring, struct sl_broadcast_queue *queue)
{
        queue->next = ring->first;
        ring->first = queue;
}

void sl_broadcast_ring_remove(struct sl_broadcast_ring *ring, struct sl_broadcast_queue *queue)
{
        struct sl_broadcast_queue **link = &ring->first;

        while (*link != queue)
                link = &(*link)->next;
        *link = queue->next;
        if (ring->turn == queue)
                ring->turn = queue->next;
        queue->next = NULL;
}

void sl_broadcast_ring_walk(const struct sl_broadcast_ring *ring)
{
        bool has_turn = ring->turn == NULL;

        for (const struct sl_broadcast_queue *queue = ring->first; queue; queue = queue->next) {
                has_turn |= queue == ring->turn;
                if (!sl_fair_is_empty(queue->waiting))
                        sl_fair_walk(queue->waiting);
        }
        SL_ASSERT(has_turn);
}

void sl_broadcast_round_begin(struct sl_broadcast_round *round, struct sl_broadcast_ring *ring)
{
        struct sl_broadcast_queue *first = ring->turn ? ring->turn : ring->first;

        *round = (struct sl_broadcast_round){.ring = ring, .started = first, .at = first};
}

static struct sl_broadcast_queue *queue_after(const struct sl_broadcast_round *round, const struct sl_broadcast_queue *queue)
{
        return queue->next ? queue->next : round->ring->first;
}

static void visit_next_queue(struct sl_broadcast_round *round)
{
        struct sl_broadcast_queue *next = queue_after(round, round->at);

        round->at = next == round->started ? NULL : next;
        round->segments = 0;
}

static struct sl_fair_item *peek_queue(const struct sl_broadcast_round *round)
{
        const struct sl_broadcast_queue *queue = round->at;

        if ((round->is_staging_short && queue->is_staged) || queue->samples_out >= queue->window_samples)
                return NULL;
        return sl_fair_peek(queue->waiting, queue->segment_samples);
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
                round->ring->turn = round->segments ? queue_after(round, round->at) : round->at;
        round->is_turn_claimed = true;
        if (status == -EAGAIN)
                round->at = NULL;
        else
                visit_next_queue(round);
}
