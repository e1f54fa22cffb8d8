/* SPDX-License-Identifier: Apache-2.0 */
#include "broadcaster.h"
#include "busy.h"
#include "fixture.h"
#include "inline_rule.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Workers for which no window is too small. */
#define MANY 1000000u

static struct sl_busy busy;
static struct sl_broadcast_ring alone; /* of one ensemble */

static uint32_t run_ring(struct sl_broadcast_ring *ring, struct fixture *f)
{
        return sl_broadcaster_run(ring, &(struct sl_broadcast){.accumulator = f->accumulator, .busy = &busy});
}

static struct fixture *alone_new(uint32_t n_members, enum sl_rule rule, uint32_t inputs, uint32_t classes, uint32_t segment_samples)
{
        struct fixture *f = fixture_new(n_members, rule, inputs, classes, segment_samples);

        sl_broadcast_ring_add(&alone, &f->ensemble->broadcasts);
        return f;
}

static uint32_t run(struct fixture *f)
{
        return run_ring(&alone, f);
}

struct expected {
        uint32_t start, samples;
};

/* Ensemble paper, section II.C.1: the example of figure 1. */
Test(broadcaster, splits_300_samples_into_128_128_and_44_and_sends_six_messages_to_two_members)
{
        static const struct expected expected[3] = {{0, 128}, {128, 128}, {256, 44}};
        struct fixture *f = alone_new(2, SL_RULE_MEAN, 4, 10, 128);

        sl_broadcaster_enqueue(f->ensemble, fixture_request(f, 0, 300));
        cr_assert_eq(run(f), 3);
        for (uint32_t m = 0; m < 2; m++) {
                struct sl_task_queue *queue = &f->models[m].scheduler.queues[0];

                cr_assert_eq(queue->tail - queue->head, 3, "member %u got another number of messages", m);
                for (uint32_t i = 0; i < 3; i++) {
                        struct sl_task task = queue->tasks[i];
                        struct sl_segment *segment = sl_accumulator_segment(f->accumulator, task.segment);

                        cr_expect_eq(task.member, m);
                        cr_expect_eq(segment->start, expected[i].start);
                        cr_expect_eq(segment->samples, expected[i].samples);
                        cr_expect_eq(atomic_load(&segment->missing), 2 * expected[i].samples);
                }
        }
        fixture_free(f);
}

Test(broadcaster, holds_back_what_exceeds_the_window_and_goes_on_when_segments_come_back)
{
        struct fixture *f = alone_new(1, SL_RULE_NONE, 4, 10, 16);
        struct sl_request *request = fixture_request(f, 0, 1600);
        uint32_t first;

        sl_broadcaster_enqueue(f->ensemble, request);
        first = run(f);
        cr_assert_lt(first, 100);
        cr_assert_eq(first, 2 * (f->models[0].workers.n + 1), "two segments for each worker and two that wait");
        cr_assert_eq(run(f), 0);
        cr_assert_eq(request->state, SL_REQUEST_WAITING);

        f->ensemble->broadcasts.samples_out -= 16;
        cr_assert_eq(run(f), 1);
        fixture_free(f);
}

Test(broadcaster, the_window_follows_workers_that_come_and_go)
{
        struct fixture *f = alone_new(2, SL_RULE_MEAN, 4, 10, 16);

        sl_broadcaster_enqueue(f->ensemble, fixture_request(f, 0, 1600));
        f->models[0].workers.n = f->models[1].workers.n = 0;
        cr_expect_eq(run(f), 2, "two that wait");
        f->models[1].workers.n = 2;
        cr_expect_eq(run(f), 4);
        f->models[1].workers.n = 1;
        cr_expect_eq(run(f), 0);
        fixture_free(f);
}

Test(broadcaster, waits_when_the_staging_is_full)
{
        struct fixture *f = alone_new(2, SL_RULE_MEAN, 4, 1000, 128);

        f->models[0].workers.n = MANY;
        sl_broadcaster_enqueue(f->ensemble, fixture_request(f, 0, 4096));
        cr_assert_eq(run(f), 1, "1 MiB holds one segment of 2 x 128 x 1000 floats");
        sl_accumulator_close(f->accumulator, f->models[0].scheduler.queues[0].tasks[0].segment);
        cr_assert_eq(run(f), 1);
        fixture_free(f);
}

Test(broadcaster, sends_nothing_more_of_a_request_that_was_withdrawn)
{
        struct fixture *f = alone_new(1, SL_RULE_NONE, 4, 10, 16);
        struct sl_request *request = fixture_request(f, 0, 1600);

        sl_broadcaster_enqueue(f->ensemble, request);
        run(f);
        sl_broadcaster_withdraw(request);
        f->ensemble->broadcasts.samples_out = 0;
        cr_assert_eq(run(f), 0);
        cr_assert_eq(request->state, SL_REQUEST_RUNNING);
        fixture_free(f);
}

/* What is out comes back piece by piece: the other must have got its own when all of that is back. */
Test(broadcaster, an_ensemble_with_large_segments_gets_staging_beside_one_with_small_segments)
{
        struct fixture *small = fixture_new(2, SL_RULE_MEAN, 4, 100, 16), *large = fixture_new(2, SL_RULE_MEAN, 4, 1000, 128);
        struct sl_accumulator *accumulator = small->accumulator;
        struct sl_scheduler *scheduler = &small->models[0].scheduler;
        struct sl_task_queue *out = &scheduler->queues[0];
        struct sl_broadcast_ring ring = {NULL};

        small->models[0].workers.n = large->models[0].workers.n = MANY;
        sl_broadcast_ring_add(&ring, &large->ensemble->broadcasts);
        sl_broadcast_ring_add(&ring, &small->ensemble->broadcasts);
        for (uint16_t tag = 0; tag < 8; tag++)
                sl_broadcaster_enqueue(small->ensemble, fixture_request(small, tag, 4096));
        sl_broadcaster_enqueue(large->ensemble, fixture_request(large, 0, 128));
        run_ring(&ring, small);
        cr_assert_eq(large->models[0].scheduler.queues[0].tail, 0, "the staging is full of small segments");
        for (uint32_t i = 0; i < FIXTURE_SEGMENTS; i++) {
                sl_accumulator_close(accumulator, out->tasks[out->head++ & out->mask].segment);
                run_ring(&ring, small);
        }
        cr_assert_eq(large->models[0].scheduler.queues[0].tail, 1, "the small segments took all that came back");
        fixture_free(small);
        fixture_free(large);
}

Test(broadcaster, ensembles_share_the_segments_when_there_are_too_few_for_all)
{
        struct fixture *f[3];
        struct sl_broadcast_ring ring = {NULL};
        uint32_t got[3] = {0};

        for (int i = 0; i < 3; i++) {
                f[i] = fixture_new(1, SL_RULE_NONE, 4, 10, 16);
                f[i]->models[0].workers.n = MANY;
        }
        for (int i = 3; i-- > 0;)
                sl_broadcast_ring_add(&ring, &f[i]->ensemble->broadcasts);
        for (int i = 0; i < 3; i++)
                sl_broadcaster_enqueue(f[i]->ensemble, fixture_request(f[i], 0, 4096));
        cr_assert_eq(run_ring(&ring, f[0]), FIXTURE_SEGMENTS);
        for (int i = 0; i < 30; i++) {
                struct sl_scheduler *scheduler = &f[0]->models[0].scheduler;
                struct sl_task_queue *out = &scheduler->queues[0];

                sl_accumulator_close(f[0]->accumulator, out->tasks[out->head++ & out->mask].segment);
                cr_assert_eq(run_ring(&ring, f[0]), 1);
                for (int k = 0; k < 3; k++)
                        got[k] = f[k]->models[0].scheduler.queues[0].tail;
        }
        cr_assert_eq(got[0], FIXTURE_SEGMENTS + 10);
        cr_assert_eq(got[1], 10);
        cr_assert_eq(got[2], 10);
        for (int i = 0; i < 3; i++)
                fixture_free(f[i]);
}

Test(broadcaster, an_ensemble_that_stages_nothing_goes_on_while_staging_is_short)
{
        struct fixture *staged = fixture_new(2, SL_RULE_MEAN, 4, 1000, 128), *direct = fixture_new(1, SL_RULE_NONE, 4, 10, 16);
        struct sl_broadcast_ring ring = {NULL};

        staged->models[0].workers.n = MANY;
        sl_broadcast_ring_add(&ring, &direct->ensemble->broadcasts);
        sl_broadcast_ring_add(&ring, &staged->ensemble->broadcasts);
        sl_broadcaster_enqueue(staged->ensemble, fixture_request(staged, 0, 4096));
        cr_assert_eq(run_ring(&ring, staged), 1);
        sl_broadcaster_enqueue(direct->ensemble, fixture_request(direct, 0, 16));
        cr_assert_eq(run_ring(&ring, staged), 1);
        cr_assert_eq(direct->models[0].scheduler.queues[0].tail, 1);
        fixture_free(staged);
        fixture_free(direct);
}

Test(broadcaster, segments_are_no_longer_than_the_slice_of_the_slowest_member)
{
        struct fixture *f = alone_new(2, SL_RULE_MEAN, 4, 10, 128);
        struct sl_task_queue *queue = &f->models[0].scheduler.queues[0];

        f->models[0].slice_samples = 50;
        f->models[1].slice_samples = 7;
        sl_broadcaster_enqueue(f->ensemble, fixture_request(f, 0, 300));
        cr_assert_eq(run(f), f->models[0].workers.n + 1, "a slice for each worker and one that waits");
        for (uint32_t i = 0; i < queue->tail; i++) {
                struct sl_segment *segment = sl_accumulator_segment(f->accumulator, queue->tasks[i].segment);

                cr_expect_eq(segment->start, 7 * i);
                cr_expect_eq(segment->samples, 7);
        }
        fixture_free(f);
}

/* Requests that are smaller than the window, of two clients: the second does not wait for all of the first. */
Test(broadcaster, turns_last_a_slice_whatever_the_requests)
{
        struct fixture *f = alone_new(1, SL_RULE_NONE, 4, 10, 128);
        struct sl_task_queue *queue = &f->models[0].scheduler.queues[0];
        struct sl_request *other = fixture_request(f, 1, 1);
        struct sl_channel neighbour = {.slot = 1};
        struct sl_queue its_queue = {.channel = &neighbour};

        f->models[0].slice_samples = 4;
        sl_broadcaster_enqueue(f->ensemble, fixture_request(f, 0, 128));
        cr_assert_eq(run(f), 2);
        other->queue = &its_queue;
        sl_broadcaster_enqueue(f->ensemble, other);
        f->ensemble->broadcasts.samples_out = 0;
        run(f);
        cr_assert_eq(sl_accumulator_segment(f->accumulator, queue->tasks[2].segment)->work, &other->work, "it has the next turn");
        fixture_free(f);
}

/* ---- a recorded log ---- */

#define LOG_STEPS    1500u
#define LOG_REQUESTS 48u
#define LOG_CLIENTS  4u

/* Three ensembles that share segments and staging: of small segments, of large ones, and one that stages nothing. */
struct turns_log {
        struct fixture *ensembles[3];
        struct sl_channel clients[LOG_CLIENTS];
        struct sl_queue queues[LOG_CLIENTS];
        struct sl_request requests[LOG_REQUESTS];
        struct sl_task out[FIXTURE_SEGMENTS]; /* broadcast and not closed */
        uint32_t n_out, dice, step;
        struct sl_broadcast_ring ring;
        FILE *file;
};

static uint32_t roll(struct turns_log *log, uint32_t sides)
{
        log->dice = log->dice * 1664525u + 1013904223u;
        return (log->dice >> 16) % sides;
}

static void log_init(struct turns_log *log, FILE *file)
{
        *log = (struct turns_log){.file = file, .dice = 5};
        log->ensembles[0] = fixture_new(2, SL_RULE_MEAN, 4, 100, 16);
        log->ensembles[1] = fixture_new(2, SL_RULE_MEAN, 4, 400, 128);
        log->ensembles[2] = fixture_new(1, SL_RULE_NONE, 4, 10, 64);
        for (int i = 3; i-- > 0;)
                sl_broadcast_ring_add(&log->ring, &log->ensembles[i]->ensemble->broadcasts);
        for (uint32_t i = 0; i < 3; i++)
                for (uint32_t m = 0; m < log->ensembles[i]->ensemble->assembly.n_members; m++)
                        log->ensembles[i]->models[m].workers.n = 40 * i + 4;
        for (uint32_t i = 0; i < LOG_CLIENTS; i++) {
                log->clients[i].slot = i;
                log->queues[i].channel = &log->clients[i];
        }
}

static void log_deinit(struct turns_log *log)
{
        for (int i = 0; i < 3; i++)
                fixture_free(log->ensembles[i]);
}

static void log_enqueue(struct turns_log *log)
{
        struct sl_request *request = &log->requests[roll(log, LOG_REQUESTS)];
        struct sl_ensemble *ensemble = log->ensembles[roll(log, 3)]->ensemble;

        if (request->state != SL_REQUEST_FREE)
                return;
        *request = (struct sl_request){
                .work = {.assembly = &ensemble->assembly, .segments = SL_NO_SEGMENT},
                .queue = &log->queues[roll(log, 3) ? roll(log, LOG_CLIENTS) : 0],
                .ensemble = ensemble,
                .samples = 1 + roll(log, roll(log, 2) ? 1500 : 20),
                .priority = (uint8_t)(roll(log, 4) ? 2 : roll(log, SL_PRIORITIES)),
        };
        sl_broadcaster_enqueue(ensemble, request);
}

static void log_close(struct turns_log *log)
{
        struct sl_accumulator *accumulator = log->ensembles[0]->accumulator;

        if (!log->n_out)
                return;
        struct sl_task *task = &log->out[roll(log, log->n_out)];
        struct sl_request *request = sl_request_of(sl_accumulator_segment(accumulator, task->segment)->work);
        sl_accumulator_close(accumulator, task->segment);
        request->ensemble->broadcasts.samples_out -= task->samples;
        request->finished += task->samples;
        if (request->state == SL_REQUEST_RUNNING && request->finished == request->broadcast)
                request->state = SL_REQUEST_FREE;
        *task = log->out[--log->n_out];
}

static void log_withdraw(struct turns_log *log)
{
        struct sl_request *request = &log->requests[roll(log, LOG_REQUESTS)];

        if (request->state != SL_REQUEST_WAITING)
                return;
        sl_broadcaster_withdraw(request);
        if (request->finished == request->broadcast)
                request->state = SL_REQUEST_FREE;
}

/* What its first member has got since the last look; the others have got the same. */
static void log_broadcasts(struct turns_log *log, uint32_t i)
{
        struct sl_model *others = &log->ensembles[i]->models[1];

        for (uint32_t class = 0; class < SL_PRIORITIES; class ++)
                others->scheduler.queues[class].head = others->scheduler.queues[class].tail;
        for (uint32_t class = 0; class < SL_PRIORITIES; class ++) {
                struct sl_task_queue *queue = &log->ensembles[i]->models[0].scheduler.queues[class];

                for (; queue->head != queue->tail; queue->head++) {
                        const struct sl_task *task = sl_task_queue_at(queue, 0);
                        struct sl_segment *segment = sl_accumulator_segment(log->ensembles[0]->accumulator, task->segment);

                        fprintf(log->file, "%u\tensemble %u\tclass %u\tclient %u\trequest %u\tsamples %u+%u\n", log->step, i, class,
                                task->client, (uint32_t)(sl_request_of(segment->work) - log->requests), segment->start,
                                task->samples);
                        log->out[log->n_out++] = *task;
                }
        }
}

static void log_step(struct turns_log *log)
{
        uint32_t what = roll(log, 16);

        if (what < 6)
                log_enqueue(log);
        else if (what < 14)
                log_close(log);
        else if (what < 15)
                log_withdraw(log);
        else
                log->ensembles[roll(log, 3)]->models[0].slice_samples = 1 + roll(log, 200);
        run_ring(&log->ring, log->ensembles[0]);
        for (uint32_t i = 0; i < 3; i++)
                log_broadcasts(log, i);
}

/* The log was written by the broadcaster that decided and sent in one. */
Test(broadcaster, takes_turns_as_recorded)
{
        char *text, *recorded;
        size_t bytes, size;
        FILE *file = open_memstream(&text, &bytes);
        struct turns_log log;

        log_init(&log, file);
        for (; log.step < LOG_STEPS; log.step++)
                log_step(&log);
        log_deinit(&log);
        fclose(file);
        cr_assert_not_null(file = fopen(RECORDED_LOG, "r"));
        recorded = calloc(1, bytes + 1);
        size = fread(recorded, 1, bytes, file);
        cr_expect_eq(fgetc(file), EOF, "as many turns as recorded");
        fclose(file);
        cr_expect(size == bytes && memcmp(text, recorded, bytes) == 0);
        free(recorded);
        free(text);
}
