/* SPDX-License-Identifier: Apache-2.0 */
#include "waking.h"

#include "dispatcher_state.h"
#include "record.h"

void sl_waking_look(struct sl_dispatcher *d, struct sl_queue *queue)
{
        struct sl_waking *waking = &queue->waking;
        uint64_t awake_ns = atomic_load_explicit(&queue->map.request->awake_ns, memory_order_relaxed); /* V2 */

        if (awake_ns < waking->since_ns) /* it has not run yet, or says nothing */
                return;
        if (awake_ns <= sl_pass_now(&d->pass)) {
                struct sl_client_stats *stats = queue->channel->stats;

                sl_counter_add(&stats->wakes, 1);
                sl_counter_add(&stats->waking_ns, awake_ns - waking->since_ns);
                if (waking->woken)
                        sl_model_record(waking->woken, SL_STAGE_WAKING, awake_ns - waking->since_ns);
                sl_record_woken(d, queue, awake_ns);
        }
        waking->since_ns = 0;
}

void sl_waking_begin(struct sl_dispatcher *d, struct sl_queue *queue)
{
        struct sl_waking *waking = &queue->waking;

        if (waking->since_ns)
                sl_waking_look(d, queue);
        waking->since_ns = waking->held_ns ? waking->held_ns : sl_pass_now(&d->pass);
        waking->woken = waking->counting;
        waking->woken_traced = waking->traced;
}

static void forget_in(struct sl_queue *const *queues, uint32_t n, const struct sl_model_counting *counting)
{
        for (uint32_t i = 0; i < n; i++) {
                struct sl_waking *waking = &queues[i]->waking;

                waking->counting = waking->counting == counting ? NULL : waking->counting;
                waking->woken = waking->woken == counting ? NULL : waking->woken;
        }
}

void sl_waking_forget(struct sl_dispatcher *d, const struct sl_ensemble *ensemble)
{
        forget_in(d->hot, d->n_hot, &ensemble->counting);
        forget_in(d->cold, d->n_cold, &ensemble->counting);
}
