#include "broadcaster.h"
#include "fixture.h"

#include <criterion/criterion.h>

/* A list of one ensemble. */
static uint32_t run(struct fixture *f)
{
        struct sl_ensemble *turn = NULL;

        return sl_broadcaster_turns(f->ensemble, &turn, f->accumulator);
}

struct expected {
        uint32_t number, start, samples;
};

/* Ensemble paper, section II.C.1: the example of figure 1. */
Test(broadcaster, splits_300_samples_into_128_128_and_44_and_sends_six_messages_to_two_members)
{
        static const struct expected expected[3] = {{0, 0, 128}, {1, 128, 128}, {2, 256, 44}};
        struct fixture *f = fixture_new(2, SL_RULE_MEAN, 4, 10, 128);

        sl_broadcaster_enqueue(f->ensemble, fixture_request(f, 0, 300));
        cr_assert_eq(run(f), 3);
        for (uint32_t m = 0; m < 2; m++) {
                struct sl_scheduler *scheduler = &f->models[m].scheduler;

                cr_assert_eq(scheduler->tail - scheduler->head, 3, "member %u got another number of messages", m);
                for (uint32_t i = 0; i < 3; i++) {
                        struct sl_task task = scheduler->tasks[i];
                        struct sl_segment *segment = sl_accumulator_segment(f->accumulator, task.segment);

                        cr_expect_eq(task.member, m);
                        cr_expect_eq(segment->number, expected[i].number);
                        cr_expect_eq(segment->start, expected[i].start);
                        cr_expect_eq(segment->samples, expected[i].samples);
                        cr_expect_eq(atomic_load(&segment->missing), 2);
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
        cr_assert_geq((uint64_t)first * 16, f->ensemble->window_samples);
        cr_assert_eq(run(f), 0);
        cr_assert_eq(request->state, SL_REQUEST_WAITING);

        f->ensemble->samples_out -= 16;
        cr_assert_eq(run(f), 1);
        fixture_free(f);
}

Test(broadcaster, waits_when_the_staging_is_full)
{
        struct fixture *f = fixture_new(2, SL_RULE_MEAN, 4, 1000, 128);

        f->ensemble->window_samples = UINT64_MAX;
        sl_broadcaster_enqueue(f->ensemble, fixture_request(f, 0, 4096));
        cr_assert_eq(run(f), 1, "1 MiB holds one segment of 2 x 128 x 1000 floats");
        sl_accumulator_close(f->accumulator, f->models[0].scheduler.tasks[0].segment);
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
        struct sl_scheduler *out = &small->models[0].scheduler;
        struct sl_ensemble *turn = NULL;

        small->ensemble->window_samples = large->ensemble->window_samples = UINT64_MAX;
        small->ensemble->next = large->ensemble;
        for (uint16_t tag = 0; tag < 8; tag++)
                sl_broadcaster_enqueue(small->ensemble, fixture_request(small, tag, 4096));
        sl_broadcaster_enqueue(large->ensemble, fixture_request(large, 0, 128));
        sl_broadcaster_turns(small->ensemble, &turn, accumulator);
        cr_assert_eq(large->models[0].scheduler.tail, 0, "the staging is full of small segments");
        for (uint32_t i = 0; i < FIXTURE_SEGMENTS; i++) {
                sl_accumulator_close(accumulator, out->tasks[out->head++ & out->mask].segment);
                sl_broadcaster_turns(small->ensemble, &turn, accumulator);
        }
        cr_assert_eq(large->models[0].scheduler.tail, 1, "the small segments took all that came back");
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
                f[i]->ensemble->window_samples = UINT64_MAX;
                sl_broadcaster_enqueue(f[i]->ensemble, fixture_request(f[i], 0, 4096));
                if (i > 0)
                        f[i - 1]->ensemble->next = f[i]->ensemble;
        }
        cr_assert_eq(sl_broadcaster_turns(f[0]->ensemble, &turn, f[0]->accumulator), FIXTURE_SEGMENTS);
        for (int i = 0; i < 30; i++) {
                struct sl_scheduler *out = &f[0]->models[0].scheduler;

                sl_accumulator_close(f[0]->accumulator, out->tasks[out->head++ & out->mask].segment);
                cr_assert_eq(sl_broadcaster_turns(f[0]->ensemble, &turn, f[0]->accumulator), 1);
                for (int k = 0; k < 3; k++)
                        got[k] = f[k]->models[0].scheduler.tail;
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

        staged->ensemble->window_samples = UINT64_MAX;
        staged->ensemble->next = direct->ensemble;
        sl_broadcaster_enqueue(staged->ensemble, fixture_request(staged, 0, 4096));
        cr_assert_eq(sl_broadcaster_turns(staged->ensemble, &turn, staged->accumulator), 1);
        sl_broadcaster_enqueue(direct->ensemble, fixture_request(direct, 0, 16));
        cr_assert_eq(sl_broadcaster_turns(staged->ensemble, &turn, staged->accumulator), 1);
        cr_assert_eq(direct->models[0].scheduler.tail, 1);
        staged->ensemble->next = NULL;
        fixture_free(staged);
        fixture_free(direct);
}
