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
#include <string.h>

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
        sl_ensemble_enter(request->ensemble, request->units);
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
        struct sl_made_output *made = made_of(queue, entry->tag, (uint32_t)entry->n_inputs + entry->n_outputs);

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
                .made = made,
                .given = made + entry->n_outputs,
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

/* Those of a request to a plan of any size, as it was admitted. */
static void note_shapes(struct sl_request *request, const struct sl_descriptor *descriptors)
{
        const struct sl_ensemble *ensemble = request->ensemble;

        for (uint32_t i = 0; i < ensemble->n_inputs; i++) {
                request->work.given[i] = (struct sl_made_output){.bytes = descriptors[i].bytes, .rank = descriptors[i].rank};
                memcpy(request->work.given[i].dims, descriptors[i].dims, sizeof(descriptors[i].dims));
        }
}

/* What decides with whom it may share a batch. Equal for equal shapes, but for their rows; compared in full where it counts. */
static uint64_t kind_of(const struct sl_work *work, uint32_t n_inputs)
{
        uint64_t kind = 1;

        for (uint32_t i = 0; i < n_inputs; i++)
                for (uint32_t k = 1; k < work->given[i].rank; k++)
                        kind = (kind ^ work->given[i].dims[k]) * SL_SPLIT_MIX_STEP;
        return kind | 1;
}

/* Its size, and its kind if it has samples that may be gathered with others'. */
static void note_size(struct sl_request *request)
{
        const struct sl_ensemble *ensemble = request->ensemble;

        bool gathers = ensemble->gathers && request->entry.samples;

        request->units = 1;
        for (uint32_t i = 0; i < ensemble->n_inputs; i++) {
                request->units += request->work.given[i].bytes;
                gathers &= request->work.given[i].rank && request->work.given[i].dims[0] == request->entry.samples;
        }
        if (!gathers)
                return;
        request->rows = request->entry.samples;
        request->kind = kind_of(&request->work, ensemble->n_inputs);
}

/* How much room there is for outputs that say only afterwards how large they are. */
static void note_capacities(struct sl_request *request, const struct sl_descriptor *descriptors)
{
        const struct sl_ensemble *ensemble = request->ensemble;

        for (uint32_t i = 0; i < ensemble->assembly.n_outputs && ensemble->assembly.open_outputs; i++)
                request->work.made[i] = (struct sl_made_output){.capacity_bytes = descriptors[ensemble->n_inputs + i].bytes};
        if (ensemble->assembly.open_inputs)
                note_shapes(request, descriptors);
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

/* One without samples has outputs without rows: nothing is computed, and it is done at once. */
static void enqueue(struct sl_dispatcher *d, struct sl_request *request, struct sl_ensemble *ensemble)
{
        struct sl_queue *queue = request->queue;

        sl_meter_accepted(request);
        sl_record_begin(d, request, SL_FLIGHT_QUEUED);
        if (!request->samples) {
                sl_complete(d, request, 0);
                sl_completions_publish(d, queue);
                return;
        }
        sl_broadcaster_enqueue(ensemble, request);
        sl_decisions_arrival(d, request);
        SL_PROBE(request_accepted, queue->channel->id, queue->number, request->index, request->samples, ensemble->name);
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

/* The plan of any size computes it: however many samples there are, they are one run. */
static bool is_for_any(const struct sl_ensemble *ensemble, const struct sl_entry *entry)
{
        return ensemble->assembly.open_inputs && ensemble->index != entry->model;
}

/* Its memory may have changed since: everything is copied and checked anew. */
static int admit_again(struct sl_dispatcher *d, struct sl_request *request, struct sl_ensemble **ensemble,
        struct sl_shape_slot **ret_slot, struct sl_descriptor *descriptors, struct sl_refused *refused)
{
        const struct sl_channel *channel = request->queue->channel;
        const struct sl_entry *entry = &request->entry;
        int r = 0;

        copy_descriptors(request->queue, entry, (uint32_t)entry->n_inputs + entry->n_outputs, descriptors);
        if (sl_ensemble_routes(*ensemble, entry->n_inputs))
                r = route(d, channel, entry, descriptors, sl_pass_now(&d->pass), ensemble, ret_slot, refused);
        struct sl_entry run = *entry;
        if (is_for_any(*ensemble, entry))
                run.samples = 1;
        if (r == 0 && !*ret_slot)
                r = admit(channel, &run, descriptors, *ensemble, sl_pass_now(&d->pass), refused, request->work.inputs);
        return r == 0 ? make_place(d, channel, *ensemble, &refused->reason) : r;
}

static void move(struct sl_dispatcher *d, struct sl_request *request, struct sl_ensemble *ensemble)
{
        sl_ensemble_leave(request->ensemble, request->units, sl_pass_now(&d->pass));
        sl_settle_after(d, request->ensemble);
        sl_places_leave(request->ensemble->places, request);
        set_ensemble(request, ensemble);
        request->kind = request->units = request->rows = 0;
        sl_ensemble_enter(ensemble, 0);
        sl_places_enter(ensemble->places, request);
}

void sl_intake_again(struct sl_dispatcher *d, struct sl_request *request, struct sl_ensemble *ensemble)
{
        struct sl_queue *queue = request->queue;
        struct sl_descriptor descriptors[SL_TENSORS_MAX];
        struct sl_shape_slot *slot = NULL;
        struct sl_refused refused = {0};
        int r = admit_again(d, request, &ensemble, &slot, descriptors, &refused);

        if (r < 0) {
                sl_complete_refused(d, request, r, &refused);
                sl_completions_publish(d, queue);
                return;
        }
        move(d, request, ensemble);
        if (slot) {
                sl_shapes_park(slot, request);
                return;
        }
        request->any_size = is_for_any(ensemble, &request->entry);
        if (request->any_size)
                request->samples = 1;
        note_capacities(request, descriptors);
        if (request->any_size) {
                note_size(request);
                ensemble->units += request->units;
        }
        request->state = SL_REQUEST_FREE;
        enqueue(d, request, ensemble);
}

/* As note_size() will say. */
static uint64_t units_of(const struct sl_ensemble *ensemble, const struct sl_descriptor *descriptors)
{
        uint64_t units = 1;

        for (uint32_t i = 0; i < ensemble->n_inputs; i++)
                units += descriptors[i].bytes;
        return units;
}

/* @units: of a request to a plan of any size; else 0. Return: 0; -EBUSY it would be late, with how long it would wait. */
static int check_forecast(const struct sl_queue *queue, const struct sl_entry *entry, uint64_t units,
        const struct sl_ensemble *ensemble, uint64_t now_ns, struct sl_refused *ret_refusal)
{
        if (!entry->deadline_ns)
                return 0;
        uint64_t ahead = sl_broadcaster_ahead(ensemble, queue->channel->slot, entry->priority);

        ret_refusal->wait_ns = sl_forecast_late(ensemble, ahead, entry->samples, units, entry->deadline_ns - now_ns);
        if (!ret_refusal->wait_ns)
                return 0;
        return sl_refuse(&ret_refusal->reason, -EBUSY, SL_REASON_LATE, ret_refusal->wait_ns, entry->deadline_ns - now_ns);
}

/* To @ensemble, which computes just these sizes. @whole: to that of any size, and this is the entry as it came; NULL. */
static int accept_routed(struct sl_dispatcher *d, struct sl_queue *queue, const struct sl_entry *entry,
        const struct sl_descriptor *descriptors, struct sl_ensemble *ensemble, const struct sl_entry *whole,
        struct sl_place *tensors, struct sl_refused *ret_refusal)
{
        struct sl_request *request = &queue->requests[entry->tag];
        uint64_t now = sl_pass_now(&d->pass);
        int r = admit(queue->channel, entry, descriptors, ensemble, now, ret_refusal, tensors);

        if (r == 0)
                r = check_forecast(queue, entry, whole ? units_of(ensemble, descriptors) : 0, ensemble, now, ret_refusal);
        if (r == 0)
                r = make_place(d, queue->channel, ensemble, &ret_refusal->reason);
        if (r < 0)
                return r;
        fill_request(request, queue, ensemble, entry, tensors, now, &d->origins);
        note_capacities(request, descriptors);
        if (whole) {
                request->any_size = true;
                request->entry = *whole;
                note_size(request);
        }
        account(d, request);
        enqueue(d, request, ensemble);
        if (entry->samples)
                sl_give_up_if_cancelled(d, request);
        return 0;
}

/* To the plan of any size. */
static int accept_any(struct sl_dispatcher *d, struct sl_queue *queue, const struct sl_entry *entry,
        const struct sl_descriptor *descriptors, struct sl_ensemble *any, struct sl_place *tensors, struct sl_refused *ret_refusal)
{
        struct sl_entry run = *entry;

        run.samples = 1;
        return accept_routed(d, queue, &run, descriptors, any, entry, tensors, ret_refusal);
}

/*
 * What another plan would say as well, or nobody asks any more. An index out of range may be one of which a plan of its sizes takes
 * the shape alone.
 */
static bool is_final(int32_t status)
{
        return status == -ETIME || status == -ECANCELED || status == -EDQUOT || status == -EMSGSIZE;
}

/* From the plan of any size to the slot of its own, as if it had come there. */
static void move_to_slot(struct sl_dispatcher *d, struct sl_request *request, struct sl_ensemble *open, struct sl_shape_slot *slot)
{
        sl_meter_moved(request);
        move(d, request, open);
        sl_fault_clear(request->fault);
        request->any_size = false;
        request->verdict = 0;
        request->samples = request->entry.samples;
        request->broadcast = request->finished = 0;
        request->assigned_ns = request->started_ns = request->staged_ns = request->combined_ns = 0;
        sl_record_begin(d, request, SL_FLIGHT_PARKED);
        sl_shapes_park(slot, request);
}

bool sl_intake_own_size(struct sl_dispatcher *d, struct sl_request *request)
{
        struct sl_descriptor descriptors[SL_TENSORS_MAX];
        struct sl_refused refused = {0};
        struct sl_shape_slot *slot;
        struct sl_ensemble *open;

        if (!request->any_size || is_final(request->verdict) || find_ensemble(d, &request->entry, &open, &refused.reason) < 0 ||
                !open->open)
                return false;
        copy_descriptors(
                request->queue, &request->entry, (uint32_t)request->entry.n_inputs + request->entry.n_outputs, descriptors);
        if (sl_route_own(d, request->queue->channel->user, &request->entry, descriptors, open, &slot, &refused) < 0) {
                if (refused.text)
                        sl_fault_tell(request->fault, refused.text);
                return false;
        }
        move_to_slot(d, request, open, slot);
        if (slot->state == SL_SHAPE_READY) {
                sl_shapes_unpark(request);
                sl_intake_again(d, request, slot->ensemble);
        }
        return true;
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
        if ((entry->n_inputs != ensemble->n_inputs && !sl_ensemble_is_given(ensemble, entry->n_inputs)) ||
                entry->n_outputs != ensemble->assembly.n_outputs)
                return sl_refuse(
                        &ret_refusal->reason, -EINVAL, SL_REASON_COUNTS, n, ensemble->n_inputs + ensemble->assembly.n_outputs);
        if (!sl_tag_has_room(&queue->map, entry->tag, n))
                return sl_refuse(&ret_refusal->reason, -EINVAL, SL_REASON_TENSORS, n, queue->map.tensors);
        tensors = tensors_of(queue, entry->tag, n);
        copy_descriptors(queue, entry, n, descriptors);
        if (sl_ensemble_routes(ensemble, entry->n_inputs))
                r = route(d, channel, entry, descriptors, now, &ensemble, &slot, ret_refusal);
        if (r == 0 && slot)
                r = make_place(d, channel, ensemble, &ret_refusal->reason);
        if (r == 0 && slot)
                park(d, queue, ensemble, slot, entry, tensors, now);
        if (r < 0 || slot)
                return r;
        if (is_for_any(ensemble, entry))
                return accept_any(d, queue, entry, descriptors, ensemble, tensors, ret_refusal);
        return accept_routed(d, queue, entry, descriptors, ensemble, NULL, tensors, ret_refusal);
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
