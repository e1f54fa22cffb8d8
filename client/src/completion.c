/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the ring to the application, or aside for a later poll; and what the end of the runtime leaves. The owner thread of the
 * queue pair. A completion is believed only as far as the table of flights goes (flights.h).
 */
#include "query.h"
#include "queue.h"

#include "base/clock.h"
#include "base/relax.h"
#include "reason.h"

#include <errno.h>
#include <string.h>

#define CHECK_POLLS 512u /* empty polls between two looks at the socket */
#define VAIN_POLLS  64u  /* in a row, between two looks at the clock */
#define PAUSE_NS    (1 * SL_NS_PER_MS)

/*
 * At most so long for each of a row of polls that is a spin. A loop in C takes tens of nanoseconds for one, an interpreter through
 * ctypes half a microsecond, and a few times that on a slow or shared core: the bound lies above, so that no language escapes it.
 * What works longer than that between two polls is none. Where it lies does not matter in C: with 0.25, 4 and 64 us clients that
 * spin sleep as often and take as much of the cores (starling bench overload --spin 20).
 */
#define VAIN_POLL_NS 4000u

/* ---- from the ring ---- */

/* The runtime is believed as far as the table goes: a completion of what does not fly ends the connection. */
static inline bool possible(const struct starling_queue *queue, const struct sl_completion *wire)
{
        const struct sl_flights *flights = &queue->flights;

        return wire->tag < flights->depth && flights->by_tag[wire->tag].state == SL_FLIGHT_FLYING &&
               (__builtin_expect(sl_flight_index(flights->by_tag[wire->tag].id) == wire->index, 1) ||
                       sl_query_is_second(queue, wire->tag, wire->index));
}

__attribute__((cold, noinline)) static int break_connection(const struct starling_queue *queue)
{
        sl_connection_break(&queue->client->connection);
        return 0;
}

static struct starling_shape shape_of(const struct sl_output *from)
{
        struct starling_shape shape = {
                .bytes = from->bytes,
                .rank = from->rank <= STARLING_RANK_MAX ? from->rank : STARLING_RANK_MAX,
                .dtype = (enum starling_dtype)from->dtype,
        };

        memcpy(shape.dims, from->dims, sizeof(shape.dims));
        return shape;
}

static struct starling_shape *shapes_of(const struct starling_queue *queue, uint16_t tag)
{
        const struct sl_flights *flights = &queue->flights;

        return flights->by_tag[tag].n_tensors <= flights->tensors ? &flights->shapes[(size_t)tag * flights->tensors]
                                                                  : &flights->wide[(size_t)tag * SL_TENSORS_MAX];
}

/* The wire's places are by tag and are written again with the tag's next request: shapes move to private memory. */
static uint32_t take_shapes(struct starling_queue *queue, const struct sl_completion *wire)
{
        const struct sl_output *outputs = sl_outputs_of(&queue->map, wire->tag, queue->flights.by_tag[wire->tag].n_tensors);
        struct starling_shape *shapes = shapes_of(queue, wire->tag);
        uint32_t given = queue->flights.by_tag[wire->tag].n_outputs;
        uint32_t n = wire->n_outputs < given ? wire->n_outputs : given;

        for (uint32_t i = 0; i < n; i++)
                shapes[i] = shape_of(&outputs[i]);
        queue->flights.by_tag[wire->tag].members_any = outputs[0].members_any;
        queue->flights.by_tag[wire->tag].members_all = outputs[0].members_all;
        return n;
}

/* As the shapes, into private memory. Its numbers only: who overloads a runtime reaps refusals by the hundred thousand a second. */
static struct starling_reason take_reason(struct starling_queue *queue, const struct sl_completion *wire)
{
        struct sl_reason from;
        char text[SL_FLIGHT_TEXT_BYTES], *kept = NULL;

        sl_reason_get(&queue->map, wire->tag, &from, text, sizeof(text));
        if (from.text_bytes > 0)
                kept = sl_flights_text(&queue->flights, wire->tag);
        if (kept)
                memcpy(kept, text, from.text_bytes + 1);
        return (struct starling_reason){
                .code = from.code, .tensor = from.tensor, .axis = from.axis, .got = from.got, .limit = from.limit, .text = kept};
}

static inline void translate(struct starling_queue *queue, const struct sl_completion *wire, struct starling_completion *ret)
{
        const struct sl_flight *flight = &queue->flights.by_tag[wire->tag];

        ret->id = flight->id;
        ret->user_data = flight->user_data;
        ret->status = wire->status;
        ret->n_outputs = 0;
        ret->outputs = NULL;
        ret->queued_ns = wire->queued_ns;
        ret->batched_ns = wire->batched_ns;
        ret->computing_ns = wire->computing_ns;
        ret->combining_ns = wire->combining_ns;
        ret->bytes_needed = wire->bytes_needed;
        ret->reason.code = SL_REASON_NONE;
        if (__builtin_expect(wire->flags & SL_COMPLETION_REASON, 0))
                ret->reason = take_reason(queue, wire);
        if (wire->n_outputs > 0) {
                ret->n_outputs = take_shapes(queue, wire);
                ret->outputs = shapes_of(queue, wire->tag);
        }
}

/* Takes up to @max; slots go back to the dispatcher once, at the end. */
static inline uint32_t reap(struct starling_queue *queue, struct starling_completion *ret_completions, uint32_t max)
{
        const struct sl_completion *wire;
        uint32_t n, again = 0;

        for (n = 0; n < max && (wire = sl_reaper_peek(&queue->reaper, &queue->map)); n++) {
                if (__builtin_expect(!possible(queue, wire), 0)) {
                        break_connection(queue);
                        break;
                }
                if (__builtin_expect(wire->flags & SL_COMPLETION_REASON, 0) && sl_query_again(queue, wire)) {
                        sl_reaper_advance(&queue->reaper);
                        again++;
                        n--; /* it is not over */
                        continue;
                }
                translate(queue, wire, &ret_completions[n]);
                sl_flights_release(&queue->flights, wire->tag);
                sl_reaper_advance(&queue->reaper);
        }
        if (n == 0 && !again)
                sl_relax();
        else
                sl_reaper_publish(&queue->reaper, &queue->map);
        return n;
}

void sl_queue_stash(struct starling_queue *queue)
{
        struct starling_completion completion;
        const struct sl_completion *wire;

        while ((wire = sl_reaper_peek(&queue->reaper, &queue->map))) {
                if (!possible(queue, wire)) {
                        break_connection(queue);
                        break;
                }
                if (wire->flags & SL_COMPLETION_REASON && sl_query_again(queue, wire)) {
                        sl_reaper_advance(&queue->reaper);
                        continue;
                }
                translate(queue, wire, &completion);
                sl_flights_stash(&queue->flights, wire->tag, &completion);
                sl_reaper_advance(&queue->reaper);
        }
        sl_reaper_publish(&queue->reaper, &queue->map);
}

int starling_completion_members(
        const struct starling_queue *queue, const struct starling_completion *completion, struct starling_members *ret_members)
{
        const struct sl_flight *flight = &queue->flights.by_tag[sl_flight_tag(completion->id) % queue->flights.depth];

        if (completion->status != 0 || !completion->n_outputs || flight->id != completion->id)
                return -ENODATA;
        if (!flight->members_any)
                return -ENOTSUP;
        *ret_members = (struct starling_members){.any = flight->members_any, .all = flight->members_all};
        return 0;
}

/* ---- the end of the runtime ---- */

/* Only after the end of file: nothing is published any more, so what the ring does not hold will never come. */
void sl_queue_bury(struct starling_queue *queue)
{
        sl_queue_stash(queue);
        sl_flights_fail(&queue->flights, -EPIPE);
}

static bool runtime_gone(const struct starling_queue *queue)
{
        return sl_connection_check(&queue->client->connection);
}

/* The ring is empty, or was. Return: how many of what a gone runtime leaves; -EPIPE nothing is left. */
static int reap_grave(struct starling_queue *queue, struct starling_completion *ret_completions, uint32_t max)
{
        sl_queue_bury(queue);

        uint32_t n = sl_flights_unstash(&queue->flights, ret_completions, max);

        return n > 0 ? (int)n : -EPIPE;
}

/* ---- poll ---- */

/* One poll behind the other, for nothing: that is a spin. Whoever does other things in between takes longer. */
static bool polls_in_vain(struct starling_queue *queue)
{
        uint64_t now_ns, taken_ns;

        if (++queue->vain_polls % VAIN_POLLS)
                return false;
        now_ns = sl_clock_ns();
        taken_ns = now_ns - queue->vain_ns;
        queue->vain_ns = now_ns;
        return queue->vain_polls > VAIN_POLLS && taken_ns <= VAIN_POLLS * VAIN_POLL_NS;
}

/*
 * Where more threads want to run than there are cores, a spin takes the time that answers need, those of others too: it ends as a
 * wait does that the runtime advises to sleep, until something comes or for a moment. Who has asked for one thing and wants it at
 * once may spin on as long as that costs the others no more than they keep.
 */
static bool harms_by_spinning(const struct starling_queue *queue)
{
        uint32_t unreaped = sl_flights_unreaped(&queue->flights);

        return unreaped && (unreaped > 1 ? sl_cores_crowded(queue->dispatcher) : sl_spin_harms(queue->dispatcher));
}

__attribute__((noinline)) static int poll_empty(
        struct starling_queue *queue, struct starling_completion *ret_completions, uint32_t max)
{
        if (sl_client_gone(queue->client))
                return reap_grave(queue, ret_completions, max);
        if (polls_in_vain(queue) && harms_by_spinning(queue)) {
                (void)sl_queue_wait(queue, PAUSE_NS);
                return (int)reap(queue, ret_completions, max);
        }
        if (++queue->empty_polls < CHECK_POLLS)
                return 0;
        queue->empty_polls = 0;
        return runtime_gone(queue) ? reap_grave(queue, ret_completions, max) : 0;
}

static inline int poll_once(struct starling_queue *queue, struct starling_completion *ret_completions, uint32_t max)
{
        uint32_t n = 0;

        if (__builtin_expect(queue->flights.n_stashed > 0, 0))
                n = sl_flights_unstash(&queue->flights, ret_completions, max);
        if (n < max)
                n += reap(queue, ret_completions + n, max - n);
        if (n == 0)
                return poll_empty(queue, ret_completions, max);
        queue->vain_polls = 0;
        return (int)n;
}

int starling_poll(struct starling_queue *queue, struct starling_completion *ret_completions, uint32_t max)
{
        if (__builtin_expect(sl_forked(&queue->client->fork), 0))
                return -ECHILD;
        if (max == 0)
                return -EINVAL;
        sl_queue_disarm(queue);
        return poll_once(queue, ret_completions, max);
}
