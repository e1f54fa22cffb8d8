#include "broadcaster.h"
#include "fixture.h"

#include <criterion/criterion.h>

struct expected {
        uint32_t number, start, samples;
};

/* Ensemble paper, section II.C.1: the example of figure 1. */
Test(broadcaster, splits_300_samples_into_128_128_and_44_and_sends_six_messages_to_two_members)
{
        static const struct expected expected[3] = {{0, 0, 128}, {1, 128, 128}, {2, 256, 44}};
        struct fixture *f = fixture_new(2, SL_RULE_MEAN, 4, 10, 128);

        sl_broadcaster_enqueue(f->ensemble, fixture_request(f, 0, 300));
        cr_assert_eq(sl_broadcaster_run(f->ensemble, f->accumulator), 3);
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
        first = sl_broadcaster_run(f->ensemble, f->accumulator);
        cr_assert_lt(first, 100);
        cr_assert_geq((uint64_t)first * 16, f->ensemble->window_samples);
        cr_assert_eq(sl_broadcaster_run(f->ensemble, f->accumulator), 0);
        cr_assert_eq(request->state, SL_REQUEST_WAITING);

        f->ensemble->samples_out -= 16;
        cr_assert_eq(sl_broadcaster_run(f->ensemble, f->accumulator), 1);
        fixture_free(f);
}

Test(broadcaster, waits_when_the_staging_is_full)
{
        struct fixture *f = fixture_new(2, SL_RULE_MEAN, 4, 1000, 128);

        f->ensemble->window_samples = UINT64_MAX;
        sl_broadcaster_enqueue(f->ensemble, fixture_request(f, 0, 4096));
        cr_assert_eq(sl_broadcaster_run(f->ensemble, f->accumulator), 1, "1 MiB holds one segment of 2 x 128 x 1000 floats");
        sl_accumulator_close(f->accumulator, f->models[0].scheduler.tasks[0].segment);
        cr_assert_eq(sl_broadcaster_run(f->ensemble, f->accumulator), 1);
        fixture_free(f);
}

Test(broadcaster, sends_nothing_more_of_a_request_that_was_withdrawn)
{
        struct fixture *f = fixture_new(1, SL_RULE_NONE, 4, 10, 16);
        struct sl_request *request = fixture_request(f, 0, 1600);

        sl_broadcaster_enqueue(f->ensemble, request);
        sl_broadcaster_run(f->ensemble, f->accumulator);
        sl_broadcaster_withdraw(request);
        f->ensemble->samples_out = 0;
        cr_assert_eq(sl_broadcaster_run(f->ensemble, f->accumulator), 0);
        cr_assert_eq(request->state, SL_REQUEST_RUNNING);
        fixture_free(f);
}
