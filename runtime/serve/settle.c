#include "dispatcher_state.h"

#include "route.h"
#include "shapes.h"

#include <errno.h>
#include <string.h>

void sl_event_send(struct sl_dispatcher *d, enum sl_event_kind kind, void *pointer, int32_t status, const char *text)
{
        struct sl_event event = {.kind = kind, .status = status, .pointer = pointer};

        if (text)
                strncpy(event.text, text, sizeof(event.text) - 1);
        /* There is room: control gives every channel, ensemble and model at most two events, and made the mailbox for all. */
        sl_mailbox_put(d->events, &event);
        sl_bell_ring(d->options.control, d->wait);
}

int sl_event_shape(struct sl_dispatcher *d, enum sl_event_kind kind, struct sl_ensemble *ensemble,
        const int64_t sizes[SL_SYMBOLS_MAX], uint32_t uid)
{
        struct sl_event event = {.kind = kind, .pointer = ensemble, .uid = uid};

        /* Beside those that are loading there can be no other events of this kind: that is what the mailbox has room for. */
        if (d->shapes_loading >= SL_SHAPES_MAX)
                return -EBUSY;
        memcpy(event.sizes, sizes, sizeof(event.sizes));
        if (sl_mailbox_put(d->events, &event) < 0)
                return -EBUSY;
        sl_bell_ring(d->options.control, d->wait);
        return 0;
}

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
                if (d->turn == ensemble)
                        d->turn = ensemble->next;
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
        if (--channel->account->channels == 0)
                sl_route_forget(d, channel->account);
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

void sl_settle(struct sl_dispatcher *d)
{
        d->unsettled = false;
        settle_ensembles(d);
        settle_channels(d);
        if (d->closing && d->in_flight == 0 && !d->drain_reported) {
                d->drain_reported = true;
                sl_event_send(d, SL_EVENT_DRAINED, NULL, 0, NULL);
        }
}
