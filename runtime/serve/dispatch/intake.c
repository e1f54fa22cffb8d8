/* SPDX-License-Identifier: Apache-2.0 */
#include "intake.h"

#include "admission.h"
#include "base/split_mix.h"
#include "broadcaster.h"
#include "cancel.h"
#include "completion.h"
#include "decisions.h"
#include "dispatcher_state.h"
#include "event.h"
#include "forecast.h"
#include "meter.h"
#include "places.h"
#include "probe.h"
#include "record.h"
#include "refuse.h"
#include "route.h"
#include "settle.h"
#include "shapes.h"

#include <errno.h>

bool sl_intake_room(struct sl_queue *queue)
{
        if (queue->completer.next - queue->taken + queue->in_flight < queue->map.depth)
                return true;
        queue->taken = sl_completer_taken(&queue->completer, &queue->map);
        return queue->completer.next - queue->taken + queue->in_flight < queue->map.depth;
}

bool sl_intake_waiting(struct sl_queue *queue)
{
        const struct sl_entry *slot = &queue->map.entries[queue->head & queue->map.mask];

        if (queue->channel->broken)
                return false;
        /* First: a client that has filled its queue pair has no room left, and may still cancel. */
        if (queue->in_flight &&
                atomic_load_explicit(&queue->map.request->cancellations, memory_order_seq_cst) != queue->cancellations)
                return true;
        return sl_intake_room(queue) && atomic_load_explicit(&slot->seq, memory_order_seq_cst) == queue->head + 1;
}

static void break_channel(struct sl_dispatcher *d, struct sl_channel *channel, const char *text)
{
        channel->broken = true;
        sl_counter_add(&d->stats->refusals[SL_REFUSAL_PROTOCOL], 1);
        sl_event_send(d, SL_EVENT_CHANNEL_BROKEN, channel, -EPROTO, text);
}

static int find_ensemble(
        const struct sl_dispatcher *d, const struct sl_entry *entry, struct sl_ensemble **ret_ensemble, struct sl_reason *reason)
{
        struct sl_ensemble *ensemble = entry->model < SL_CATALOGUE_MODELS ? d->served[entry->model] : NULL;

        if (d->closing)
                return sl_refuse(reason, -ECANCELED, SL_REASON_STOPPING, 0, 0);
        if (!ensemble || ensemble->generation != entry->generation)
                return sl_refuse(reason, -ESTALE, SL_REASON_GENERATION, 0, 0);
        *ret_ensemble = ensemble;
        return 0;
}

static int check_quotas(const struct sl_dispatcher *d, const struct sl_channel *channel, struct sl_reason *reason)
{
        uint32_t client_max = d->options.client_in_flight_max, user_max = d->options.user_in_flight_max;

        if (channel->in_flight >= client_max)
                return sl_refuse(reason, -EDQUOT, SL_REASON_CLIENT_IN_FLIGHT, channel->in_flight, client_max);
        if (channel->user->in_flight >= user_max)
                return sl_refuse(reason, -EDQUOT, SL_REASON_USER_IN_FLIGHT, channel->user->in_flight, user_max);
        return 0;
}

/* A place for one more request of the client's user, if need be that of a user that has more than its share. */
static int make_place(
        struct sl_dispatcher *d, const struct sl_channel *channel, const struct sl_ensemble *ensemble, struct sl_reason *reason)
{
        struct sl_request *victim;
        int r = sl_places_ask(ensemble->places, ensemble->queue_requests, ensemble->in_flight, channel->user->number, &victim);

        if (r < 0)
                return sl_refuse(reason, r, r == -EBUSY ? SL_REASON_QUEUE_FULL : SL_REASON_QUEUE_SHARE, ensemble->in_flight,
                        ensemble->queue_requests);
        if (!victim)
                return 0;
        struct sl_queue *queue = victim->queue;
        sl_meter_taken_back(d);
        sl_give_up(d, victim, -EDQUOT);
        sl_completions_publish(d, queue);
        return 0;
}

static void copy_descriptors(
        const struct sl_queue *queue, const struct sl_entry *entry, uint32_t n, struct sl_descriptor *ret_descriptors)
{
        const struct sl_descriptor *source = sl_descriptors_of(&queue->map, entry->tag, n);

        for (uint32_t i = 0; i < n; i++)
                sl_line_copy(&ret_descriptors[i], &source[i]);
}

static void account(struct sl_dispatcher *d, struct sl_request *request)
{
        struct sl_queue *queue = request->queue;

        queue->in_flight++;
        queue->channel->in_flight++;
        queue->channel->user->in_flight++;
        request->ensemble->in_flight++;
        sl_places_enter(request->ensemble->places, request);
        d->in_flight++;
        if (request->work.deadline_ns) {
                queue->with_deadline++;
                d->with_deadline++;
        }
}

/* Tensors are inputs, then outputs. */
static void set_ensemble(struct sl_request *request, struct sl_ensemble *ensemble)
{
        request->ensemble = ensemble;
        request->work.assembly = &ensemble->assembly;
        request->work.outputs = request->work.inputs + ensemble->n_inputs;
}

/* What the request with this tag and so many tensors has of its channel's. */
static size_t first_tensor(const struct sl_queue *queue, uint32_t tag, uint32_t n)
{
        size_t number = (size_t)(queue - queue->channel->queues);

        return n <= queue->map.tensors ? (number * queue->map.depth + tag) * queue->map.tensors
                                       : (number * SL_WIDE_SLOTS + tag) * SL_TENSORS_MAX;
}

static struct sl_place *tensors_of(const struct sl_queue *queue, uint32_t tag, uint32_t n)
{
        return (n <= queue->map.tensors ? queue->channel->tensors : queue->channel->wide_tensors) + first_tensor(queue, tag, n);
}

static struct sl_made_output *made_of(const struct sl_queue *queue, uint32_t tag, uint32_t n)
{
        return (n <= queue->map.tensors ? queue->channel->made : queue->channel->wide_made) + first_tensor(queue, tag, n);
}

static void fill_request(struct sl_request *request, struct sl_queue *queue, struct sl_ensemble *ensemble,
        const struct sl_entry *entry, struct sl_place *tensors, uint64_t now_ns, uint64_t *origins)
{
        *request = (struct sl_request){
                .queue = queue,
                .samples = entry->samples,
                .user_data = entry->user_data,
                .index = queue->head - 1,
                .tag = entry->tag,
                .priority = entry->priority,
                .taken_ns = now_ns,
                .fault = queue->channel->faults + (request - queue->channel->requests),
        };
        request->work = (struct sl_work){
                .inputs = tensors,
                .made = made_of(queue, entry->tag, (uint32_t)entry->n_inputs + entry->n_outputs),
                .deadline_ns = entry->deadline_ns,
                .origin = sl_split_mix_next(origins),
                .segments = SL_NO_SEGMENT,
        };
        set_ensemble(request, ensemble);
}

static int admit(const struct sl_channel *channel, const struct sl_entry *entry, const struct sl_descriptor *descriptors,
        const struct sl_ensemble *ensemble, uint64_t now_ns, struct sl_refused *refused, struct sl_place *tensors)
{
        return sl_admit(entry, descriptors, channel->regions, atomic_load_explicit(&channel->n_regions, memory_order_acquire),
                ensemble, now_ns, refused, tensors);
}

/* How much room there is for outputs that say only afterwards how large they are. */
static void note_capacities(struct sl_request *request, const struct sl_descriptor *descriptors)
{
        const struct sl_ensemble *ensemble = request->ensemble;

        for (uint32_t i = 0; i < ensemble->assembly.n_outputs && ensemble->assembly.open_outputs; i++)
                request->work.made[i] = (struct sl_made_output){.capacity_bytes = descriptors[ensemble->n_inputs + i].bytes};
}

/* It counts as the open ensemble's until its sizes are served; its tensors are looked at then. */
static void park(struct sl_dispatcher *d, struct sl_queue *queue, struct sl_ensemble *open, struct sl_shape_slot *slot,
        const struct sl_entry *entry, struct sl_place *tensors, uint64_t now_ns)
{
        struct sl_request *request = &queue->requests[entry->tag];

        fill_request(request, queue, open, entry, tensors, now_ns, &d->origins);
        request->entry = *entry;
        account(d, request);
        sl_record_begin(d, request, SL_FLIGHT_PARKED);
        sl_shapes_park(slot, request);
        SL_PROBE(request_parked, queue->channel->id, queue->number, request->index, request->samples, open->name);
        sl_give_up_if_cancelled(d, request);
}

static void enqueue(struct sl_dispatcher *d, struct sl_request *request, struct sl_ensemble *ensemble)
{
        const struct sl_queue *queue = request->queue;

        sl_meter_accepted(request);
        sl_record_begin(d, request, SL_FLIGHT_QUEUED);
        sl_broadcaster_enqueue(ensemble, request);
        sl_decisions_arrival(d, request);
        SL_PROBE(request_accepted, queue->channel->id, queue->number, request->index, request->samples, ensemble->name);
}

/* Its memory may have changed since: everything is copied and checked anew. */
static int admit_again(struct sl_dispatcher *d, struct sl_request *request, struct sl_ensemble *ensemble,
        struct sl_descriptor *descriptors, struct sl_refused *refused)
{
        int r;

        copy_descriptors(
                request->queue, &request->entry, (uint32_t)request->entry.n_inputs + request->entry.n_outputs, descriptors);
        r = admit(request->queue->channel, &request->entry, descriptors, ensemble, sl_pass_now(&d->pass), refused,
                request->work.inputs);
        if (r == 0)
                r = make_place(d, request->queue->channel, ensemble, &refused->reason);
        return r;
}

void sl_intake_again(struct sl_dispatcher *d, struct sl_request *request, struct sl_ensemble *ensemble)
{
        struct sl_queue *queue = request->queue;
        struct sl_descriptor descriptors[SL_TENSORS_MAX];
        struct sl_refused refused = {0};
        int r = admit_again(d, request, ensemble, descriptors, &refused);

        if (r < 0) {
                sl_complete_refused(d, request, r, &refused);
                sl_completions_publish(d, queue);
                return;
        }
        request->ensemble->in_flight--;
        sl_settle_after(d, request->ensemble);
        sl_places_leave(request->ensemble->places, request);
        set_ensemble(request, ensemble);
        note_capacities(request, descriptors);
        ensemble->in_flight++;
        sl_places_enter(ensemble->places, request);
        request->state = SL_REQUEST_FREE;
        enqueue(d, request, ensemble);
}

/* To the ensemble of its sizes, or to the slot where it waits for that: as sl_route(), for tensors that are there. */
static int route(struct sl_dispatcher *d, const struct sl_channel *channel, const struct sl_entry *entry,
        const struct sl_descriptor *descriptors, uint64_t now_ns, struct sl_ensemble **ensemble, struct sl_shape_slot **ret_slot,
        struct sl_refused *refused)
{
        int r = sl_admit_open(entry, descriptors, channel->regions, atomic_load_explicit(&channel->n_regions, memory_order_acquire),
                *ensemble, now_ns, refused);

        return r < 0 ? r : sl_route(d, channel->user, entry, descriptors, ensemble, ret_slot, refused);
}

/* Return: 0; -EBUSY it would be late, with how long it would wait. */
static int check_forecast(const struct sl_queue *queue, const struct sl_entry *entry, const struct sl_ensemble *ensemble,
        uint64_t now_ns, struct sl_refused *ret_refusal)
{
        if (!entry->deadline_ns)
                return 0;
        uint64_t ahead = sl_broadcaster_ahead(ensemble, queue->channel->slot, entry->priority);

        ret_refusal->wait_ns = sl_forecast_late(ensemble, ahead, entry->samples, entry->deadline_ns - now_ns);
        if (!ret_refusal->wait_ns)
                return 0;
        return sl_refuse(&ret_refusal->reason, -EBUSY, SL_REASON_LATE, ret_refusal->wait_ns, entry->deadline_ns - now_ns);
}

/* Return: 0: the request waits; -errno: refused. */
static int accept_request(
        struct sl_dispatcher *d, struct sl_queue *queue, const struct sl_entry *entry, struct sl_refused *ret_refusal)
{
        struct sl_channel *channel = queue->channel;
        struct sl_descriptor descriptors[SL_TENSORS_MAX];
        struct sl_ensemble *ensemble;
        struct sl_shape_slot *slot = NULL;
        struct sl_place *tensors;
        uint32_t n = (uint32_t)entry->n_inputs + entry->n_outputs;
        uint64_t now = sl_pass_now(&d->pass);
        int r = find_ensemble(d, entry, &ensemble, &ret_refusal->reason);

        if (r == 0)
                r = check_quotas(d, channel, &ret_refusal->reason);
        if (r < 0)
                return r;
        if (entry->n_inputs != ensemble->n_inputs || entry->n_outputs != ensemble->assembly.n_outputs)
                return sl_refuse(
                        &ret_refusal->reason, -EINVAL, SL_REASON_COUNTS, n, ensemble->n_inputs + ensemble->assembly.n_outputs);
        if (!sl_tag_has_room(&queue->map, entry->tag, n))
                return sl_refuse(&ret_refusal->reason, -EINVAL, SL_REASON_TENSORS, n, queue->map.tensors);
        tensors = tensors_of(queue, entry->tag, n);
        copy_descriptors(queue, entry, n, descriptors);
        if (ensemble->shapes)
                r = route(d, channel, entry, descriptors, now, &ensemble, &slot, ret_refusal);
        if (r == 0 && slot)
                r = make_place(d, channel, ensemble, &ret_refusal->reason);
        if (r == 0 && slot)
                park(d, queue, ensemble, slot, entry, tensors, now);
        if (r < 0 || slot)
                return r;
        r = admit(channel, entry, descriptors, ensemble, now, ret_refusal, tensors);
        if (r == 0)
                r = check_forecast(queue, entry, ensemble, now, ret_refusal);
        if (r == 0)
                r = make_place(d, channel, ensemble, &ret_refusal->reason);
        if (r < 0)
                return r;
        fill_request(&queue->requests[entry->tag], queue, ensemble, entry, tensors, now, &d->origins);
        note_capacities(&queue->requests[entry->tag], descriptors);
        account(d, &queue->requests[entry->tag]);
        enqueue(d, &queue->requests[entry->tag], ensemble);
        sl_give_up_if_cancelled(d, &queue->requests[entry->tag]);
        return 0;
}

static enum sl_refusal cause_of(int status, const struct sl_refused *refusal)
{
        bool quota = refusal->reason.code == SL_REASON_CLIENT_IN_FLIGHT || refusal->reason.code == SL_REASON_USER_IN_FLIGHT;

        if (status == -EDQUOT && !quota)
                return SL_REFUSAL_SHARE;
        if (status == -EBUSY && refusal->wait_ns)
                return SL_REFUSAL_TOO_LATE;
        return sl_meter_cause(status);
}

static void take_entry(struct sl_dispatcher *d, struct sl_queue *queue, const struct sl_entry *entry)
{
        struct sl_refused refusal = {0};
        int r;

        if (entry->tag >= queue->map.depth || queue->requests[entry->tag].state != SL_REQUEST_FREE) {
                break_channel(d, queue->channel, "a tag out of range or in use");
                return;
        }
        r = accept_request(d, queue, entry, &refusal);
        if (r == 0)
                return;
        sl_meter_refused(d, queue, entry->model < SL_CATALOGUE_MODELS ? d->served[entry->model] : NULL, cause_of(r, &refusal));
        SL_PROBE(request_refused, queue->channel->id, queue->number, queue->head - 1, r);
        sl_complete_entry(queue, entry, r, &refusal);
}

/*
 * Where the next entry is there: what will be looked at then comes while this one is. A hint: nothing that it says is believed. Of
 * a copy, as its client may change it meanwhile.
 */
static void prefetch_next(const struct sl_dispatcher *d, const struct sl_queue *queue)
{
        const struct sl_queue_map *map = &queue->map;
        const struct sl_descriptor *descriptors;
        const struct sl_ensemble *ensemble;
        struct sl_entry next;

        if (!sl_entry_take(queue->head, map, &next))
                return;
        descriptors = &map->descriptors[(size_t)(next.tag & map->mask) * map->tensors];
        __builtin_prefetch(&descriptors[0]);
        __builtin_prefetch(&descriptors[1]);
        ensemble = next.model < SL_CATALOGUE_MODELS ? d->served[next.model] : NULL;
        if (!ensemble)
                return;
        __builtin_prefetch(&ensemble->generation);
        __builtin_prefetch(&ensemble->broadcasts);
        __builtin_prefetch(&ensemble->in_flight);
}

uint32_t sl_intake(struct sl_dispatcher *d, struct sl_queue *queue)
{
        static const struct sl_refused none;
        struct sl_entry entry;
        uint32_t n = 0;

        while (n < SL_INTAKE_ENTRIES_MAX && !queue->channel->broken && sl_intake_room(queue) &&
                sl_entry_take(queue->head, &queue->map, &entry)) {
                queue->head++;
                n++;
                prefetch_next(d, queue);
                if (entry.flags == SL_ENTRY_NOOP)
                        sl_complete_entry(queue, &entry, 0, &none);
                else
                        take_entry(d, queue, &entry);
        }
        if (n == 0)
                return 0;
        sl_completions_publish(d, queue);
        sl_consumed_publish(queue->head, &queue->map);
        sl_meter_taken(d, queue, n);
        if (queue->waking.since_ns)
                sl_waking_look(d, queue);
        return n;
}
