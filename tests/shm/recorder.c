/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder: which record a request gets, and what a reader sees of it.
 */
#include "recorder.h"
#include "base/error.h"
#include "stats_bench.h"

#include <criterion/criterion.h>
#include <errno.h>

static struct sl_stats *stats;
static struct sl_stats_view *view;
static struct sl_recorder recorder;

/* With more records than stay behind. */
static void set_up(void)
{
        struct sl_stats_options options = stats_options();

        stats_bench_init();
        options.bytes *= 4;
        cr_assert_eq(sl_stats_create(&options, &stats, NULL), 0);
        view = stats_view();
        cr_assert_eq(sl_recorder_init(&recorder, stats), 0);
        cr_assert_gt(recorder.n_records, SL_RECORDS_ENDED + 1);
}

static void tear_down(void)
{
        sl_recorder_deinit(&recorder);
        sl_stats_close(view);
        sl_stats_free(stats);
        stats_bench_deinit();
}

TestSuite(recorder, .init = set_up, .fini = tear_down);

static struct sl_flight_record *begin(uint32_t samples)
{
        return sl_recorder_take(
                &recorder, &(struct sl_flight_record){
                                   .client = 7, .stage = SL_FLIGHT_QUEUED, .samples = samples, .taken_ns = 100, .since_ns = 100});
}

static uint32_t number_of(const struct sl_flight_record *record)
{
        return (uint32_t)(record - recorder.records);
}

static struct sl_flight_record seen(const struct sl_flight_record *record)
{
        struct sl_flight_record copy;

        cr_assert_eq(sl_stats_read_record(view, SL_STATS_RECORDS, number_of(record), &copy), 0);
        return copy;
}

Test(recorder, a_request_in_flight_keeps_its_record_whatever_else_comes_and_goes)
{
        struct sl_flight_record *long_one = begin(5), copy;

        for (uint32_t i = 0; i < 3 * recorder.n_records; i++) {
                struct sl_flight_record *other = begin(1);

                cr_assert_neq(other, long_one);
                sl_recorder_end(&recorder, other, 0, 200);
        }
        copy = seen(long_one);
        cr_expect(copy.slot.used == 1 && copy.samples == 5 && copy.stage == SL_FLIGHT_QUEUED);
}

static uint32_t count_used_after(uint64_t number)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < recorder.n_records; i++) {
                struct sl_flight_record copy;

                n += sl_stats_read_record(view, SL_STATS_RECORDS, i, &copy) == 0 && copy.slot.used > number;
        }
        return n;
}

Test(recorder, of_those_that_ended_the_latest_stay)
{
        uint32_t n = SL_RECORDS_ENDED, in_flight = n / 4;
        struct sl_flight_record *ring[SL_RECORDS_ENDED] = {NULL};

        for (uint32_t i = 0; i < 4 * n; i++) {
                sl_recorder_end(&recorder, ring[i % in_flight], 0, 200);
                ring[i % in_flight] = begin(1);
                if (i < n)
                        cr_assert_eq(count_used_after(0), i + 1, "none is used again while there are unused ones");
        }
        for (uint32_t i = 0; i < in_flight; i++)
                sl_recorder_end(&recorder, ring[i], 0, 300);
        cr_expect_eq(count_used_after(3 * n), n);
}

Test(recorder, no_more_are_used_than_are_in_flight_and_some_behind_them)
{
        for (uint32_t i = 0; i < 4 * recorder.n_records; i++)
                sl_recorder_end(&recorder, begin(1), 0, 200);
        cr_expect_eq(count_used_after(0), SL_RECORDS_ENDED);
}

Test(recorder, more_in_flight_than_records_go_without_and_nothing_is_lost_of_the_others)
{
        uint32_t n = recorder.n_records;
        struct sl_flight_record *first = begin(9);

        for (uint32_t i = 1; i < n; i++)
                cr_assert_not_null(begin(1));
        cr_expect_null(begin(1));
        sl_record_stage(NULL, SL_FLIGHT_GIVEN, 1);
        sl_record_given(NULL, 1, 1);
        sl_recorder_end(&recorder, NULL, 0, 1);
        sl_recorder_end(&recorder, first, -ETIME, 300);
        cr_expect_eq(seen(first).status, -ETIME);
        cr_expect_eq(begin(1), first, "its record is the one that ended longest ago");
        cr_expect_eq(seen(first).slot.used, n + 2, "those without a record have a number");
}

Test(recorder, workers_that_have_pieces_are_named_as_far_as_there_is_room)
{
        struct sl_flight_record *record = begin(5), copy;

        for (uint16_t worker = 1; worker <= 6; worker++)
                sl_record_given(record, worker, 150);
        sl_record_given(record, 1, 160);
        copy = seen(record);
        cr_expect(copy.stage == SL_FLIGHT_GIVEN && copy.assigned_ns == 150);
        cr_expect(copy.places[0].worker == 1 && copy.places[0].pieces == 2);
        cr_expect(copy.places[3].worker == SL_FLIGHT_SEVERAL && copy.places[3].pieces == 3);
        sl_record_answered(record, 2, 170, 180, 0);
        sl_record_answered(record, 6, 170, 190, 0);
        copy = seen(record);
        cr_expect(copy.places[1].worker == 0 && copy.answered == 2 && copy.staged_ns == 190);
        cr_expect_eq(copy.places[3].pieces, 2);
}

Test(recorder, what_is_being_changed_is_told_from_what_is_whole)
{
        struct sl_flight_record *record = begin(5), copy;

        atomic_fetch_add(&record->slot.seq, 1); /* as a crash in the middle leaves it */
        cr_expect_eq(sl_stats_read_record(view, SL_STATS_RECORDS, number_of(record), &copy), -EAGAIN);
        cr_expect(copy.client == 7 && copy.samples == 5, "what there is of it");
}

Test(recorder, sampled_requests_are_in_the_trace_and_no_others)
{
        struct sl_flight_record copy;

        sl_recorder_end(&recorder, begin(1), 0, 200);
        cr_expect_eq(recorder.next_traced, 0);
        recorder.sampling = UINT32_MAX;
        sl_recorder_end(&recorder, begin(3), 0, 200);
        cr_expect_eq(recorder.next_traced, 1);
        cr_assert_eq(sl_stats_read_record(view, SL_STATS_TRACED, 0, &copy), 0);
        cr_expect(copy.slot.used == 1 && copy.number == 2 && copy.samples == 3 && copy.stage == SL_FLIGHT_ENDED);
        recorder.sampling = UINT32_MAX / 10;
        for (uint32_t i = 0; i < 10000; i++)
                sl_recorder_end(&recorder, begin(1), 0, 200);
        cr_expect(recorder.next_traced > 800 && recorder.next_traced < 1200, "a tenth: %u", (unsigned)recorder.next_traced);
}
