/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is drained of a trace: everything once, in order, and what was overwritten before is counted; and how it lies in lanes.
 */
#include "trace.h"
#include "lanes.h"
#include "made.h"
#include "recorder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct sl_stats *stats;
static struct sl_stats_view *view;
static struct sl_recorder recorder;
static struct trace trace;

static void set_up(void)
{
        made_init();
        stats = made_stats();
        cr_assert_eq(sl_stats_open("made", made_folder, &view, NULL), 0);
        cr_assert_eq(sl_recorder_init(&recorder, stats), 0);
        recorder.sampling = UINT32_MAX;
        sl_stats_dispatcher_samples(stats, 0, UINT32_MAX);
}

static void tear_down(void)
{
        trace_deinit(&trace);
        sl_recorder_deinit(&recorder);
        sl_stats_close(view);
        sl_stats_free(stats);
        made_deinit();
}

TestSuite(trace, .init = set_up, .fini = tear_down);

/* One that is taken, computed by worker 3 and done. Return: its number. */
static uint64_t serve(uint64_t taken_ns, uint64_t ended_ns)
{
        struct sl_flight_record *record = sl_recorder_take(
                &recorder, &(struct sl_flight_record){.client = 7, .stage = SL_FLIGHT_QUEUED, .samples = 1, .taken_ns = taken_ns});
        uint64_t number = record->slot.used;

        sl_record_given(record, 4, taken_ns + 1);
        sl_recorder_span(&recorder,
                &(struct sl_trace_span){
                        .request = number, .client = 7, .worker = 3, .samples = 1, .begun_ns = taken_ns + 2, .ended_ns = ended_ns});
        sl_record_answered(record, 4, taken_ns + 2, ended_ns, 0);
        sl_recorder_end(&recorder, record, 0, ended_ns);
        return number;
}

static void begin(uint32_t records_max)
{
        cr_assert_eq(trace_begin(&trace, view, records_max, NULL), 0);
}

Test(trace, begins_with_what_ends_after_it_and_takes_everything_once)
{
        serve(100, 200);
        begin(1000);
        cr_assert_eq(trace_drain(&trace), 0);
        cr_expect_eq(trace.n_records, 0, "what ended before is not of it");
        uint64_t first = serve(300, 400);

        for (uint32_t i = 0; i < 50; i++) {
                cr_assert_eq(trace_drain(&trace), 0);
                serve(500 + i, 600 + i);
        }
        cr_assert_eq(trace_drain(&trace), 0);
        cr_assert(trace.n_records == 51 && trace.n_spans == 52, "spans of whatever may end later, too");
        for (uint32_t i = 0; i < 51; i++)
                cr_expect(trace.records[i].number == first + i && trace.spans[i + 1].request == first + i);
        cr_expect_eq(trace.records_ring.lost + trace.spans_ring.lost, 0);
}

Test(trace, counts_what_was_overwritten_before_it_came)
{
        begin(UINT32_MAX);
        for (uint32_t i = 0; i < 3 * recorder.n_spans + 5; i++)
                serve(100 + i, 200 + i);
        cr_assert_eq(trace_drain(&trace), 0);
        cr_expect_eq(trace.n_records, recorder.n_traced);
        cr_expect_eq(trace.n_spans, recorder.n_spans);
        cr_expect_eq(trace.records_ring.lost, 3 * recorder.n_spans + 5 - recorder.n_traced);
        cr_expect_eq(trace.spans_ring.lost, 2 * recorder.n_spans + 5);
        serve(1, 2);
        cr_assert_eq(trace_drain(&trace), 0);
        cr_expect_eq(trace.n_records, recorder.n_traced + 1);
}

Test(trace, ends_with_as_many_as_were_asked_for)
{
        begin(3);
        for (uint32_t i = 0; i < 10; i++)
                serve(100 + i, 200 + i);
        cr_assert_eq(trace_drain(&trace), 0);
        cr_expect_eq(trace.n_records, 3);
}

Test(trace, of_a_runtime_that_samples_nothing_is_refused)
{
        sl_stats_dispatcher_samples(stats, 0, 0);
        cr_expect_eq(trace_begin(&trace, view, 1, NULL), -ENODATA);
}

static uint64_t noise(uint64_t *seed)
{
        *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
        return *seed >> 17;
}

/* Whoever scribbles on the page gets a trace of nonsense: never more than the page has, never without an end. */
Test(trace, of_a_scribbled_page_ends)
{
        uint64_t seed = 5;

        begin(UINT32_MAX);
        for (uint32_t round = 0; round < 50; round++) {
                for (uint32_t i = 0; i < recorder.n_spans; i++)
                        recorder.spans[i].slot.used = noise(&seed) % (round % 2 ? UINT64_MAX : 9999);
                for (uint32_t i = 0; i < recorder.n_traced; i++)
                        memset(&recorder.traced[i].slot.used, (int)noise(&seed), sizeof(recorder.traced[i]) - 8);
                cr_assert_eq(trace_drain(&trace), 0);
        }
        struct lanes lanes;

        cr_expect_eq(lanes_init(&lanes, &trace), 0);
        lanes_deinit(&lanes);
}

Test(trace, what_overlaps_lies_in_lanes_of_its_own)
{
        static const uint64_t times[][2] = {{100, 200}, {150, 300}, {160, 180}, {200, 250}, {400, 500}};
        uint64_t ends[3] = {0};
        struct lanes lanes;
        uint32_t clients = 0;

        begin(1000);
        for (uint32_t i = 0; i < 5; i++)
                serve(times[i][0], times[i][1]);
        cr_assert_eq(trace_drain(&trace), 0);
        cr_assert_eq(lanes_init(&lanes, &trace), 0);
        for (size_t i = 0; i < lanes.n_items; i++) {
                const struct lane_item *item = &lanes.items[i];

                if (item->kind != LANE_CLIENT)
                        continue;
                cr_assert_lt(item->lane, 3, "three at once at most");
                cr_expect_geq(item->begun_ns, ends[item->lane]);
                cr_expect_eq(item->is_first, ends[item->lane] == 0);
                ends[item->lane] = item->ended_ns;
                clients++;
        }
        cr_expect_eq(clients, 5);
        lanes_deinit(&lanes);
}
