/* SPDX-License-Identifier: Apache-2.0 */
#include "lane_executor.h"

#include "base/background.h"
#include "base/error.h"
#include "base/thread.h"
#include "bell.h"
#include "carrier.h"
#include "job_runner.h"
#include "let.h"
#include "thread_carrier.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct lane_executor {
        struct sl_executor common;
        struct sl_lane_executor_options options;
        void *memory;                              /* of the jobs */
        struct sl_job *jobs[SL_EXECUTOR_JOBS_MAX]; /* by slot: not read where the dispatcher counts */
        _Atomic int32_t called;                    /* nobody calls: it is warm when it is ready */
        pthread_t thread;                          /* that makes it ready */
        bool running;
        bool has_room;

        /* from READY on the carrier's */
        struct sl_prepared prepared;
        uint32_t next; /* slot */
};

static struct lane_executor *lane_of(const struct sl_executor *executor)
{
        return (struct lane_executor *)((char *)(uintptr_t)executor - offsetof(struct lane_executor, common));
}

/* What does not fit the room, as its architecture is another one after all, computes in memory of its own. */
static void move_in(struct lane_executor *lane)
{
        const struct sl_prepare_options *prepare = &lane->options.prepare;
        void *room = sl_thread_carrier_room(lane->common.carrier, sl_job_runner_room_bytes(prepare->plan, prepare->batch_max));

        lane->has_room = room != NULL;
        if (room)
                sl_job_runner_move(lane->prepared.runner, room);
}

static int prepare(struct lane_executor *lane)
{
        int r = sl_prepared_make(&lane->prepared, &lane->options.prepare);

        if (r == 0)
                r = sl_prepared_run_first(&lane->prepared);
        if (r == 0)
                move_in(lane);
        return r;
}

static void *prepare_main(void *argument)
{
        struct lane_executor *lane = argument;
        int r;

        sl_background_thread(lane->options.background);
        r = prepare(lane);
        sl_executor_say(&lane->common, r < 0 ? r : SL_EXECUTOR_READY, lane->prepared.warm_up.first_ns);
        sl_bell_ring(lane->options.starter, NULL);
        return NULL;
}

static void give(struct sl_executor *executor, uint32_t slot, struct sl_wait *from)
{
        (void)slot;
        (void)from;
        sl_carrier_fill(executor->carrier, executor->lane);
}

/* The carrier has the answers. */
static bool poll(struct sl_executor *executor, struct sl_prediction *ret_prediction)
{
        (void)executor;
        (void)ret_prediction;
        return false;
}

static bool waiting(struct sl_executor *executor)
{
        (void)executor;
        return false;
}

/* The thread that has made it ready. */
static bool leave(struct sl_executor *executor)
{
        struct lane_executor *lane = lane_of(executor);

        lane->running = lane->running && pthread_tryjoin_np(lane->thread, NULL) != 0;
        return !lane->running;
}

static void stop(struct sl_executor *executor)
{
        struct lane_executor *lane = lane_of(executor);

        if (lane->running)
                pthread_join(lane->thread, NULL);
        sl_carrier_leave(executor->carrier, executor);
        sl_prepared_free(&lane->prepared);
        free(lane->memory);
        free(lane);
}

static const struct sl_executor_class class = {
        .name = "lane", .give = give, .poll = poll, .waiting = waiting, .leave = leave, .stop = stop};

static int make_jobs(struct lane_executor *lane)
{
        const struct sl_plan_info *info = sl_plan_info(lane->options.prepare.plan);

        lane->memory = calloc(SL_EXECUTOR_JOBS_MAX, sl_job_bytes(info->n_inputs, info->n_outputs));
        if (!lane->memory)
                return -ENOMEM;
        sl_executor_init(&lane->common, lane->memory, SL_EXECUTOR_JOBS_MAX, info->n_inputs, info->n_outputs);
        for (uint32_t i = 0; i < SL_EXECUTOR_JOBS_MAX; i++)
                lane->jobs[i] = lane->common.slots[i].job;
        return 0;
}

static int start(struct lane_executor *lane)
{
        int r = make_jobs(lane);

        if (r == 0)
                r = sl_carrier_seat(lane->common.carrier, &lane->common);
        if (r < 0)
                return r;
        lane->common.lane = (uint32_t)r;
        r = sl_thread_start(&lane->options.start_cores, lane->options.name, prepare_main, lane, &lane->thread);
        lane->running = r == 0;
        return r;
}

int sl_lane_executor_new(const struct sl_lane_executor_options *options, struct sl_executor **ret_executor, struct sl_error *error)
{
        struct lane_executor *lane = calloc(1, sizeof(*lane));
        int r;

        if (!lane)
                return sl_error_set(error, ENOMEM, "no memory for a worker");
        lane->options = *options;
        lane->options.prepare.called = &lane->called;
        lane->options.prepare.batch_max = sl_job_runner_batch_max(sl_plan_info(options->prepare.plan), options->prepare.batch_max);
        lane->common.class = &class;
        lane->common.carrier = options->carrier;
        lane->common.batch_max = lane->options.prepare.batch_max;
        lane->common.let = options->carrier->let;
        lane->common.stats = options->prepare.stats;
        r = start(lane);
        if (r < 0) {
                stop(&lane->common);
                return sl_error_set(error, -r, "cannot start lane %s: %s", options->name, strerror(-r));
        }
        *ret_executor = &lane->common;
        return 0;
}

struct sl_inline_trial sl_lane_executor_take_trial(struct sl_executor *executor)
{
        return sl_prepared_take_trial(&lane_of(executor)->prepared);
}

bool sl_lane_executor_has_room(const struct sl_executor *executor)
{
        return lane_of(executor)->has_room;
}

struct sl_job *sl_lane_executor_next(struct sl_executor *executor)
{
        struct lane_executor *lane = lane_of(executor);
        uint32_t slot = lane->next;

        lane->next = (slot + 1) % SL_EXECUTOR_JOBS_MAX;
        return lane->jobs[slot];
}

struct sl_job_runner *sl_lane_executor_runner(struct sl_executor *executor)
{
        return lane_of(executor)->prepared.runner;
}
