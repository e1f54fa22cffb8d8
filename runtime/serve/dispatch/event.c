/* SPDX-License-Identifier: Apache-2.0 */
#include "event.h"

#include "base/error.h"

#include "dispatcher_state.h"
#include "shapes.h"

#include <errno.h>
#include <string.h>

void sl_event_send(struct sl_dispatcher *d, enum sl_event_kind kind, void *pointer, int32_t status, const char *text)
{
        struct sl_event event = {.kind = kind, .status = status, .pointer = pointer};

        if (text)
                sl_error_fit(text, event.text, sizeof(event.text));
        /* There is room: control gives every ensemble and model at most two events and every channel three (it releases one
         * region at a time), waits for the answer to a PROBE and a MARK before it sends another, and made the mailbox for all. */
        sl_mailbox_put(d->events, &event);
        sl_bell_ring(d->options.control, d->wait);
}

uint32_t sl_events_reserved(uint32_t clients_max)
{
        return 4 * clients_max + 4 * SL_CATALOGUE_MODELS + 2 * SL_SHAPES_MAX + 2;
}

/* How many there are at a time is bounded by nothing: they leave the others their room. */
bool sl_event_worker_fits(struct sl_dispatcher *d)
{
        return sl_mailbox_room(d->events) > sl_events_reserved(d->options.clients_max);
}

void sl_event_worker(struct sl_dispatcher *d, struct sl_model *model, struct sl_executor *worker)
{
        const struct sl_event event = {.kind = SL_EVENT_WORKER_GONE, .pointer = model, .worker = worker};

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
