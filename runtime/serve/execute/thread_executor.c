/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_executor.h"

#include "accumulator.h"
#include "base/assert.h"
#include "base/background.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/relax.h"
#include "job_runner.h"
#include "let.h"
#include "mailbox.h"
#include "sender.h"
#include "stats.h"
#include "warm_up.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Every sleep has a limit as an insurance against a wake-up that is lost in the kernel. */
#define SLEEP_LIMIT_NS (1000 * SL_NS_PER_MS)

/* A first sample that takes so many times the limit of inline, cold, is not tried again. */
#define HOPELESS 100

#define SHUT_DOWN SL_EXECUTOR_JOBS_MAX /* in the inbox, where slots are */

struct thread_executor {
        struct sl_executor common;
        struct sl_thread_executor_options options;
        void *memory;                              /* of the jobs */
        struct sl_job *jobs[SL_EXECUTOR_JOBS_MAX]; /* by slot: not read where the dispatcher counts */
        struct sl_mailbox *inbox, *outbox;         /* slots; answers */
        struct sl_bell bell;
        struct sl_wait *wait;
        struct sl_job_runner *runner;
        struct sl_inline_trial trial;
        struct sl_warm_up warm_up;
        _Atomic int32_t called; /* J1 of warm_up.h */
        bool ends;              /* the job at hand: it has completed a segment, or come behind its end, or failed */
        pthread_t thread;
        bool running;
};

static struct thread_executor *thread_of(struct sl_executor *executor)
{
        return (struct thread_executor *)((char *)executor - offsetof(struct thread_executor, common));
}

static bool spin_for_job(struct thread_executor *t, uint32_t *ret_slot)
{
        uint64_t until = t->options.spin_ns ? sl_clock_ns() + t->options.spin_ns : 0;

        do {
                for (int i = 0; i < 64; i++) {
                        if (sl_mailbox_take(t->inbox, ret_slot))
                                return true;
                        sl_relax();
                }
        } while (until && sl_clock_ns() < until);
        return false;
}

static void wait_for_job(struct thread_executor *t, uint32_t *ret_slot)
{
        while (!spin_for_job(t, ret_slot)) {
                struct sl_wait_event event;

                if (sl_warm_up_next(&t->warm_up))
                        continue;
                sl_bell_sleep(&t->bell);
                if (!sl_mailbox_waiting(t->inbox))
                        sl_wait_for(t->wait, &event, 1, SLEEP_LIMIT_NS);
                sl_bell_awake(&t->bell);
        }
}

static void answer(void *context, const struct sl_job *job, struct sl_prediction *prediction)
{
        struct thread_executor *t = context;
        uint32_t segment = job->pieces[prediction->piece].segment;

        sl_sender_deliver(t->options.accumulator, job, t->options.stats, prediction);
        t->ends |= prediction->combined_ns || prediction->status < 0;
        if (sl_mailbox_put(t->outbox, prediction) < 0)
                SL_ASSERT(!"the outbox has room for an answer to each piece");
        t->ends |= sl_accumulator_delivered(t->options.accumulator, segment); /* the job may be another one by now */
}

static void run_job(struct thread_executor *t, uint32_t slot)
{
        t->ends = false;
        sl_job_runner_run(t->runner, t->jobs[slot], answer, t);
        sl_bell_ring_for(t->options.dispatcher, t->wait, t->ends);
}

/* All that takes time: kernels, memory, and the first run. */
static int prepare(struct thread_executor *t)
{
        const struct sl_job_runner_options options = {
                .plan = t->options.plan,
                .batch_max = t->common.batch_max,
                .regions = t->options.regions,
                .verdicts = sl_accumulator_verdict(t->options.accumulator, 0),
        };
        uint64_t until_ns = sl_clock_ns() + t->options.warmup_ns;
        int r = sl_job_runner_new(&options, &t->runner);

        if (r < 0)
                return r;
        t->warm_up = (struct sl_warm_up){
                .instance = sl_job_runner_instance(t->runner),
                .batcher = sl_job_runner_batcher(t->runner),
                .stats = t->options.stats,
                .info = sl_plan_info(t->options.plan),
                .dynamic = sl_plan_is_dynamic(t->options.plan),
                .batch_max = t->common.batch_max,
                .until_ns = until_ns,
                .called = &t->called,
        };
        r = sl_warm_up_first(&t->warm_up);
        if (r == 0 && t->options.inline_ns && t->warm_up.first_ns < HOPELESS * t->options.inline_ns)
                r = sl_inline_trial_run(&options, t->options.inline_ns, t->options.inline_bound_ns, &t->trial);
        return r;
}

/* Where the worker may run nothing to become warm, faulting its memory would disturb others as well: it is done before "ready". */
static int prepare_in_background(struct thread_executor *t)
{
        int r;

        sl_background_thread(true);
        r = prepare(t);
        while (r == 0 && !t->options.warmup_ns && sl_warm_up_next(&t->warm_up))
                ;
        sl_background_thread(false);
        return r;
}

static int start(struct thread_executor *t)
{
        int r = sl_wait_new(t->options.wait, &t->wait, NULL);

        if (r < 0)
                return r;
        t->bell.wait = t->wait;
        return t->options.background ? prepare_in_background(t) : prepare(t);
}

static void *thread_main(void *argument)
{
        struct thread_executor *t = argument;
        uint32_t slot;
        int r = start(t);

        sl_executor_say(&t->common, r < 0 ? r : SL_EXECUTOR_READY, t->warm_up.first_ns);
        sl_bell_ring(t->options.starter, t->wait);
        if (r < 0)
                return NULL;
        for (wait_for_job(t, &slot); slot != SHUT_DOWN; wait_for_job(t, &slot))
                run_job(t, slot);
        return NULL;
}

static int start_thread(struct thread_executor *t)
{
        pthread_attr_t attributes;
        int r = pthread_attr_init(&attributes);

        if (r)
                return -r;
        if (CPU_COUNT(&t->options.let->cpus))
                pthread_attr_setaffinity_np(&attributes, sizeof(t->options.let->cpus), &t->options.let->cpus);
        r = pthread_create(&t->thread, &attributes, thread_main, t);
        pthread_attr_destroy(&attributes);
        if (r)
                return -r;
        t->running = true;
        pthread_setname_np(t->thread, t->options.name);
        return 0;
}

static void give(struct sl_executor *executor, uint32_t slot, struct sl_wait *from)
{
        struct thread_executor *t = thread_of(executor);

        sl_warm_up_call(&t->called);
        if (sl_mailbox_put(t->inbox, &slot) < 0)
                SL_ASSERT(!"the inbox has room for each slot");
        sl_bell_ring(&t->bell, from);
}

static bool poll(struct sl_executor *executor, struct sl_prediction *ret_prediction)
{
        return sl_mailbox_take(thread_of(executor)->outbox, ret_prediction);
}

static bool waiting(struct sl_executor *executor)
{
        return sl_mailbox_waiting(thread_of(executor)->outbox);
}

static void stop(struct sl_executor *executor)
{
        struct thread_executor *t = thread_of(executor);

        if (t->running) {
                sl_mailbox_put(t->inbox, &(uint32_t){SHUT_DOWN});
                sl_bell_ring(&t->bell, NULL);
                pthread_join(t->thread, NULL);
        }
        sl_job_runner_free(t->runner);
        sl_job_runner_free(t->trial.runner);
        sl_wait_free(t->wait);
        sl_mailbox_free(t->inbox);
        sl_mailbox_free(t->outbox);
        free(t->memory);
        free(t);
}

static const struct sl_executor_class class = {.name = "thread", .give = give, .poll = poll, .waiting = waiting, .stop = stop};

/* Slots and the shut-down message; an answer to each piece. */
static int make_boxes(struct thread_executor *t)
{
        const struct sl_plan_info *info = sl_plan_info(t->options.plan);
        int r = sl_mailbox_new(SL_EXECUTOR_JOBS_MAX + 1, sizeof(uint32_t), &t->inbox);

        if (r == 0)
                r = sl_mailbox_new(SL_EXECUTOR_JOBS_MAX * SL_JOB_PIECES_MAX, sizeof(struct sl_prediction), &t->outbox);
        if (r < 0)
                return r;
        t->memory = calloc(SL_EXECUTOR_JOBS_MAX, sl_job_bytes(info->n_inputs, info->n_outputs));
        if (!t->memory)
                return -ENOMEM;
        sl_executor_init(&t->common, t->memory, info->n_inputs, info->n_outputs);
        for (uint32_t i = 0; i < SL_EXECUTOR_JOBS_MAX; i++)
                t->jobs[i] = t->common.slots[i].job;
        return 0;
}

int sl_thread_executor_new(
        const struct sl_thread_executor_options *options, struct sl_executor **ret_executor, struct sl_error *error)
{
        struct thread_executor *t = aligned_alloc(SL_LINE_PAIR_BYTES, sl_align_up(sizeof(*t), SL_LINE_PAIR_BYTES));
        int r;

        if (!t)
                return sl_error_set(error, ENOMEM, "no memory for a worker");
        memset(t, 0, sizeof(*t));
        t->options = *options;
        t->common.class = &class;
        t->common.batch_max = sl_job_runner_batch_max(sl_plan_info(options->plan), options->batch_max);
        t->common.let = options->let;
        t->common.stats = options->stats;
        r = make_boxes(t);
        if (r == 0)
                r = start_thread(t);
        if (r < 0) {
                stop(&t->common);
                return sl_error_set(error, -r, "cannot start worker thread %s: %s", options->name, strerror(-r));
        }
        *ret_executor = &t->common;
        return 0;
}

struct sl_inline_trial sl_thread_executor_take_trial(struct sl_executor *executor)
{
        struct thread_executor *t = thread_of(executor);
        struct sl_inline_trial trial = t->trial;

        t->trial = (struct sl_inline_trial){0};
        return trial;
}
