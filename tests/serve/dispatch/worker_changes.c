/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that join, leave and die while a dispatcher serves: two clients, an ensemble of two members whose mean is the input, and
 * workers that copy. The test's own thread is the control thread.
 */
#include "base/clock.h"
#include "base/error.h"
#include "dispatcher.h"
#include "doorbell.h"
#include "executor.h"
#include "fixture.h"
#include "let.h"
#include "mailbox.h"
#include "ring.h"
#include "sender.h"
#include "stats.h"
#include "user.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WIDTH       4u
#define SEGMENT     16u
#define SAMPLES     40u
#define STOP        SL_EXECUTOR_JOBS_MAX
#define COPIERS_MAX 6u
/* What has to have happened, however busy the machine is. */
#define SERVED_MIN  100u
#define GONE_MIN    10u
#define HANG_NS     (120 * SL_NS_PER_SECOND)

static uint32_t roll(uint32_t *dice, uint32_t sides)
{
        *dice = *dice * 1664525u + 1013904223u;
        return (*dice >> 16) % sides;
}

/* ---- workers ---- */

/* Its prediction is its input. One that is to die answers with failures from then on, as an executor whose process is gone does. */
struct copier {
        struct sl_executor common;
        struct fixture *f;
        struct sl_bell *dispatcher;
        struct sl_mailbox *inbox, *outbox;
        struct sl_job *jobs[SL_EXECUTOR_JOBS_MAX];
        struct sl_worker_stats *stats;
        void *memory;
        uint32_t dice;
        _Atomic bool dead;
        pthread_t thread;
};

static int copy_piece(struct copier *c, struct sl_job *job, uint32_t i)
{
        const struct sl_piece *piece = &job->pieces[i];
        const struct sl_place *input = sl_job_inputs(job, i), *output = sl_job_outputs(job, i);
        int verdict = atomic_load_explicit(sl_accumulator_verdict(c->f->accumulator, piece->segment), memory_order_acquire);

        if (verdict || c->dead)
                return verdict ? verdict : -EIO;
        for (uint32_t k = 0; k < piece->samples; k++)
                memcpy((char *)sl_regions_at(c->f->regions, output) + k * output->stride,
                        (char *)sl_regions_at(c->f->regions, input) + k * input->stride, WIDTH * sizeof(float));
        return 0;
}

static void copy_job(struct copier *c, struct sl_job *job)
{
        uint32_t n = job->n_pieces; /* with the last answer the job is the dispatcher's again */

        if (roll(&c->dice, 4) == 0)
                usleep(roll(&c->dice, 300));
        for (uint32_t i = 0; i < n; i++) {
                struct sl_prediction prediction = {.piece = i, .status = copy_piece(c, job, i), .batches = 1, .busy_ns = 1000};

                prediction.job_samples = job->pieces[i].samples;
                sl_sender_deliver(c->f->accumulator, job, c->stats, &prediction);
                cr_assert_eq(sl_mailbox_put(c->outbox, &prediction), 0);
        }
        sl_bell_ring(c->dispatcher, NULL);
}

static void *copier_main(void *argument)
{
        struct copier *c = argument;
        uint32_t slot = 0;

        while (slot != STOP) {
                if (!sl_mailbox_take(c->inbox, &slot))
                        sched_yield();
                else if (slot != STOP)
                        copy_job(c, c->jobs[slot]);
        }
        return NULL;
}

static void copier_give(struct sl_executor *executor, uint32_t slot, struct sl_wait *from)
{
        (void)from;
        cr_assert(!executor->ended);
        cr_assert_eq(sl_mailbox_put(((struct copier *)executor)->inbox, &slot), 0);
}

static bool copier_poll(struct sl_executor *executor, struct sl_prediction *ret_prediction)
{
        struct copier *c = (struct copier *)executor;

        executor->ended |= c->dead;
        return sl_mailbox_take(c->outbox, ret_prediction);
}

static bool copier_waiting(struct sl_executor *executor)
{
        return sl_mailbox_waiting(((struct copier *)executor)->outbox);
}

static void copier_stop(struct sl_executor *executor)
{
        struct copier *c = (struct copier *)executor;

        sl_mailbox_put(c->inbox, &(uint32_t){STOP});
        pthread_join(c->thread, NULL);
        cr_assert(!sl_mailbox_waiting(c->outbox), "all that it was given has been heard");
        sl_mailbox_free(c->inbox);
        sl_mailbox_free(c->outbox);
        free(c->memory);
        free(c);
}

static const struct sl_executor_class copier_class = {
        .name = "copier", .give = copier_give, .poll = copier_poll, .waiting = copier_waiting, .stop = copier_stop};

/* ---- the dispatcher, and what it serves ---- */

struct scene {
        struct fixture *f;
        struct sl_dispatcher *dispatcher;
        struct sl_dispatcher_line *line;
        struct sl_stats *stats;
        struct sl_bell control; /* nobody sleeps */
        struct sl_user user;
        struct sl_executor *workers[2][COPIERS_MAX]; /* of each model, that are not gone */
        uint32_t n_workers[2];
        struct sl_worker_stats worker_stats; /* of all */
        struct sl_let lets[2];               /* one for many, one for one that many have nevertheless */
        uint32_t dice, n_gone, n_model_gone, n_retired, n_channel_gone;
};

static void command(struct scene *s, enum sl_command_kind kind, void *pointer, struct sl_executor *worker)
{
        sl_dispatcher_command(s->dispatcher, &(struct sl_command){.kind = kind, .pointer = pointer, .worker = worker});
}

static void make_channel(struct scene *s)
{
        struct sl_channel *channel = s->f->channel;

        channel->user = &s->user;
        channel->doorbell_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        cr_assert_eq(
                sl_stats_client_add(s->stats, &(struct sl_client_stats){.id = 1, .pid = 1, .label = "test"}, &channel->stats), 0);
        command(s, SL_COMMAND_ADD_CHANNEL, channel, NULL);
}

static void make_stats(struct scene *s)
{
        char name[64];
        const struct sl_stats_options options = {.name = name, .directory = "/tmp"};
        struct sl_error error;

        snprintf(name, sizeof(name), "test-worker-changes-%d", getpid());
        cr_assert_eq(sl_stats_create(&options, &s->stats, &error), 0, "%s", error.text);
        cr_assert_eq(sl_stats_model_add(s->stats, "test", &s->f->ensemble->counting, &error), 0, "%s", error.text);
}

static struct scene *scene_new(uint32_t dice)
{
        struct scene *s = aligned_alloc(SL_LINE_PAIR_BYTES, sl_align_up(sizeof(*s), SL_LINE_PAIR_BYTES));
        struct sl_dispatcher_options options = {.clients_max = 4, .client_in_flight_max = 64, .user_in_flight_max = 64};
        struct sl_error error;

        memset(s, 0, sizeof(*s));
        s->dice = dice;
        s->lets[0].turns.at_once = s->lets[1].turns.at_once = 1;
        s->lets[1].turns.for_one = true;
        s->f = fixture_new(2, SL_RULE_MEAN, WIDTH, WIDTH, SEGMENT);
        s->line = aligned_alloc(128, sizeof(*s->line));
        memset(s->line, 0, sizeof(*s->line));
        make_stats(s);
        options.accumulator = s->f->accumulator;
        options.line = s->line;
        options.stats = s->stats;
        options.control = &s->control;
        cr_assert_eq(sl_dispatcher_new(&options, &s->dispatcher, &error), 0, "%s", error.text);
        for (int m = 0; m < 2; m++) {
                s->f->models[m].workers.n = 0;
                s->f->models[m].slice_ns = SL_NS_PER_MS;
                command(s, SL_COMMAND_ADD_MODEL, &s->f->models[m], NULL);
        }
        command(s, SL_COMMAND_SERVE, s->f->ensemble, NULL);
        make_channel(s);
        return s;
}

static void join_worker(struct scene *s, uint32_t m)
{
        struct copier *c = calloc(1, sizeof(*c));

        c->f = s->f;
        c->dispatcher = sl_dispatcher_bell(s->dispatcher);
        c->dice = ++s->dice;
        c->stats = &s->worker_stats;
        c->memory = calloc(SL_EXECUTOR_JOBS_MAX, sl_job_bytes(1, 1));
        cr_assert_eq(sl_mailbox_new(SL_EXECUTOR_JOBS_MAX + 1, sizeof(uint32_t), &c->inbox), 0);
        cr_assert_eq(sl_mailbox_new(SL_EXECUTOR_JOBS_MAX * SL_JOB_PIECES_MAX, sizeof(struct sl_prediction), &c->outbox), 0);
        sl_executor_init(&c->common, c->memory, SL_EXECUTOR_JOBS_MAX, 1, 1);
        for (uint32_t i = 0; i < SL_EXECUTOR_JOBS_MAX; i++)
                c->jobs[i] = c->common.slots[i].job;
        c->common.class = &copier_class;
        c->common.let = &s->lets[roll(&s->dice, 2)];
        c->common.batch_max = 1u << roll(&s->dice, 6);
        cr_assert_eq(pthread_create(&c->thread, NULL, copier_main, c), 0);
        s->workers[m][s->n_workers[m]++] = &c->common;
        command(s, SL_COMMAND_ADD_WORKER, &s->f->models[m], &c->common);
}

static void gone(struct scene *s, const struct sl_event *event)
{
        uint32_t m = event->pointer == &s->f->models[1], i = 0;

        while (i < s->n_workers[m] && s->workers[m][i] != event->worker)
                i++;
        cr_assert_lt(i, s->n_workers[m], "of this model, and only once");
        s->workers[m][i] = s->workers[m][--s->n_workers[m]];
        s->n_gone++;
        sl_executor_free(event->worker);
}

static void hear(struct scene *s)
{
        struct sl_event event;

        while (sl_dispatcher_event(s->dispatcher, &event)) {
                if (event.kind == SL_EVENT_WORKER_GONE)
                        gone(s, &event);
                s->n_model_gone += event.kind == SL_EVENT_MODEL_GONE;
                s->n_retired += event.kind == SL_EVENT_ENSEMBLE_RETIRED;
                s->n_channel_gone += event.kind == SL_EVENT_CHANNEL_GONE;
                cr_assert_neq(event.kind, SL_EVENT_CHANNEL_BROKEN, "%s", event.text);
        }
}

static void hear_until(struct scene *s, const uint32_t *count, uint32_t n)
{
        for (uint64_t until_ns = sl_clock_ns() + HANG_NS; *count < n; usleep(1000)) {
                cr_assert_lt(sl_clock_ns(), until_ns, "an event has not come");
                hear(s);
        }
}

static void scene_free(struct scene *s)
{
        command(s, SL_COMMAND_WITHDRAW, NULL, NULL);
        hear_until(s, &s->n_retired, 1);
        for (int m = 0; m < 2; m++)
                command(s, SL_COMMAND_REMOVE_MODEL, &s->f->models[m], NULL);
        hear_until(s, &s->n_model_gone, 2);
        for (int m = 0; m < 2; m++)
                for (uint32_t i = 0; i < s->n_workers[m]; i++)
                        sl_executor_free(s->workers[m][i]);
        command(s, SL_COMMAND_REMOVE_CHANNEL, s->f->channel, NULL);
        hear_until(s, &s->n_channel_gone, 1);
        sl_dispatcher_free(s->dispatcher);
        for (int i = 0; i < 2; i++) {
                cr_expect_eq(s->lets[i].turns.n_workers, 0);
                for (uint32_t k = 0; k < SL_PRIORITIES; k++)
                        cr_expect_eq(s->lets[i].turns.running[k], 0);
        }
        fixture_free(s->f);
        sl_stats_free(s->stats);
        free(s->line);
        free(s);
}

/* ---- clients ---- */

/* Each has a queue pair; what is with a tag lies in the tag's part of the arena. */
struct client {
        struct scene *s;
        uint32_t number, dice, requests;
        struct sl_queue_map map;
        struct sl_submitter submitter;
        struct sl_reaper reaper;
        bool flying[8];
        uint32_t samples[8];
        uint32_t by_status[256]; /* of -status */
        atomic_bool was_served;  /* often enough */
        pthread_t thread;
};

static float *client_tensor(struct client *c, uint16_t tag, float *first)
{
        return first + ((size_t)(c->number * 8u + tag) * SAMPLES) * WIDTH;
}

static void describe(struct client *c, uint16_t tag, uint32_t samples)
{
        const float *region = c->s->f->inputs;
        struct sl_descriptor *descriptors = &c->map.descriptors[(size_t)tag * c->map.tensors];
        float *tensors[2] = {client_tensor(c, tag, c->s->f->inputs), client_tensor(c, tag, c->s->f->outputs)};

        for (uint32_t i = 0; i < samples * WIDTH; i++) {
                tensors[0][i] = (float)roll(&c->dice, 1000);
                tensors[1][i] = -1;
        }
        for (int i = 0; i < 2; i++)
                descriptors[i] = (struct sl_descriptor){.offset = (uint64_t)((char *)tensors[i] - (const char *)region),
                        .bytes = (uint64_t)samples * WIDTH * sizeof(float),
                        .dtype = SL_DTYPE_F32,
                        .rank = 2,
                        .dims = {samples, WIDTH}};
}

static void submit(struct client *c, uint16_t tag, uint64_t deadline_ns)
{
        struct sl_entry *entry = sl_submitter_slot(&c->submitter, &c->map);

        c->samples[tag] = 1 + roll(&c->dice, SAMPLES);
        c->flying[tag] = true;
        c->requests++;
        describe(c, tag, c->samples[tag]);
        atomic_store_explicit(&c->map.cancels[tag], 0, memory_order_relaxed);
        entry->priority = (uint8_t)roll(&c->dice, SL_PRIORITIES);
        entry->deadline_ns = deadline_ns;
        entry->samples = c->samples[tag];
        entry->tag = tag;
        entry->n_inputs = entry->n_outputs = 1;
        sl_submitter_publish(&c->submitter, &c->map);
        if (sl_dispatcher_sleeps(c->s->line))
                sl_doorbell_ring(c->s->f->channel->doorbell_fd);
}

static void cancel(struct client *c, uint16_t tag, uint32_t index)
{
        atomic_store_explicit(&c->map.cancels[tag], index + 1, memory_order_release);
        atomic_fetch_add_explicit(&c->map.request->cancellations, 1, memory_order_seq_cst);
        if (sl_dispatcher_sleeps(c->s->line))
                sl_doorbell_ring(c->s->f->channel->doorbell_fd);
}

/* Each request is completed once, and a result that is said to be there is whole. */
static void take_completion(struct client *c, const struct sl_completion *completion)
{
        uint16_t tag = completion->tag;
        int status = completion->status;

        cr_assert_lt(tag, 8);
        cr_assert(c->flying[tag], "tag %u is completed twice", tag);
        c->flying[tag] = false;
        cr_assert(status <= 0 && status > -256, "status %d", status);
        c->by_status[-status]++;
        if (status == 0)
                cr_assert_arr_eq(client_tensor(c, tag, c->s->f->inputs), client_tensor(c, tag, c->s->f->outputs),
                        c->samples[tag] * WIDTH * sizeof(float));
}

static bool reap(struct client *c)
{
        const struct sl_completion *completion = sl_reaper_peek(&c->reaper, &c->map);

        if (!completion)
                return false;
        take_completion(c, completion);
        sl_reaper_advance(&c->reaper);
        sl_reaper_publish(&c->reaper, &c->map);
        return true;
}

static uint32_t flying(const struct client *c)
{
        uint32_t n = 0;

        for (int tag = 0; tag < 8; tag++)
                n += c->flying[tag];
        return n;
}

static void reap_all(struct client *c)
{
        uint64_t until_ns = sl_clock_ns() + HANG_NS;

        while (flying(c)) {
                if (!reap(c))
                        usleep(100);
                cr_assert_lt(sl_clock_ns(), until_ns, "a request is never completed");
        }
}

static void submit_some(struct client *c)
{
        for (uint16_t tag = 0; tag < 8; tag++) {
                uint32_t index = c->submitter.tail;

                if (c->flying[tag] || roll(&c->dice, 3))
                        continue;
                submit(c, tag, roll(&c->dice, 8) ? 0 : sl_clock_ns() + roll(&c->dice, 2000) * SL_NS_PER_US);
                if (roll(&c->dice, 8) == 0)
                        cancel(c, tag, index);
        }
}

static void client_init(struct client *c, struct scene *s, uint32_t number)
{
        *c = (struct client){.s = s, .number = number, .dice = s->dice + 77 * number, .map = s->f->channel->queues[number].map};
}

static _Atomic bool clients_end;

static void *client_main(void *argument)
{
        struct client *c = argument;

        while (!clients_end) {
                submit_some(c);
                while (reap(c))
                        ;
                atomic_store(&c->was_served, c->by_status[0] > SERVED_MIN);
                sched_yield();
        }
        return NULL;
}

/* ---- rules ---- */

static uint32_t total(const struct client *c)
{
        uint32_t n = 0;

        for (int i = 0; i < 256; i++)
                n += c->by_status[i];
        return n;
}

Test(worker_changes, segments_of_a_model_without_workers_wait_for_one, .timeout = 60)
{
        struct scene *s = scene_new(1);
        struct client c;

        client_init(&c, s, 0);
        join_worker(s, 0);
        submit(&c, 0, 0);
        usleep(20000);
        cr_assert_not(reap(&c));
        join_worker(s, 1);
        reap_all(&c);
        cr_expect_eq(c.by_status[0], 1);
        scene_free(s);
}

Test(worker_changes, who_waits_for_a_model_without_workers_can_be_late_and_cancelled, .timeout = 60)
{
        struct scene *s = scene_new(2);
        struct client c;

        client_init(&c, s, 0);
        join_worker(s, 0);
        submit(&c, 0, sl_clock_ns() + 10 * SL_NS_PER_MS);
        submit(&c, 1, 0);
        cancel(&c, 1, 1);
        submit(&c, 2, 0);
        while (!c.by_status[ETIME] || !c.by_status[ECANCELED])
                reap(&c);
        cr_expect_eq(c.by_status[ETIME], 1);
        cr_expect_eq(c.by_status[ECANCELED], 1);
        cr_expect(c.flying[2]);
        join_worker(s, 1);
        reap_all(&c);
        cr_expect_eq(c.by_status[0], 1);
        scene_free(s);
}

Test(worker_changes, a_worker_is_gone_when_it_has_answered_all_that_it_was_given, .timeout = 60)
{
        struct scene *s = scene_new(3);
        struct client c;

        client_init(&c, s, 0);
        for (uint32_t m = 0; m < 2; m++)
                join_worker(s, m);
        for (uint16_t tag = 0; tag < 8; tag++)
                submit(&c, tag, 0);
        command(s, SL_COMMAND_REMOVE_WORKER, &s->f->models[0], s->workers[0][0]);
        command(s, SL_COMMAND_REMOVE_WORKER, &s->f->models[0], s->workers[0][0]); /* it is going already */
        hear_until(s, &s->n_gone, 1);
        cr_expect_eq(s->n_workers[0], 0);
        join_worker(s, 0);
        reap_all(&c);
        cr_expect_eq(c.by_status[0], 8);
        cr_expect_eq(s->n_gone, 1);
        scene_free(s);
}

/* Else it would be idle at once and take all that the others could compute. */
Test(worker_changes, one_that_has_died_is_given_nothing_more_and_leaves_by_itself, .timeout = 60)
{
        struct scene *s = scene_new(4);
        struct client c;

        client_init(&c, s, 0);
        for (uint32_t i = 0; i < 3; i++)
                join_worker(s, i ? 1 : 0);
        ((struct copier *)s->workers[1][0])->dead = true;
        submit(&c, 0, 0);
        hear_until(s, &s->n_gone, 1);
        reap_all(&c);
        for (int i = 0; i < 40; i++) {
                submit(&c, 0, 0);
                reap_all(&c);
        }
        cr_expect_eq(c.by_status[0] + c.by_status[EIO], 41);
        cr_expect_leq(c.by_status[EIO], 1);
        scene_free(s);
}

static void change_something(struct scene *s)
{
        uint32_t m = roll(&s->dice, 2);
        struct sl_executor *some = s->n_workers[m] ? s->workers[m][roll(&s->dice, s->n_workers[m])] : NULL;

        switch (roll(&s->dice, 4)) {
        case 0:
        case 1:
                if (s->n_workers[m] < COPIERS_MAX)
                        join_worker(s, m);
                break;
        case 2:
                if (some)
                        command(s, SL_COMMAND_REMOVE_WORKER, &s->f->models[m], some);
                break;
        case 3:
                if (some && roll(&s->dice, 4) == 0)
                        ((struct copier *)some)->dead = true;
                break;
        }
}

Test(worker_changes, at_random_moments_lose_and_double_nothing, .timeout = 120)
{
        struct scene *s = scene_new(5);
        struct client clients[2];
        uint64_t until_ns = sl_clock_ns() + 2000 * SL_NS_PER_MS;

        clients_end = false;
        for (uint32_t i = 0; i < 2; i++) {
                client_init(&clients[i], s, i);
                cr_assert_eq(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]), 0);
        }
        while (sl_clock_ns() < until_ns || s->n_gone <= GONE_MIN || !atomic_load(&clients[0].was_served) ||
                !atomic_load(&clients[1].was_served)) {
                change_something(s);
                hear(s);
                usleep(roll(&s->dice, 1500));
        }
        clients_end = true;
        for (uint32_t m = 0; m < 2; m++)
                if (s->n_workers[m] < COPIERS_MAX)
                        join_worker(s, m);
        for (uint32_t i = 0; i < 2; i++) {
                pthread_join(clients[i].thread, NULL);
                while (flying(&clients[i])) {
                        reap(&clients[i]);
                        hear(s);
                }
                cr_expect_eq(total(&clients[i]), clients[i].requests);
        }
        scene_free(s);
}
