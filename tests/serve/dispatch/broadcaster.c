/* SPDX-License-Identifier: Apache-2.0 */
#include "broadcaster.h"
#include "fixture.h"

#include <criterion/criterion.h>

/* Workers for which no window is too small. */
#define MANY 1000000u

/* A list of one ensemble. */
static uint32_t run(struct fixture *f)
{
        struct sl_ensemble *turn = NULL;

        return sl_broadcaster_turns(f->ensemble, &turn, f->accumulator, 0);
}

struct expected {
        uint32_t start, samples;
};

/* Ensemble paper, section II.C.1: the example of figure 1. */
Test(broadcaster, splits_300_samples_into_128_128_and_44_and_sends_six_messages_to_two_members)
{
        static const struct expected expected[3] = {{0, 128}, {128, 128}, {256, 44}};
        struct fixture *f = fixture_new(2, SL_RULE_MEAN, 4, 10, 128);

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
        struct fixture *f = fixture_new(1, SL_RULE_NONE, 4, 10, 16);
        struct sl_request *request = fixture_request(f, 0, 1600);
        uint32_t first;

        sl_broadcaster_enqueue(f->ensemble, request);
        first = run(f);
        cr_assert_lt(first, 100);
        cr_assert_eq(first, 2 * (f->models[0].workers.n + 1), "two segments for each worker and two that wait");
        cr_assert_eq(run(f), 0);
        cr_assert_eq(request->state, SL_REQUEST_WAITING);

        f->ensemble->samples_out -= 16;
        cr_assert_eq(run(f), 1);
        fixture_free(f);
}

Test(broadcaster, the_window_follows_workers_that_come_and_go)
{
        struct fixture *f = fixture_new(2, SL_RULE_MEAN, 4, 10, 16);

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
        struct fixture *f = fixture_new(2, SL_RULE_MEAN, 4, 1000, 128);

        f->models[0].workers.n = MANY;
        sl_broadcaster_enqueue(f->ensemble, fixture_request(f, 0, 4096));
        cr_assert_eq(run(f), 1, "1 MiB holds one segment of 2 x 128 x 1000 floats");
        sl_accumulator_close(f->accumulator, f->models[0].scheduler.queues[0].tasks[0].segment);
        cr_assert_eq(run(f), 1);
        fixture_free(f);
}

Test(broadcaster, sends_nothing_more_of_a_request_that_was_withdrawn)
{
        struct fixture *f = fixture_new(1, SL_RULE_NONE, 4, 10, 16);
        struct sl_request *request = fixture_request(f, 0, 1600);

        sl_broadcaster_enqueue(f->ensemble, request);
        run(f);
        sl_broadcaster_withdraw(request);
        f->ensemble->samples_out = 0;
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
        struct sl_ensemble *turn = NULL;

        small->models[0].workers.n = large->models[0].workers.n = MANY;
        small->ensemble->next = large->ensemble;
        for (uint16_t tag = 0; tag < 8; tag++)
                sl_broadcaster_enqueue(small->ensemble, fixture_request(small, tag, 4096));
        sl_broadcaster_enqueue(large->ensemble, fixture_request(large, 0, 128));
        sl_broadcaster_turns(small->ensemble, &turn, accumulator, 0);
        cr_assert_eq(large->models[0].scheduler.queues[0].tail, 0, "the staging is full of small segments");
        for (uint32_t i = 0; i < FIXTURE_SEGMENTS; i++) {
                sl_accumulator_close(accumulator, out->tasks[out->head++ & out->mask].segment);
                sl_broadcaster_turns(small->ensemble, &turn, accumulator, 0);
        }
        cr_assert_eq(large->models[0].scheduler.queues[0].tail, 1, "the small segments took all that came back");
        small->ensemble->next = NULL;
        fixture_free(small);
        fixture_free(large);
}

Test(broadcaster, ensembles_share_the_segments_when_there_are_too_few_for_all)
{
        struct fixture *f[3];
        struct sl_ensemble *turn = NULL;
        uint32_t got[3] = {0};

        for (int i = 0; i < 3; i++) {
                f[i] = fixture_new(1, SL_RULE_NONE, 4, 10, 16);
                f[i]->models[0].workers.n = MANY;
                sl_broadcaster_enqueue(f[i]->ensemble, fixture_request(f[i], 0, 4096));
                if (i > 0)
                        f[i - 1]->ensemble->next = f[i]->ensemble;
        }
        cr_assert_eq(sl_broadcaster_turns(f[0]->ensemble, &turn, f[0]->accumulator, 0), FIXTURE_SEGMENTS);
        for (int i = 0; i < 30; i++) {
                struct sl_scheduler *scheduler = &f[0]->models[0].scheduler;
                struct sl_task_queue *out = &scheduler->queues[0];

                sl_accumulator_close(f[0]->accumulator, out->tasks[out->head++ & out->mask].segment);
                cr_assert_eq(sl_broadcaster_turns(f[0]->ensemble, &turn, f[0]->accumulator, 0), 1);
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
        struct sl_ensemble *turn = NULL;

        staged->models[0].workers.n = MANY;
        staged->ensemble->next = direct->ensemble;
        sl_broadcaster_enqueue(staged->ensemble, fixture_request(staged, 0, 4096));
        cr_assert_eq(sl_broadcaster_turns(staged->ensemble, &turn, staged->accumulator, 0), 1);
        sl_broadcaster_enqueue(direct->ensemble, fixture_request(direct, 0, 16));
        cr_assert_eq(sl_broadcaster_turns(staged->ensemble, &turn, staged->accumulator, 0), 1);
        cr_assert_eq(direct->models[0].scheduler.queues[0].tail, 1);
        staged->ensemble->next = NULL;
        fixture_free(staged);
        fixture_free(direct);
}

Test(broadcaster, segments_are_no_longer_than_the_slice_of_the_slowest_member)
{
        struct fixture *f = fixture_new(2, SL_RULE_MEAN, 4, 10, 128);
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
        struct fixture *f = fixture_new(1, SL_RULE_NONE, 4, 10, 128);
        struct sl_task_queue *queue = &f->models[0].scheduler.queues[0];
        struct sl_request *other = fixture_request(f, 1, 1);
        struct sl_channel neighbour = {.slot = 1};
        struct sl_queue its_queue = {.channel = &neighbour};

        f->models[0].slice_samples = 4;
        sl_broadcaster_enqueue(f->ensemble, fixture_request(f, 0, 128));
        cr_assert_eq(run(f), 2);
        other->queue = &its_queue;
        sl_broadcaster_enqueue(f->ensemble, other);
        f->ensemble->samples_out = 0;
        run(f);
        cr_assert_eq(sl_accumulator_segment(f->accumulator, queue->tasks[2].segment)->work, &other->work, "it has the next turn");
        fixture_free(f);
}
