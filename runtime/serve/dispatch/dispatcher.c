/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatcher.h"

#include "accumulator.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/relax.h"
#include "base/thread.h"
#include "base/urgent.h"
#include "broadcaster.h"
#include "cancel.h"
#include "command.h"
#include "completion.h"
#include "cores.h"
#include "decision_log.h"
#include "dispatcher_state.h"
#include "doorbell.h"
#include "event.h"
#include "executor.h"
#include "gauges.h"
#include "harvest.h"
#include "intake.h"
#include "lines.h"
#include "listening.h"
#include "settle.h"
#include "spin_advice.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Passes without an entry after which a queue pair is polled rarely. */
#define COLD_AFTER_PASSES  4096u
/* How exact deadlines of waiting requests are, and wake-ups that were put off. */
#define DEADLINE_STEP_NS   (500 * SL_NS_PER_US)
/* Every sleep has a limit as an insurance against a wake-up that is lost in the kernel. */
#define SLEEP_LIMIT_NS     (1000 * SL_NS_PER_MS)
#define TOKEN_BELL         1u
/* So rarely a dispatcher on crowded cores listens to its clients. */
#define LISTEN_STEP_NS     (500 * SL_NS_PER_US)
#define CLOCK_EVERY_PASSES 64u
/* While nothing is in flight the clock is read so rarely for the advice about spinning. */
#define ADVISE_PASSES      1024u
#define NICENESS           (-10)
#define COMMANDS           64u

static void heat(struct sl_dispatcher *d, uint32_t cold_index)
{
        struct sl_queue *queue = d->cold[cold_index];

        d->cold[cold_index] = d->cold[--d->n_cold];
        queue->idle_passes = 0;
        d->hot[d->n_hot++] = queue;
}

static void cool(struct sl_dispatcher *d, uint32_t hot_index)
{
        struct sl_queue *queue = d->hot[hot_index];

        if (queue->waking.since_ns)
                sl_waking_look(d, queue);

        d->hot[hot_index] = d->hot[--d->n_hot];
        d->cold[d->n_cold++] = queue;
}

/*
 * A queue pair with requests in flight stays hot: its cancellations are looked at in every pass. Each pass begins with another one:
 * where there is room for few more requests, who is looked at first gets it.
 */
static uint32_t poll_hot(struct sl_dispatcher *d)
{
        uint32_t found = 0, i = d->hot_turn;

        d->hot_turn = i + 1 < d->n_hot ? i + 1 : 0;
        for (uint32_t left = d->n_hot; left > 0; left--, i++) {
                if (i >= d->n_hot)
                        i = 0;
                struct sl_queue *queue = d->hot[i];
                uint32_t n = sl_intake(d, queue);

                found += n;
                if (queue->in_flight) {
                        found += sl_give_up_cancelled(d, queue);
                        queue->idle_passes = 0;
                } else if (n) {
                        queue->idle_passes = 0;
                } else if (++queue->idle_passes > COLD_AFTER_PASSES) {
                        cool(d, i--); /* the last one came in its place */
                }
        }
        return found;
}

static uint32_t poll_cold(struct sl_dispatcher *d, uint32_t index)
{
        uint32_t n = sl_intake(d, d->cold[index]);

        if (n || d->cold[index]->in_flight)
                heat(d, index);
        return n;
}

/* One cold queue pair in each pass; all of them after a sleep. */
static uint32_t poll_one_cold(struct sl_dispatcher *d)
{
        if (d->n_cold == 0)
                return 0;
        d->cold_turn = d->cold_turn + 1 < d->n_cold ? d->cold_turn + 1 : 0;
        return poll_cold(d, d->cold_turn);
}

static uint32_t poll_all_cold(struct sl_dispatcher *d)
{
        uint32_t found = 0;

        for (uint32_t i = d->n_cold; i-- > 0;)
                found += poll_cold(d, i);
        return found;
}

static uint32_t broadcast(struct sl_dispatcher *d)
{
        return sl_broadcaster_run(&d->broadcasts, &(struct sl_broadcast){.accumulator = d->options.accumulator,
                                                          .busy = &d->busy,
                                                          .limit = {.ns = d->options.inline_ns, .alone = d->budget.keeps},
                                                          .now_ns = d->pass.now_ns});
}

static uint32_t advance_once(struct sl_dispatcher *d)
{
        uint32_t done, jobs;

        if (d->options.decisions)
                sl_decision_log_pass(d->options.decisions, d->pass.now_ns);
        done = broadcast(d);
        if (d->busy.has_new)
                sl_harvest_new(d);

        struct sl_schedule schedule = {
                .models = d->busy.first,
                .bundles = d->bundles,
                .run = ++d->scheduler_runs,
                .budget = &d->budget,
                .accumulator = d->options.accumulator,
                .from = d->wait,
                .now_ns = d->pass.now_ns,
                .ret_next_ns = &d->next_ns,
                .ret_full = &d->full,
                .decisions = d->options.decisions,
        };
        jobs = sl_scheduler_run(&schedule);
        d->given += jobs - d->budget.jobs;
        return done + jobs;
}

/* Broadcasts and schedules; what it computes itself makes room for more. */
static uint32_t advance(struct sl_dispatcher *d)
{
        uint32_t done = 0;

        d->budget.limit_ns = d->options.inline_ns;
        d->budget.left_ns = d->options.inline_ns ? SL_INLINE_PASS_NS : 0;
        d->budget.kept = false;
        d->budget.keeps = d->options.inline_ns && sl_inline_is_alone(d->in_flight, d->options.cores, d->waiting);
        do {
                done += advance_once(d);
                if (!d->budget.jobs)
                        break;
                d->pass.now_ns = d->budget.now_ns;
                sl_harvest_inline(d);
        } while (d->in_flight);
        return done;
}

static void check_deadlines(struct sl_dispatcher *d, uint64_t now)
{
        if (!d->with_deadline || now - d->deadlines_checked_ns < DEADLINE_STEP_NS)
                return;
        d->deadlines_checked_ns = now;
        sl_give_up_expired(d, now);
}

/* What is due at a time. */
static void look_at_clock(struct sl_dispatcher *d, uint64_t now)
{
        check_deadlines(d, now);
        sl_spin_advice_give(d, now);
        sl_gauges_show(d, now);
        d->untimed_passes = 0;
}

/* What is left after the broadcaster's and the scheduler's turn: for a worker, or until a policy gives it out. */
static bool work_waits(const struct sl_dispatcher *d)
{
        if (d->broadcasts.first)
                return true;
        for (const struct sl_model *model = d->busy.first; model; model = model->next_busy)
                if (sl_scheduler_waits(&model->scheduler))
                        return true;
        return false;
}

static bool all_compute(const struct sl_ensemble *ensemble)
{
        for (uint32_t i = 0; i < ensemble->assembly.n_members; i++)
                if (!ensemble->members[i]->workers.n || !ensemble->members[i]->samples_given)
                        return false;
        return true;
}

/* Workers have all that they can take. What is in the background counts as nothing; what waits where there is none, or for a
 * policy's time, keeps nobody busy. */
static bool workers_are_full(const struct sl_dispatcher *d)
{
        if (d->full)
                return true;
        for (struct sl_broadcast_queue *queue = d->broadcasts.first; queue; queue = queue->next)
                if (sl_fair_urgent_samples(queue->waiting) && all_compute(sl_ensemble_of(queue)))
                        return true;
        return false;
}

static uint32_t pass(struct sl_dispatcher *d)
{
        uint32_t found = poll_hot(d) + poll_one_cold(d) + sl_commands(d);

        sl_counter_add(&d->stats->passes, 1);

        d->saturated = false;
        if (d->in_flight) {
                sl_pass_now(&d->pass);
                found += sl_harvest(d);
                found += advance(d);
                look_at_clock(d, d->pass.now_ns);
                d->saturated = d->crowded && !d->budget.kept && workers_are_full(d);
        } else if (++d->untimed_passes == ADVISE_PASSES) {
                look_at_clock(d, sl_clock_ns());
        }
        sl_clients_wake(d);
        if (d->unsettled)
                sl_settle(d);
        if (d->n_watched)
                sl_lines_show_waits(d);
        sl_pass_end(&d->pass);
        return found;
}

/*
 * Of the only request in flight, a worker that has answered a part of a segment need not wake the dispatcher when nothing waits:
 * that would take the core from those who compute the rest. Of several requests each answer is heard, as others depend on it.
 */
static void bell_sleep(struct sl_dispatcher *d)
{
        if (d->unsettled || d->in_flight > 1 || work_waits(d))
                sl_bell_sleep(&d->bell);
        else
                sl_bell_sleep_for_ends(&d->bell);
        sl_workers_listen(d, true);
}

static void bell_awake(struct sl_dispatcher *d)
{
        sl_bell_awake(&d->bell);
        sl_workers_listen(d, false);
}

static bool outbox_waiting(const struct sl_model *model)
{
        for (uint32_t i = 0; i < sl_workers_all(&model->workers); i++)
                if (sl_executor_waiting(model->workers.list[i]))
                        return true;
        return false;
}

static bool anything_from_threads(const struct sl_dispatcher *d)
{
        for (const struct sl_model *model = d->busy.first; model; model = model->next_busy)
                if (outbox_waiting(model))
                        return true;
        for (const struct sl_bundle *bundle = d->bundles; bundle; bundle = bundle->next)
                if (sl_bundle_waiting(bundle))
                        return true;
        return sl_mailbox_waiting(d->commands);
}

/* W2 of the doorbell protocol: everything that somebody may ring for. */
static bool anything_waiting(const struct sl_dispatcher *d)
{
        for (uint32_t i = 0; i < d->n_hot; i++)
                if (sl_intake_waiting(d->hot[i]))
                        return true;
        for (uint32_t i = 0; i < d->n_cold; i++)
                if (sl_intake_waiting(d->cold[i]))
                        return true;
        return anything_from_threads(d);
}

/* Does somebody else want the dispatcher's core: a worker, or clients that find no other? */
static bool shares_its_core(const struct sl_dispatcher *d)
{
        return d->shares_core || (d->options.cores && d->waiting > d->options.cores);
}

/*
 * When more threads want to run than there are cores, each wake-up of the dispatcher takes time from somebody who computes. As long
 * as workers have all that they can take, little is won by looking at once at what a client sends: who comes soon after another is
 * looked at when a worker or control rings, or LISTEN_STEP_NS after that other one. Clients are not told that the dispatcher
 * sleeps, so that none rings. Return: false: it is time to listen.
 */
static bool doze(struct sl_dispatcher *d)
{
        struct sl_wait_event events[16];
        uint64_t since_ns = d->pass.now_ns - d->listened_ns;

        if (since_ns >= LISTEN_STEP_NS) {
                d->listened_ns = d->pass.now_ns;
                return false;
        }
        bell_sleep(d);
        if (!anything_from_threads(d))
                sl_wait_for(d->wait, events, 16, LISTEN_STEP_NS - since_ns);
        bell_awake(d);
        return true;
}

/*
 * Nobody rings for what is due at a time: a deadline, the wake-up of a client that sleeps on for a moment (completion.c), a policy
 * that waits, or room for what is to be told to control.
 */
static uint64_t sleep_limit_ns(const struct sl_dispatcher *d)
{
        uint64_t limit_ns = d->with_deadline || d->told || d->unsettled ? DEADLINE_STEP_NS : SLEEP_LIMIT_NS;

        if (!d->in_flight || d->next_ns == UINT64_MAX)
                return limit_ns;
        uint64_t now_ns = sl_clock_ns(), left_ns = d->next_ns > now_ns ? d->next_ns - now_ns : 0;

        return left_ns < limit_ns ? left_ns : limit_ns;
}

static void sleep_until_rung(struct sl_dispatcher *d)
{
        struct sl_wait_event events[16];

        sl_dispatcher_sleep(d->options.line); /* W1 */
        bell_sleep(d);
        if (!anything_waiting(d)) { /* W2 */
                sl_counter_add(&d->stats->sleeps, 1);
                int n = sl_wait_for(d->wait, events, 16, sleep_limit_ns(d));
                sl_counter_add(&d->stats->doorbells, n > 0);
        }
        bell_awake(d);
        sl_dispatcher_wake(d->options.line);
}

/*
 * Looking goes on for spin_ns after the last thing found; the clock is read only now and then. While somebody who computes, or a
 * client, may want this core it does not go on at all: what comes wakes the dispatcher, and the other gives way then.
 */
struct idle {
        uint32_t passes;
        uint64_t since_ns;
};

static bool keep_looking(const struct sl_dispatcher *d, struct idle *idle)
{
        if (d->options.spin_ns == 0 || (d->in_flight && shares_its_core(d)))
                return false;
        if (idle->passes++ % CLOCK_EVERY_PASSES)
                return true;
        uint64_t now = sl_clock_ns();
        if (idle->passes == 1)
                idle->since_ns = now;
        return now - idle->since_ns < d->options.spin_ns;
}

/* A wait belongs to the thread that makes it. */
static int make_wait(struct sl_dispatcher *d, struct sl_error *error)
{
        int r = sl_wait_new(d->options.wait, &d->wait, error);

        d->bell.wait = d->wait;
        d->bell.token = TOKEN_BELL;
        return r;
}

struct start {
        struct sl_dispatcher *dispatcher;
        struct sl_error *error;
        int result;
        sem_t done;
};

static void *dispatcher_main(void *argument)
{
        struct start *start = argument;
        struct sl_dispatcher *d = start->dispatcher;
        struct idle idle = {0};

        start->result = make_wait(d, start->error);
        sem_post(&start->done); /* @start is gone from here on */
        if (!d->wait)
                return NULL;
        sl_urgent_thread(NICENESS); /* a worker on the same core gives way at once when it wakes */
        sl_lateness_init(&d->lateness);
        while (!d->quit) {
                uint32_t found = pass(d);

                if (d->saturated && shares_its_core(d) && doze(d))
                        continue;
                if (found) {
                        idle.passes = 0;
                } else if (keep_looking(d, &idle)) {
                        sl_relax();
                } else {
                        sl_spin_advice_give(d, sl_clock_ns());
                        sl_gauges_show_before_sleep(d);
                        sleep_until_rung(d);
                        poll_all_cold(d);
                        idle.passes = 0;
                }
        }
        sl_lateness_deinit(&d->lateness);
        return NULL;
}

static int allocate(struct sl_dispatcher *d, struct sl_error *error)
{
        size_t queues = (size_t)d->options.clients_max * SL_QUEUES_MAX;
        int r;

        d->hot = calloc(queues, sizeof(*d->hot));
        d->cold = calloc(queues, sizeof(*d->cold));
        r = sl_mailbox_new(COMMANDS, sizeof(struct sl_command), &d->commands);
        if (r == 0)
                r = sl_mailbox_new(
                        sl_events_reserved(d->options.clients_max) + SL_WORKERS_MAX, sizeof(struct sl_event), &d->events);
        if (r == 0)
                r = sl_recorder_init(&d->recorder, d->options.stats);
        if (r < 0 || !d->hot || !d->cold)
                return sl_error_set(error, ENOMEM, "no memory for the dispatcher's tables of %zu queue pairs", queues);
        return 0;
}

static int start_thread(struct sl_dispatcher *d, struct sl_error *error)
{
        struct start start = {.dispatcher = d, .error = error};
        int r;

        sem_init(&start.done, 0, 0);
        r = sl_thread_start(&d->options.cpus, "sl-dispatcher", dispatcher_main, &start, &d->thread);
        if (r < 0)
                return sl_error_set(error, -r, "cannot start the dispatcher thread: %s", strerror(-r));
        d->running = true;
        while (sem_wait(&start.done) < 0)
                ;
        sem_destroy(&start.done);
        return start.result;
}

/* Without random bits the clock tells one runtime from another. */
static uint64_t begin_origins(void)
{
        uint64_t origin;

        return getrandom(&origin, sizeof(origin), GRND_NONBLOCK) == sizeof(origin) ? origin : sl_clock_ns();
}

int sl_dispatcher_new(const struct sl_dispatcher_options *options, struct sl_dispatcher **ret_dispatcher, struct sl_error *error)
{
        struct sl_dispatcher *d = aligned_alloc(SL_LINE_PAIR_BYTES, sl_align_up(sizeof(*d), SL_LINE_PAIR_BYTES));
        int r;

        if (!d)
                return sl_error_set(error, ENOMEM, "no memory for the dispatcher");
        memset(d, 0, sizeof(*d));
        d->options = *options;
        d->origins = begin_origins();
        d->broadcasts.decisions = options->decisions;
        d->stats = sl_stats_dispatcher(options->stats, 0);
        if (CPU_COUNT(&options->cpus) == 1) {
                sl_stats_dispatcher_pinned(options->stats, 0, sl_first_core(&options->cpus));
                sl_dispatcher_bound(options->line, sl_first_core(&options->cpus));
        }
        r = allocate(d, error);
        if (r == 0)
                r = start_thread(d, error);
        if (r < 0) {
                sl_dispatcher_free(d);
                return r;
        }
        *ret_dispatcher = d;
        return 0;
}

void sl_dispatcher_stop(struct sl_dispatcher *d)
{
        if (!d || !d->running)
                return;
        sl_dispatcher_command(d, &(struct sl_command){.kind = SL_COMMAND_QUIT});
        pthread_join(d->thread, NULL);
        d->running = false;
}

struct sl_dispatcher *sl_dispatcher_free(struct sl_dispatcher *d)
{
        if (!d)
                return NULL;
        sl_dispatcher_stop(d);
        sl_wait_free(d->wait);
        sl_mailbox_free(d->commands);
        sl_mailbox_free(d->events);
        sl_recorder_deinit(&d->recorder);
        free(d->hot);
        free(d->cold);
        free(d);
        return NULL;
}

void sl_dispatcher_command(struct sl_dispatcher *d, const struct sl_command *command)
{
        if (!d->running)
                return;
        while (sl_mailbox_put(d->commands, command) == -EAGAIN) {
                sl_bell_ring(&d->bell, NULL);
                sl_relax();
        }
        sl_bell_ring(&d->bell, NULL);
}

bool sl_dispatcher_event(struct sl_dispatcher *d, struct sl_event *ret_event)
{
        return sl_mailbox_take(d->events, ret_event);
}

struct sl_bell *sl_dispatcher_bell(struct sl_dispatcher *d)
{
        return &d->bell;
}
