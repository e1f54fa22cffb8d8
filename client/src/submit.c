/* SPDX-License-Identifier: Apache-2.0 */
#include "aside.h"
#include "check.h"
#include "model.h"
#include "query.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static_assert((int)STARLING_NOOP == (int)SL_ENTRY_NOOP, "flags are the wire's");
static_assert(STARLING_PRIORITIES == SL_PRIORITIES && STARLING_BACKGROUND == SL_BACKGROUND, "priorities are the wire's");

__attribute__((cold, noinline)) static int refuse_queue(struct starling_queue *queue)
{
        if (sl_client_gone(queue->client))
                return sl_error_set(&queue->error, EPIPE, "%s", starling_strerror(-EPIPE));
        return sl_error_set(&queue->error, EAGAIN, "all %" PRIu32 " requests of the queue pair are in flight or not reaped",
                queue->flights.depth);
}

/* Flags, or a priority that is not below STARLING_PRIORITIES. */
__attribute__((cold, noinline)) static int check_header(struct starling_queue *queue, const struct starling_request *request)
{
        if (request->flags & ~(uint32_t)STARLING_NOOP)
                return sl_error_set(&queue->error, EINVAL, "flags %#" PRIx32 " are not known", request->flags);
        if (request->priority > STARLING_BACKGROUND)
                return sl_error_set(
                        &queue->error, EINVAL, "priority %" PRIu32 " is above %d", request->priority, STARLING_BACKGROUND);
        if (request->priority == STARLING_BACKGROUND && !queue->client->connection.has_background)
                return sl_error_set(
                        &queue->error, ENOTSUP, "the runtime is older: it has nothing behind priority %d", STARLING_PRIORITIES - 1);
        return 0;
}

/* One with more tensors than the queue pair has room for has one of few tags. Return: 0, -EAGAIN, -ENOMEM. */
__attribute__((cold, noinline)) static int prefer_wide(struct starling_queue *queue, uint32_t n_tensors)
{
        if (!queue->flights.wide)
                queue->flights.wide = calloc((size_t)SL_WIDE_SLOTS * SL_TENSORS_MAX, sizeof(*queue->flights.wide));
        if (!queue->flights.wide)
                return sl_error_set(&queue->error, ENOMEM, "no memory for the shapes of %" PRIu32 " tensors", n_tensors);
        if (sl_flights_prefer(&queue->flights, SL_WIDE_SLOTS))
                return 0;
        return sl_error_set(&queue->error, EAGAIN,
                "a queue pair has at most %u requests of more than %" PRIu32
                " tensors in flight (tensors_per_request), or not reaped: this one has %" PRIu32,
                SL_WIDE_SLOTS, queue->map.tensors, n_tensors);
}

static void describe_noop(struct sl_entry *entry)
{
        entry->model = 0;
        entry->generation = 0;
        entry->samples = 1;
        entry->n_inputs = 0;
        entry->n_outputs = 0;
}

/* Its tag's cancel word may name an earlier request, whose index comes again after 2^32 submissions. */
static inline void forget_cancellation(struct starling_queue *queue, uint16_t tag)
{
        _Atomic uint32_t *word = &queue->map.cancels[tag];

        if (atomic_load_explicit(word, memory_order_relaxed))
                atomic_store_explicit(word, 0, memory_order_relaxed);
}

static int describe_work(struct starling_queue *queue, const struct starling_request *request, uint32_t n_inputs,
        uint32_t n_tensors, uint16_t tag, uint32_t index, struct sl_entry *entry)
{
        uint32_t samples;
        int r = sl_check_request(queue, request, n_inputs, sl_descriptors_of(&queue->map, tag, n_tensors), &samples);

        if (__builtin_expect(r != SL_HANDLE_MODEL, 0)) {
                if (r < 0)
                        return r;
                entry->samples = samples;
                entry->n_inputs = (uint16_t)n_inputs;
                entry->n_outputs = (uint16_t)request->n_outputs;
                forget_cancellation(queue, tag);
                return sl_query_choose(queue, request, tag, index, entry);
        }
        forget_cancellation(queue, tag);
        entry->model = request->model->index;
        entry->generation = request->model->generation;
        entry->samples = samples;
        entry->n_inputs = (uint16_t)n_inputs; /* with those that are left out */
        entry->n_outputs = (uint16_t)request->n_outputs;
        return 0;
}

/*
 * Fills the entry of submission @index, all but its sequence number. A free tag is proof that the slot is free: at most depth
 * requests are accepted and not reaped, and what was completed had been consumed before (C2 stands for F2). Reserved fields are 0
 * from the start, as this side alone writes them.
 */
static inline int fill(struct starling_queue *queue, const struct starling_request *request, uint32_t index, uint64_t *ret_id)
{
        struct sl_flights *flights = &queue->flights;
        struct sl_entry *entry = &queue->map.entries[index & queue->map.mask];

        if (__builtin_expect(flights->n_free == 0, 0))
                return refuse_queue(queue);
        if (__builtin_expect((request->flags & ~(uint32_t)STARLING_NOOP) || request->priority >= STARLING_PRIORITIES, 0)) {
                int r = check_header(queue, request);

                if (r < 0)
                        return r;
        }

        /* Of the model: what the request says is checked against that. */
        const struct starling_model *model = request->flags & STARLING_NOOP ? NULL : request->model;
        uint32_t n_inputs = !model ? 0 : model->n_required == model->info.n_inputs ? model->n_required : sl_request_inputs(request);
        uint32_t n_tensors = model ? n_inputs + model->info.n_outputs : 0;

        if (__builtin_expect(n_tensors > queue->map.tensors, 0)) {
                int r = prefer_wide(queue, n_tensors);

                if (r < 0)
                        return r;
        }

        uint16_t tag = flights->free_tags[flights->n_free - 1];

        entry->deadline_ns = request->deadline_ns; /* which a query may bring nearer */

        if (request->flags & STARLING_NOOP) {
                describe_noop(entry);
        } else {
                int r = describe_work(queue, request, n_inputs, n_tensors, tag, index, entry);

                if (r < 0)
                        return r;
        }
        entry->flags = (uint16_t)request->flags;
        entry->priority = (uint8_t)request->priority;
        entry->user_data = request->user_data;
        entry->session = request->session;
        entry->tag = tag;
        flights->n_free--;
        flights->by_tag[tag] = (struct sl_flight){
                .id = sl_flight_id(queue->epoch, index, tag),
                .user_data = request->user_data,
                .state = SL_FLIGHT_FLYING,
                .n_tensors = (uint16_t)n_tensors,
                .n_outputs = entry->n_outputs,
        };
        *ret_id = flights->by_tag[tag].id;
        return 0;
}

/* A dispatcher that wakes on this thread's core would take turns with it. */
__attribute__((cold, noinline)) static void ring_dispatcher(struct starling_queue *queue)
{
        sl_doorbell_ring(queue->client->connection.doorbell);
        sl_step_aside(queue);
}

/* Rings the dispatcher's doorbell if it sleeps: the fence and the look of doorbell.h, after something was published. */
static inline void wake_dispatcher(struct starling_queue *queue)
{
        if (__builtin_expect(sl_dispatcher_sleeps(queue->dispatcher), 0))
                ring_dispatcher(queue);
}

int starling_submit(struct starling_queue *queue, const struct starling_request *request, uint64_t *ret_id)
{
        uint64_t id = 0;

        if (__builtin_expect(sl_forked(&queue->client->fork), 0))
                return -ECHILD;
        if (sl_client_gone(queue->client))
                return refuse_queue(queue);

        int r = fill(queue, request, queue->submitter.tail, &id);

        if (r < 0)
                return r;
        sl_submitter_publish(&queue->submitter, &queue->map);
        wake_dispatcher(queue);
        if (ret_id)
                *ret_id = id;
        return 0;
}

int starling_submit_many(struct starling_queue *queue, const struct starling_request *requests, uint32_t n, uint64_t *ret_ids)
{
        uint32_t filled = 0;
        int r = 0;

        if (sl_forked(&queue->client->fork))
                return -ECHILD;
        if (sl_client_gone(queue->client))
                return refuse_queue(queue);
        while (filled < n) {
                uint64_t id = 0;

                r = fill(queue, &requests[filled], queue->submitter.tail + filled, &id);
                if (r < 0)
                        break;
                if (ret_ids)
                        ret_ids[filled] = id;
                filled++;
        }
        if (filled == 0)
                return r;
        for (uint32_t i = 0; i < filled; i++)
                sl_submitter_publish(&queue->submitter, &queue->map);
        wake_dispatcher(queue);
        return (int)filled;
}

/* What the dispatcher finds changed it looks up by tag; the index tells a request from a later one of the same tag. */
int starling_cancel(struct starling_queue *queue, uint64_t id)
{
        struct sl_queue_request *shared = queue->map.request;

        if (sl_forked(&queue->client->fork))
                return -ECHILD;
        if (!sl_flights_flies(&queue->flights, id))
                return -ENOENT;
        if (sl_client_gone(queue->client))
                return -EPIPE;

        uint32_t cancellations = atomic_load_explicit(&shared->cancellations, memory_order_relaxed);

        atomic_store_explicit(&queue->map.cancels[sl_flight_tag(id)], sl_query_index(queue, id) + 1, memory_order_release);
        atomic_store_explicit(&shared->cancellations, cancellations + 1, memory_order_release);
        wake_dispatcher(queue);
        return 0;
}
