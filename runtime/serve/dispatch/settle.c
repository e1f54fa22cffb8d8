/* SPDX-License-Identifier: Apache-2.0 */
#include "settle.h"

#include "completion.h"
#include "dispatcher_state.h"
#include "enlist.h"
#include "event.h"
#include "executor.h"
#include "gauges.h"
#include "let.h"
#include "listening.h"
#include "route.h"
#include "spin_advice.h"

static void settle_ensembles(struct sl_dispatcher *d)
{
        struct sl_ensemble **link = &d->ensembles;

        while (*link) {
                struct sl_ensemble *ensemble = *link;

                if (!ensemble->retired || ensemble->in_flight) {
                        link = &ensemble->next;
                        continue;
                }
                *link = ensemble->next;
                sl_gauges_in_flight(ensemble);
                sl_waking_forget(d, ensemble);
                sl_event_send(d, SL_EVENT_ENSEMBLE_RETIRED, ensemble, 0, NULL);
        }
}

static void remove_queue(struct sl_queue **queues, uint32_t *n, const struct sl_queue *queue)
{
        for (uint32_t i = 0; i < *n; i++)
                if (queues[i] == queue) {
                        queues[i] = queues[--*n];
                        return;
                }
}

static void forget_channel(struct sl_dispatcher *d, struct sl_channel *channel)
{
        for (uint32_t i = 0; i < channel->shape.n_queues; i++) {
                sl_clients_forget(d, &channel->queues[i]);
                remove_queue(d->hot, &d->n_hot, &channel->queues[i]);
                remove_queue(d->cold, &d->n_cold, &channel->queues[i]);
        }
        sl_wait_unwatch(d->wait, (uint64_t)(uintptr_t)channel);
        if (--channel->user->channels == 0)
                sl_route_forget(d, channel->user);
        sl_event_send(d, SL_EVENT_CHANNEL_GONE, channel, 0, NULL);
}

static void settle_channels(struct sl_dispatcher *d)
{
        struct sl_channel **link = &d->leaving;

        while (*link) {
                struct sl_channel *channel = *link;

                if (channel->in_flight) {
                        link = &channel->next_leaving;
                        continue;
                }
                *link = channel->next_leaving;
                forget_channel(d, channel);
        }
}

/* Those for whose events there is no room stay among the leaving ones until the next pass. */
static void settle_workers(struct sl_dispatcher *d, struct sl_model *model)
{
        struct sl_executor *worker;

        while ((worker = sl_workers_gone(&model->workers))) {
                if (!sl_event_worker_fits(d)) {
                        d->unsettled = true;
                        return;
                }
                sl_worker_leaves(d, model, worker);
                sl_workers_forget(&model->workers, worker);
                sl_event_worker(d, model, worker); /* hands it back */
                sl_shared_core_note(d);
        }
}

static void settle_carrier(struct sl_dispatcher *d, struct sl_carrier *carrier)
{
        struct sl_block *blocks;

        if (!carrier->leaving)
                return;
        blocks = sl_event_worker_fits(d) ? sl_carrier_take_blocks(carrier) : NULL;
        if (blocks)
                sl_event_send(d, SL_EVENT_BLOCKS_GONE, blocks, 0, NULL);
        d->unsettled |= !blocks;
}

void sl_settle_blocks(struct sl_dispatcher *d, const struct sl_bundle *bundle)
{
        for (uint32_t i = 0; i < bundle->n_carriers; i++)
                settle_carrier(d, bundle->carriers[i]);
        if (bundle->inliner)
                settle_carrier(d, bundle->inliner);
}

void sl_settle_after(struct sl_dispatcher *d, const struct sl_ensemble *ensemble)
{
        d->unsettled |= ensemble->retired || d->leaving || d->closing;
}

void sl_settle(struct sl_dispatcher *d)
{
        d->unsettled = false;
        settle_ensembles(d);
        settle_channels(d);
        for (struct sl_model *model = d->models; model; model = model->next)
                settle_workers(d, model);
        for (const struct sl_bundle *bundle = d->bundles; bundle; bundle = bundle->next)
                sl_settle_blocks(d, bundle);
        if (d->closing && d->in_flight == 0 && !d->drain_reported) {
                d->drain_reported = true;
                sl_event_send(d, SL_EVENT_DRAINED, NULL, 0, NULL);
        }
}
