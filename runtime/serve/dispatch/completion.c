/* SPDX-License-Identifier: Apache-2.0 */
#include "completion.h"

#include "base/clock.h"
#include "dispatcher_state.h"
#include "doorbell.h"
#include "meter.h"
#include "places.h"
#include "probe.h"
#include "record.h"
#include "refuse.h"
#include "settle.h"

#include <errno.h>

/* A client is woken so often at most, see may_hold(). */
#define HOLD_NS (1 * SL_NS_PER_MS)

void sl_complete_entry(struct sl_queue *queue, const struct sl_entry *entry, int32_t status, const struct sl_refused *refused)
{
        if (status < 0)
                sl_reason_put(&queue->map, entry->tag, &refused->reason, refused->text);

        const struct sl_completion completion = {
                .user_data = entry->user_data,
                .status = status,
                .tag = entry->tag,
                .flags = status < 0 ? SL_COMPLETION_REASON : 0,
                .queued_ns = refused->wait_ns,
                .bytes_needed = refused->bytes_needed,
                .index = queue->head - 1,
        };

        sl_completer_put(&queue->completer, &queue->map, &completion);
}

void sl_completions_publish(struct sl_dispatcher *d, struct sl_queue *queue)
{
        uint32_t n = queue->completer.next - queue->completer.published;

        if (!sl_completer_publish(&queue->completer, &queue->map))
                return;
        sl_meter_published(d, queue, n);
        if (queue->told)
                return;
        queue->told = true;
        queue->next_told = d->told;
        d->told = queue;
}

/* A client that was left to sleep for a while may have looked by itself: then there is nothing to wake it for. */
static void wake(struct sl_dispatcher *d, struct sl_queue *queue)
{
        if (queue->held && sl_completer_taken(&queue->completer, &queue->map) == queue->completer.published)
                return;
        uint32_t sleep = sl_client_sleeps(&queue->map);

        queue->woken_ns = d->pass.now_ns;
        if (sleep == SL_AWAKE)
                return;
        SL_PROBE(client_woken, queue->channel->id, queue->number);
        sl_waking_begin(d, queue);
        sl_client_ring(&queue->map, queue->channel->completion_fd, sleep);
        sl_counter_add(&d->stats->wakes, 1);
}

/*
 * Each wake-up is a system call, after which the client takes a core from somebody. While cores are crowded and workers have all
 * that they can take, no core idles for want of its next request: one that was woken a moment ago sleeps on for another moment and
 * finds more at once.
 */
static bool may_hold(const struct sl_dispatcher *d, const struct sl_queue *queue)
{
        return d->saturated && d->pass.now_ns - queue->woken_ns < HOLD_NS;
}

void sl_clients_wake(struct sl_dispatcher *d)
{
        struct sl_queue **link = &d->told;

        while (*link) {
                struct sl_queue *queue = *link;

                if (may_hold(d, queue)) {
                        if (!queue->held)
                                queue->waking.held_ns = d->pass.now_ns;
                        queue->held = true;
                        link = &queue->next_told;
                        continue;
                }
                *link = queue->next_told;
                wake(d, queue);
                queue->told = queue->held = false;
                queue->waking.held_ns = 0;
        }
}

static uint64_t span(uint64_t from, uint64_t to)
{
        return from && to > from ? to - from : 0;
}

static void fill_open_output(const struct sl_made_output *made, struct sl_output *output)
{
        output->bytes = made->bytes;
        output->rank = (uint8_t)made->rank;
        for (uint32_t k = 0; k < made->rank; k++)
                output->dims[k] = made->dims[k];
}

/* What the first output that did not fit wants. */
static uint64_t bytes_needed(const struct sl_request *request)
{
        for (uint32_t i = 0; i < request->ensemble->assembly.n_outputs && request->ensemble->assembly.open_outputs; i++)
                if (request->work.made[i].bytes > request->work.made[i].capacity_bytes)
                        return request->work.made[i].bytes;
        return request->bytes_needed;
}

/* Of a model by itself, the first of one. */
static void fill_members(const struct sl_request *request, struct sl_output *output)
{
        const struct sl_assembly *assembly = &request->ensemble->assembly;
        uint64_t all = assembly->n_members < 64 ? (UINT64_C(1) << assembly->n_members) - 1 : UINT64_MAX;

        output->members_any = assembly->is_partial ? request->members_any : all;
        output->members_all = assembly->is_partial ? all & ~request->members_lack : all;
}

static void fill_outputs(const struct sl_request *request)
{
        const struct sl_ensemble *ensemble = request->ensemble;
        const struct sl_queue *queue = request->queue;
        struct sl_output *lines = sl_outputs_of(&queue->map, request->tag, ensemble->n_inputs + ensemble->assembly.n_outputs);

        for (uint32_t i = 0; i < ensemble->assembly.n_outputs; i++) {
                const struct sl_served_port *port = &ensemble->assembly.outputs[i];
                struct sl_output output = {
                        .bytes = sl_served_port_bytes(port, request->samples),
                        .rank = (uint8_t)port->port.shape.rank,
                        .dtype = (uint8_t)port->port.dtype,
                };

                for (uint32_t k = 0; k < port->port.shape.rank; k++)
                        output.dims[k] = k == port->port.batch_axis ? request->samples : (uint32_t)port->port.shape.dims[k];
                if (sl_port_is_open(&port->port))
                        fill_open_output(&request->work.made[i], &output);
                if (i == 0)
                        fill_members(request, &output);
                lines[i] = output;
        }
}

static void unaccount(struct sl_dispatcher *d, struct sl_request *request)
{
        struct sl_queue *queue = request->queue;

        queue->in_flight--;
        queue->channel->in_flight--;
        queue->channel->user->in_flight--;
        sl_ensemble_leave(request->ensemble, request->units, sl_pass_now(&d->pass));
        sl_places_leave(request->ensemble->places, request);
        d->in_flight--;
        if (request->work.deadline_ns) {
                queue->with_deadline--;
                d->with_deadline--;
        }
}

void sl_clients_forget(struct sl_dispatcher *d, struct sl_queue *queue)
{
        struct sl_queue **link = &d->told;

        while (*link && *link != queue)
                link = &(*link)->next_told;
        if (*link)
                *link = queue->next_told;
}

/* Of one that ended while it waited or was computed. */
static int reason_of(const struct sl_dispatcher *d, const struct sl_request *request, int32_t status, struct sl_reason *reason)
{
        switch (status) {
        case -ETIME:
                return sl_refuse(reason, status, SL_REASON_EXPIRED, 0, span(request->taken_ns, request->work.deadline_ns));
        case -ECANCELED:
                return sl_refuse(reason, status, d->closing ? SL_REASON_STOPPING : SL_REASON_CANCELLED, 0, 0);
        case -EDQUOT:
                return sl_refuse(reason, status, SL_REASON_MADE_ROOM, 0, request->ensemble->queue_requests);
        default:
                return sl_refuse(reason, status, SL_REASON_NONE, 0, 0);
        }
}

static void fill_reason(const struct sl_dispatcher *d, const struct sl_request *request, int32_t status)
{
        const struct sl_queue_map *map = &request->queue->map;
        struct sl_fault *fault = request->fault;
        const char *text = sl_fault_text(fault);
        struct sl_reason reason = {.code = SL_REASON_TEXT};

        if (!text)
                reason_of(d, request, status, &reason);
        sl_reason_put(map, request->tag, &reason, text);
        sl_fault_clear(fault);
}

/* What lies in the tag's places of outputs is there: shapes, or a reason. */
static void complete(struct sl_dispatcher *d, struct sl_request *request, int32_t status)
{
        struct sl_queue *queue = request->queue;
        struct sl_ensemble *ensemble = request->ensemble;
        uint64_t now_ns = sl_pass_now(&d->pass);

        if (request->state == SL_REQUEST_PARKED)
                sl_meter_accepted(request);

        const struct sl_completion completion = {
                .user_data = request->user_data,
                .status = status,
                .tag = request->tag,
                .flags = status < 0 ? SL_COMPLETION_REASON : 0,
                .queued_ns = span(request->taken_ns, request->assigned_ns),
                .batched_ns = span(request->assigned_ns, request->started_ns),
                .computing_ns = span(request->started_ns, request->staged_ns),
                .combining_ns = span(request->staged_ns, request->combined_ns),
                .index = request->index,
                .bytes_needed = status == -EMSGSIZE ? bytes_needed(request) : request->bytes_needed,
                .n_outputs = (uint16_t)(status == 0 ? ensemble->assembly.n_outputs : 0),
        };
        sl_completer_put(&queue->completer, &queue->map, &completion);
        SL_PROBE(request_completed, queue->channel->id, queue->number, request->index, status, now_ns - request->taken_ns);
        queue->waking.counting = &ensemble->counting;
        sl_record_end(d, request, status);
        unaccount(d, request);
        sl_meter_ended(request, status, now_ns);
        request->state = SL_REQUEST_FREE;
        sl_settle_after(d, request->ensemble);
}

void sl_complete(struct sl_dispatcher *d, struct sl_request *request, int32_t status)
{
        if (status == 0)
                fill_outputs(request);
        else
                fill_reason(d, request, status);
        if (request->bore)
                sl_fault_clear(request->fault);
        complete(d, request, status);
}

void sl_complete_refused(struct sl_dispatcher *d, struct sl_request *request, int32_t status, const struct sl_refused *refused)
{
        sl_reason_put(&request->queue->map, request->tag, &refused->reason, refused->text);
        request->bytes_needed = refused->bytes_needed;
        complete(d, request, status);
}
