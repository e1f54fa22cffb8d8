/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_executor.h"

#include "accumulator.h"
#include "base/assert.h"
#include "base/background.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "job_runner.h"
#include "let.h"
#include "mailbox.h"
#include "stats.h"
#include "team.h"
#include "thread_state.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static struct thread_executor *thread_of(struct sl_executor *executor)
{
        return (struct thread_executor *)((char *)executor - offsetof(struct thread_executor, common));
}

/* Core number @i of them, and round. */
static int core_at(const cpu_set_t *cores, uint32_t i)
{
        uint32_t left = i % (uint32_t)CPU_COUNT(cores);
        int core = 0;

        while (!CPU_ISSET(core, cores) || left-- > 0)
                core++;
        return core;
}

/* Those before the worker's team have @taken of @n. When they have been round, teams begin one further: their owners differ. */
static uint32_t first_core(uint32_t taken, uint32_t n)
{
        return taken + taken / n;
}

/* The thread stays on the first of its team's cores from here on. Without a team the instance computes alone. */
static void join_team(struct thread_executor *t)
{
        uint32_t n = t->options.threads;
        uint64_t spin_ns = t->options.team_spin_ns;
        cpu_set_t cores = t->options.let->cpus, own;
        int cpus[SL_TEAM_MEMBERS_MAX];
        uint32_t first;

        if (n <= 1 || (CPU_COUNT(&cores) == 0 && sched_getaffinity(0, sizeof(cores), &cores) < 0))
                return;
        n = (uint32_t)CPU_COUNT(&cores) < n ? (uint32_t)CPU_COUNT(&cores) : n;
        if (n < 2)
                return;
        first = first_core(t->options.nth * n, (uint32_t)CPU_COUNT(&cores));
        for (uint32_t i = 0; i < n; i++)
                cpus[i] = core_at(&cores, first + i);
        if (sl_team_new(&(struct sl_team_options){.size = n, .cpus = cpus, .spin_ns = spin_ns ? spin_ns : SL_TEAM_SPIN_NS},
                    &t->team, NULL) < 0)
                return;
        if (sl_instance_use_team(sl_job_runner_instance(t->prepared.runner), t->team, NULL) < 0) {
                t->team = sl_team_free(t->team);
                return;
        }
        CPU_ZERO(&own);
        CPU_SET(cpus[0], &own);
        (void)sched_setaffinity(0, sizeof(own), &own);
        t->common.cores = n;
}

/* All that takes time: kernels, memory, and the first run. */
static int prepare(struct thread_executor *t)
{
        const struct sl_prepare_options options = {
                .plan = t->options.plan,
                .regions = t->options.regions,
                .accumulator = t->options.accumulator,
                .batch_max = t->common.batch_max,
                .inline_ns = t->options.inline_ns,
                .inline_bound_ns = t->options.inline_bound_ns,
                .first_ns = t->options.first_ns,
                .warmup_ns = t->options.warmup_ns,
                .fake = t->options.fake,
                .growth = t->options.growth,
                .stats = t->options.stats,
                .called = &t->called,
        };
        int r = sl_prepared_make(&t->prepared, &options);

        if (r < 0)
                return r;
        join_team(t);
        return sl_prepared_run_first(&t->prepared);
}

/* Where the worker may run nothing to become warm, faulting its memory would disturb others as well: it is done before "ready". */
static int prepare_in_background(struct thread_executor *t)
{
        int r;

        sl_background_thread(true);
        r = prepare(t);
        while (r == 0 && !t->options.warmup_ns && sl_warm_up_next(&t->prepared.warm_up))
                ;
        sl_background_thread(false);
        return r;
}

/* From where it has started to where it runs; one with a team is there. */
static void move_in(const struct thread_executor *t)
{
        const cpu_set_t *cores = &t->options.let->cpus;

        if (!t->team && CPU_COUNT(cores) && !CPU_EQUAL(cores, &t->options.start_cores))
                (void)sched_setaffinity(0, sizeof(*cores), cores);
}

static int start(struct thread_executor *t)
{
        int r = sl_wait_new(t->options.wait, &t->wait, NULL);

        if (r < 0)
                return r;
        t->bell.wait = t->wait;
        r = t->options.background ? prepare_in_background(t) : prepare(t);
        move_in(t);
        return r;
}

/* Another thread of the let is about to leave it, or to ring its bell: T2. */
static bool is_held(struct thread_executor *t)
{
        return !sl_claim_is_free(&t->claim) || atomic_load_explicit(&t->tellers, memory_order_acquire);
}

/* What takes time to free is freed here, where nobody waits. */
static void take_down(struct thread_executor *t)
{
        while (is_held(t))
                sched_yield();
        sl_prepared_free(&t->prepared);
        t->team = sl_team_free(t->team);
}

static void *thread_main(void *argument)
{
        struct thread_executor *t = argument;
        int r = start(t);

        sl_executor_say(&t->common, r < 0 ? r : SL_EXECUTOR_READY, t->prepared.warm_up.first_ns);
        sl_bell_ring(t->options.starter, t->wait);
        if (r == 0)
                sl_thread_loop(t);
        take_down(t);
        return NULL;
}

static void give(struct sl_executor *executor, uint32_t slot, struct sl_wait *from)
{
        struct thread_executor *t = thread_of(executor);
        struct sl_ready_queue *ready = &t->options.let->ready;
        bool is_light = t->jobs[slot]->is_light;

        sl_warm_up_call(&t->called);
        if (sl_mailbox_put(t->inbox, &slot) < 0)
                SL_ASSERT(!"the inbox has room for each slot");
        if (!sl_claim_give(&t->claim)) {
                if (executor->n_background)
                        sl_thread_recall(t);
                return;
        }
        if (!is_light || !sl_ready_put(ready, t))
                sl_thread_tell(t, from);
        else if (sl_ready_awake(ready) < (int32_t)t->options.let->turns.at_once) /* A1 */
                sl_thread_ring(t, from);
}

static bool poll(struct sl_executor *executor, struct sl_prediction *ret_prediction)
{
        return sl_mailbox_take(thread_of(executor)->outbox, ret_prediction);
}

static bool waiting(struct sl_executor *executor)
{
        return sl_mailbox_waiting(thread_of(executor)->outbox);
}

static void quit(struct thread_executor *t)
{
        if (atomic_exchange_explicit(&t->quits, true, memory_order_seq_cst))
                return;
        sl_thread_ring(t, NULL);
}

static bool leave(struct sl_executor *executor)
{
        struct thread_executor *t = thread_of(executor);

        if (t->running) {
                quit(t);
                t->running = pthread_tryjoin_np(t->thread, NULL) != 0;
        }
        return !t->running && !is_held(t);
}

static void stop(struct sl_executor *executor)
{
        struct thread_executor *t = thread_of(executor);

        if (t->running) {
                quit(t);
                pthread_join(t->thread, NULL);
        }
        while (is_held(t))
                sched_yield();
        sl_wait_free(t->wait);
        sl_mailbox_free(t->inbox);
        sl_mailbox_free(t->outbox);
        free(t->memory);
        free(t);
}

static const struct sl_executor_class class = {
        .name = "thread", .gives_way = true, .give = give, .poll = poll, .waiting = waiting, .leave = leave, .stop = stop};

/* Slots; an answer to each piece. */
static int make_boxes(struct thread_executor *t)
{
        const struct sl_plan_info *info = sl_plan_info(t->options.plan);
        int r = sl_mailbox_new(SL_EXECUTOR_JOBS_MAX, sizeof(uint32_t), &t->inbox);

        if (r == 0)
                r = sl_mailbox_new(SL_EXECUTOR_JOBS_MAX * SL_JOB_PIECES_MAX, sizeof(struct sl_prediction), &t->outbox);
        if (r < 0)
                return r;
        t->memory = calloc(SL_EXECUTOR_JOBS_MAX, sl_job_bytes(info->n_inputs, info->n_outputs));
        if (!t->memory)
                return -ENOMEM;
        sl_executor_init(&t->common, t->memory, SL_EXECUTOR_JOBS_MAX, info->n_inputs, info->n_outputs);
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
                r = sl_thread_start(&options->start_cores, options->name, thread_main, t, &t->thread);
        t->running = r == 0;
        if (r < 0) {
                stop(&t->common);
                return sl_error_set(error, -r, "cannot start worker thread %s: %s", options->name, strerror(-r));
        }
        *ret_executor = &t->common;
        return 0;
}

struct sl_inline_trial sl_thread_executor_take_trial(struct sl_executor *executor)
{
        return sl_prepared_take_trial(&thread_of(executor)->prepared);
}
