/* SPDX-License-Identifier: Apache-2.0 */
#include "cancel.h"

#include "accumulator.h"
#include "broadcaster.h"
#include "completion.h"
#include "decisions.h"
#include "dispatcher_state.h"
#include "partial.h"
#include "shapes.h"

#include <errno.h>

void sl_give_up(struct sl_dispatcher *d, struct sl_request *request, int32_t status)
{
        if (request->verdict)
                return;
        request->verdict = status;
        sl_decisions_given_up(d, request, status);
        sl_accumulator_give_up(d->options.accumulator, &request->work, status);
        if (request->state == SL_REQUEST_WAITING)
                sl_broadcaster_withdraw(request);
        if (request->slot)
                sl_shapes_unpark(request);
        if (request->finished == request->broadcast)
                sl_complete(d, request, status);
}

void sl_give_up_queue(struct sl_dispatcher *d, struct sl_queue *queue, int32_t status)
{
        for (uint32_t tag = 0; tag < queue->map.depth && queue->in_flight; tag++)
                if (queue->requests[tag].state != SL_REQUEST_FREE)
                        sl_give_up(d, &queue->requests[tag], status);
}

static void expire(struct sl_dispatcher *d, struct sl_request *request)
{
        if (!sl_partial_close(d, request))
                sl_give_up(d, request, -ETIME);
}

static void expire_queue(struct sl_dispatcher *d, struct sl_queue *queue, uint64_t now_ns)
{
        for (uint32_t tag = 0; tag < queue->map.depth && queue->with_deadline; tag++) {
                struct sl_request *request = &queue->requests[tag];

                if (request->state != SL_REQUEST_FREE && request->work.deadline_ns && now_ns >= request->work.deadline_ns)
                        expire(d, request);
        }
        sl_completions_publish(d, queue);
}

void sl_give_up_expired(struct sl_dispatcher *d, uint64_t now_ns)
{
        for (uint32_t i = 0; i < d->n_hot; i++)
                if (d->hot[i]->with_deadline)
                        expire_queue(d, d->hot[i], now_ns);
        for (uint32_t i = 0; i < d->n_cold; i++)
                if (d->cold[i]->with_deadline)
                        expire_queue(d, d->cold[i], now_ns);
}

/* True when the client has asked for the end of just this request. A word of 0 asks for nothing, also when the index wraps. */
static bool is_cancelled(const struct sl_request *request)
{
        const _Atomic uint32_t *word = &request->queue->map.cancels[request->tag];

        uint32_t wanted = atomic_load_explicit(word, memory_order_acquire);

        return wanted && wanted == request->index + 1;
}

void sl_give_up_if_cancelled(struct sl_dispatcher *d, struct sl_request *request)
{
        if (is_cancelled(request))
                sl_give_up(d, request, -ECANCELED);
}

uint32_t sl_give_up_cancelled(struct sl_dispatcher *d, struct sl_queue *queue)
{
        uint32_t count = atomic_load_explicit(&queue->map.request->cancellations, memory_order_acquire);
        uint32_t n = 0;

        if (count == queue->cancellations)
                return 0;
        queue->cancellations = count;
        for (uint32_t tag = 0; tag < queue->map.depth; tag++) {
                struct sl_request *request = &queue->requests[tag];

                if (request->state == SL_REQUEST_FREE || !is_cancelled(request))
                        continue;
                sl_give_up(d, request, -ECANCELED);
                n++;
        }
        sl_completions_publish(d, queue);
        return n;
}
