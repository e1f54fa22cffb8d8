/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_carrier.h"

#include "accumulator.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "bell.h"
#include "block.h"
#include "idle.h"
#include "lane_executor.h"
#include "let.h"
#include "mailbox.h"
#include "sender.h"
#include "workspace.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* An answer to each piece of each launch. */
#define OUTBOX_MAX (SL_EXECUTOR_JOBS_MAX * SL_CARRIER_PIECES_MAX)

struct thread_carrier {
        struct sl_carrier common;
        struct sl_thread_carrier_options options;
        struct sl_workspace room;
        struct sl_mailbox *inbox, *outbox; /* launches; answers */

        pthread_t thread;
        bool running;
        struct sl_bell bell;
        struct sl_wait *wait; /* its thread's */
        _Atomic bool quits;
};

static struct thread_carrier *carrier_of(struct sl_carrier *carrier)
{
        return (struct thread_carrier *)((char *)carrier - offsetof(struct thread_carrier, common));
}

/* ---- its thread ---- */

/* A launch that is computed, and a lane of it. */
struct launched {
        struct thread_carrier *carrier;
        bool is_light;
        bool ends; /* it has completed a segment, or come behind its end, or failed, since somebody was told */
};

struct launched_lane {
        struct launched *launched;
        struct sl_executor *executor;
        uint32_t number;
};

/* Behind the answer to the last piece of its job the lane may be gone. */
static void answer(void *context, const struct sl_job *job, struct sl_prediction *prediction)
{
        struct launched_lane *lane = context;
        struct launched *launched = lane->launched;
        struct sl_accumulator *accumulator = launched->carrier->options.accumulator;
        uint32_t segment = job->pieces[prediction->piece].segment;

        sl_sender_deliver(accumulator, job, lane->executor->stats, prediction);
        prediction->lane = (uint8_t)lane->number;
        launched->ends |= prediction->combined_ns || prediction->status < 0;
        if (sl_mailbox_put(launched->carrier->outbox, prediction) < 0)
                SL_ASSERT(!"the outbox has room for an answer to each piece");
        launched->ends |= sl_accumulator_delivered(accumulator, segment);
}

/* What is heavy is told of lane by lane: who waits for the first need not wait for the others. */
static void tell(struct launched *launched, uint64_t left)
{
        struct thread_carrier *c = launched->carrier;

        if (launched->is_light && left)
                return;
        sl_bell_ring_for(c->options.dispatcher, c->wait, launched->ends);
        launched->ends = false;
}

static void begin_lanes(struct launched *launched, uint64_t lanes, struct launched_lane *ret_lanes, struct sl_job_run *ret_runs)
{
        for (uint64_t left = lanes; left; left &= left - 1) {
                uint32_t number = (uint32_t)__builtin_ctzll(left);
                struct sl_executor *executor = launched->carrier->common.lanes[number];
                struct sl_job_run *run = &ret_runs[number];

                ret_lanes[number] = (struct launched_lane){.launched = launched, .executor = executor, .number = number};
                run->runner = sl_lane_executor_runner(executor);
                run->job = sl_lane_executor_next(executor);
                run->answer = answer;
                run->context = &ret_lanes[number];
                run->stats = executor->stats;
                run->own = NULL;
                run->way = NULL;
        }
}

static void run_launch(struct thread_carrier *c, const struct sl_carrier_launch *launch)
{
        struct launched launched = {.carrier = c, .is_light = launch->is_light};
        struct launched_lane lanes[SL_CARRIER_LANES_MAX];
        struct sl_job_run runs[SL_CARRIER_LANES_MAX];
        uint64_t now_ns = sl_clock_ns(), left = launch->lanes, together;

        begin_lanes(&launched, left, lanes, runs);
        together = launch->blocks && left & (left - 1) ? sl_blocks_run(launch->blocks, left, runs, &now_ns) : 0;
        left &= ~together;
        if (together)
                tell(&launched, left);
        while (left) {
                uint32_t lane = sl_lanes_first(left, launch->backwards);

                left &= ~(UINT64_C(1) << lane);
                if (sl_job_run_begin(&runs[lane], now_ns))
                        now_ns = sl_job_run_alone(&runs[lane], now_ns);
                tell(&launched, left);
        }
}

static bool work_waits(void *carrier)
{
        struct thread_carrier *c = carrier;

        return sl_mailbox_waiting(c->inbox) || atomic_load_explicit(&c->quits, memory_order_seq_cst);
}

static void *thread_main(void *argument)
{
        struct thread_carrier *c = argument;
        struct sl_carrier_launch launch;

        (void)sl_workspace_populate(&c->room, c->options.room_bytes, UINT64_MAX);
        for (;;) {
                while (sl_mailbox_take(c->inbox, &launch))
                        run_launch(c, &launch);
                if (atomic_load_explicit(&c->quits, memory_order_seq_cst))
                        return NULL;
                if (!sl_idle_spin(c->options.spin_ns, work_waits, c))
                        sl_idle_sleep(&c->bell, work_waits, c);
        }
}

/* ---- dispatcher ---- */

static void launch(struct sl_carrier *carrier, const struct sl_carrier_launch *launch, struct sl_wait *from)
{
        struct thread_carrier *c = carrier_of(carrier);

        if (sl_mailbox_put(c->inbox, launch) < 0)
                SL_ASSERT(!"the inbox has room for each launch");
        sl_bell_ring(&c->bell, from);
}

static bool poll(struct sl_carrier *carrier, struct sl_prediction *ret_prediction)
{
        return sl_mailbox_take(carrier_of(carrier)->outbox, ret_prediction);
}

static bool waiting(struct sl_carrier *carrier)
{
        return sl_mailbox_waiting(carrier_of(carrier)->outbox);
}

/* ---- control ---- */

static void stop(struct sl_carrier *carrier)
{
        struct thread_carrier *c = carrier_of(carrier);

        if (c->running) {
                atomic_store_explicit(&c->quits, true, memory_order_seq_cst);
                sl_bell_ring(&c->bell, NULL);
                pthread_join(c->thread, NULL);
        }
        sl_wait_free(c->wait);
        sl_mailbox_free(c->inbox);
        sl_mailbox_free(c->outbox);
        sl_workspace_deinit(&c->room);
        free(c);
}

static const struct sl_carrier_class class = {.name = "thread", .launch = launch, .poll = poll, .waiting = waiting, .stop = stop};

static int start(struct thread_carrier *c, struct sl_error *error)
{
        int r = sl_mailbox_new(SL_EXECUTOR_JOBS_MAX, sizeof(struct sl_carrier_launch), &c->inbox);

        if (r == 0)
                r = sl_mailbox_new(OUTBOX_MAX, sizeof(struct sl_prediction), &c->outbox);
        if (r == 0)
                r = sl_workspace_init(&c->room, c->options.room_bytes);
        if (r == 0)
                r = sl_wait_new(c->options.wait, &c->wait, NULL);
        c->bell.wait = c->wait;
        if (r == 0)
                r = sl_thread_start(&c->options.let->cpus, c->options.name, thread_main, c, &c->thread);
        c->running = r == 0;
        return r < 0 ? sl_error_set(error, -r, "cannot start carrier thread %s: %s", c->options.name, strerror(-r)) : 0;
}

int sl_thread_carrier_new(const struct sl_thread_carrier_options *options, struct sl_carrier **ret_carrier, struct sl_error *error)
{
        struct thread_carrier *c = aligned_alloc(SL_LINE_PAIR_BYTES, sl_align_up(sizeof(*c), SL_LINE_PAIR_BYTES));
        int r;

        if (!c)
                return sl_error_set(error, ENOMEM, "no memory for a carrier");
        memset(c, 0, sizeof(*c));
        c->options = *options;
        c->common.class = &class;
        c->common.let = options->let;
        r = start(c, error);
        if (r < 0) {
                stop(&c->common);
                return r;
        }
        *ret_carrier = &c->common;
        return 0;
}

uint64_t sl_thread_carrier_bytes(uint64_t room_bytes)
{
        return room_bytes + sizeof(struct thread_carrier) + OUTBOX_MAX * sizeof(struct sl_prediction);
}

void *sl_thread_carrier_room(struct sl_carrier *carrier, uint64_t bytes)
{
        struct thread_carrier *c = carrier_of(carrier);

        return bytes <= c->options.room_bytes ? c->room.bytes : NULL;
}
