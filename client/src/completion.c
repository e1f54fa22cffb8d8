/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include "base/clock.h"
#include "base/relax.h"
#include "model.h"
#include "reason.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#define CHECK_POLLS      512u                /* empty polls between two looks at the socket */
#define SLEEP_SLICE_NS   (20 * SL_NS_PER_MS) /* between two looks at the socket of a sleeper */
#define CROWDED_SLEEP_NS (1 * SL_NS_PER_MS)  /* at least, while more threads want to run than there are cores */
#define SPIN_MIN_NS      2000u
#define SPIN_MAX_NS      5000u
#define SPINS_PER_CLOCK  16
#define YIELDS           8
#define YIELD_LATE_NS    50000u
#define YIELD_REST       64u
#define YIELD_REST_MAX   4096u

static_assert(STARLING_FOREVER == UINT64_MAX, "limits below are never reached by it");

/* ---- from the ring ---- */

/* The runtime is believed as far as the table goes: a completion of what does not fly ends the connection. */
static inline bool possible(const struct sl_flights *flights, const struct sl_completion *wire)
{
        return wire->tag < flights->depth && flights->by_tag[wire->tag].state == SL_FLIGHT_FLYING &&
               sl_flight_index(flights->by_tag[wire->tag].id) == wire->index;
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

/* The wire's places are by tag and are written again with the tag's next request: shapes move to private memory. */
static uint32_t take_shapes(struct starling_queue *queue, const struct sl_completion *wire)
{
        const struct sl_output *outputs = &queue->map.outputs[(size_t)wire->tag * queue->map.tensors];
        struct starling_shape *shapes = &queue->flights.shapes[(size_t)wire->tag * queue->flights.tensors];
        uint32_t given = queue->flights.by_tag[wire->tag].n_outputs;
        uint32_t n = wire->n_outputs < given ? wire->n_outputs : given;

        for (uint32_t i = 0; i < n; i++)
                shapes[i] = shape_of(&outputs[i]);
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
                ret->outputs = &queue->flights.shapes[(size_t)wire->tag * queue->flights.tensors];
        }
}

/* Takes up to @max; slots go back to the dispatcher once, at the end. */
static inline uint32_t reap(struct starling_queue *queue, struct starling_completion *ret_completions, uint32_t max)
{
        const struct sl_completion *wire;
        uint32_t n;

        for (n = 0; n < max && (wire = sl_reaper_peek(&queue->reaper, &queue->map)); n++) {
                if (__builtin_expect(!possible(&queue->flights, wire), 0)) {
                        break_connection(queue);
                        break;
                }
                translate(queue, wire, &ret_completions[n]);
                sl_flights_release(&queue->flights, wire->tag);
                sl_reaper_advance(&queue->reaper);
        }
        if (n == 0)
                sl_relax();
        else
                sl_reaper_publish(&queue->reaper, &queue->map);
        return n;
}

/* Puts the ring's completions aside for a later poll. */
static void stash_ring(struct starling_queue *queue)
{
        struct starling_completion completion;
        const struct sl_completion *wire;

        while ((wire = sl_reaper_peek(&queue->reaper, &queue->map))) {
                if (!possible(&queue->flights, wire)) {
                        break_connection(queue);
                        break;
                }
                translate(queue, wire, &completion);
                sl_flights_stash(&queue->flights, wire->tag, &completion);
                sl_reaper_advance(&queue->reaper);
        }
        sl_reaper_publish(&queue->reaper, &queue->map);
}

/* ---- the end of the runtime ---- */

/* Only after the end of file: nothing is published any more, so what the ring does not hold will never come. */
void sl_queue_bury(struct starling_queue *queue)
{
        stash_ring(queue);
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

__attribute__((noinline)) static int poll_empty(
        struct starling_queue *queue, struct starling_completion *ret_completions, uint32_t max)
{
        if (sl_client_gone(queue->client))
                return reap_grave(queue, ret_completions, max);
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
        return n > 0 ? (int)n : poll_empty(queue, ret_completions, max);
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

/* ---- wait ---- */

static bool ring_ready(struct starling_queue *queue)
{
        return sl_reaper_peek(&queue->reaper, &queue->map) != NULL;
}

/* The core went to somebody who computes, as a sleeper would have let it, but whom nobody wakes: it sleeps the next times. */
static void note_late_yield(struct starling_queue *queue)
{
        uint32_t penalty = 2 * queue->yield_penalty;

        queue->yield_penalty = penalty == 0 ? YIELD_REST : penalty < YIELD_REST_MAX ? penalty : YIELD_REST_MAX;
        queue->yield_rest = queue->yield_penalty;
}

/*
 * Where clients alone crowd the cores, whoever waits lets the others run, which may be what its answer needs: no system call wakes
 * anybody. Who is away for long sleeps the next times, and twice as often when that happens again.
 */
static bool yield(struct starling_queue *queue)
{
        uint64_t begun_ns;

        if (queue->yield_rest > 0) {
                queue->yield_rest--;
                return false;
        }
        begun_ns = sl_clock_ns();
        for (int i = 0; i < YIELDS; i++) {
                sched_yield();
                if (sl_clock_ns() - begun_ns > YIELD_LATE_NS) {
                        note_late_yield(queue);
                        return ring_ready(queue);
                }
                if (ring_ready(queue)) {
                        queue->yield_penalty = 0;
                        return true;
                }
        }
        return false;
}

/* Spins longer next time when it was worth it, shorter when the sleep came all the same. */
static bool spin(struct starling_queue *queue, uint64_t limit_ns)
{
        uint32_t spin_ns = queue->spin_ns;
        uint64_t start_ns = 0;

        queue->n_waits++;
        if (ring_ready(queue))
                return true;
        if (queue->may_spin && sl_yield_helps(queue->dispatcher))
                return yield(queue);
        if (!queue->may_spin || !sl_spin_helps(queue->dispatcher, spin_ns))
                return false;
        queue->n_spins++;
        do {
                for (int i = 0; i < SPINS_PER_CLOCK; i++) {
                        if (ring_ready(queue)) {
                                queue->spin_ns = spin_ns * 2 < SPIN_MAX_NS ? spin_ns * 2 : SPIN_MAX_NS;
                                return true;
                        }
                        sl_relax();
                }
                if (start_ns == 0)
                        start_ns = sl_clock_ns();
        } while (sl_clock_ns() - start_ns < (spin_ns < limit_ns ? spin_ns : limit_ns));
        queue->spin_ns = spin_ns / 2 > SPIN_MIN_NS ? spin_ns / 2 : SPIN_MIN_NS;
        return false;
}

/* A sleeper looks at the socket once in a slice: many short waits need no look each. */
static bool is_check_due(struct starling_queue *queue, uint64_t now_ns)
{
        if (now_ns - queue->checked_ns < SLEEP_SLICE_NS)
                return false;
        queue->checked_ns = now_ns;
        return true;
}

/* Until the ring holds something. Return: 0, -EPIPE gone (the ring may hold the last ones), -ETIMEDOUT, -EINTR. */
static int sleep_until_ready(struct starling_queue *queue, uint64_t timeout_ns)
{
        uint64_t start_ns = sl_clock_ns(), waited_ns = 0;

        while (waited_ns < timeout_ns) {
                if (is_check_due(queue, start_ns + waited_ns) && runtime_gone(queue))
                        return -EPIPE;
                uint64_t left_ns = timeout_ns - waited_ns;
                int r = sl_client_sleep(&queue->map, queue->reaper.head, left_ns < SLEEP_SLICE_NS ? left_ns : SLEEP_SLICE_NS);

                if (r != -ETIMEDOUT)
                        return r;
                waited_ns = sl_clock_ns() - start_ns;
        }
        return -ETIMEDOUT;
}

static int wait_ready(struct starling_queue *queue, uint64_t timeout_ns)
{
        if (spin(queue, timeout_ns))
                return 0;
        /* Who sleeps for moments, again and again, takes the cores that the answers need as well as who spins. */
        if (timeout_ns < CROWDED_SLEEP_NS && sl_cores_crowded(queue->dispatcher))
                timeout_ns = CROWDED_SLEEP_NS;
        return sleep_until_ready(queue, timeout_ns);
}

int starling_wait(struct starling_queue *queue, struct starling_completion *ret_completions, uint32_t max, uint64_t timeout_ns)
{
        int r = starling_poll(queue, ret_completions, max);

        if (r != 0)
                return r;
        if (sl_flights_unreaped(&queue->flights) == 0)
                return -ENODATA;
        if (timeout_ns == 0)
                return -ETIMEDOUT;
        r = wait_ready(queue, timeout_ns);
        if (r < 0 && r != -EPIPE)
                return r;
        /* Something is there, or the runtime is gone: either way there is something to hand out. */
        r = poll_once(queue, ret_completions, max);
        return r != 0 ? r : -ETIMEDOUT;
}

/* ---- one of many ---- */

/* Takes the ring's next completion if it is @id's; puts it aside if it is another's. True when it was. */
static bool reap_own(struct starling_queue *queue, uint64_t id, struct starling_completion *ret_completion)
{
        stash_ring(queue);
        return sl_flights_unstash_one(&queue->flights, id, ret_completion);
}

static void explain(struct starling_queue *queue, const struct starling_request *request, const struct starling_completion *failed)
{
        char text[STARLING_TEXT_BYTES];

        sl_error_set(&queue->error, -failed->status, "model \"%s\": %s", request->model->info.name,
                starling_reason_text(failed, text, sizeof(text)));
}

int starling_infer(struct starling_queue *queue, const struct starling_request *request, struct starling_completion *ret_completion)
{
        struct starling_completion completion;
        uint64_t id;
        int r = starling_submit(queue, request, &id);

        if (r < 0)
                return r;
        sl_queue_disarm(queue);
        for (;;) {
                r = wait_ready(queue, STARLING_FOREVER);
                if (r == -EPIPE || sl_client_gone(queue->client))
                        sl_queue_bury(queue);
                if (reap_own(queue, id, &completion))
                        break;
        }
        if (completion.status < 0)
                explain(queue, request, &completion);
        if (ret_completion)
                *ret_completion = completion;
        return completion.status;
}
