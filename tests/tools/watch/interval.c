/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened between two looks at a stats page: rates, and percentiles that are those of just the values in between.
 */
#include "interval.h"
#include "made.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(interval, .init = made_init, .fini = made_deinit);
TestSuite(snapshot, .init = made_init, .fini = made_deinit);

#define VALUES 20000u

static uint64_t roll(uint64_t *seed)
{
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        return *seed >> 33;
}

/* Log-uniform from 100 ns on, over @decades. */
static uint64_t latency(uint64_t *seed, double decades)
{
        return (uint64_t)(100 * pow(10, decades * (double)(roll(seed) % 1000000) / 1e6));
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

/* The smallest value with at least that share of all at or below it. */
static uint64_t exact(const uint64_t *sorted, uint32_t n, double q)
{
        return sorted[(uint32_t)ceil(q * n) - 1];
}

static void expect_near(uint64_t value, uint64_t wanted)
{
        cr_expect(fabs((double)value - (double)wanted) <= (double)wanted / 64 + 1, "%llu, exactly %llu", (unsigned long long)value,
                (unsigned long long)wanted);
}

static struct sl_histogram *new_histogram(void)
{
        struct sl_histogram *histogram = aligned_alloc(64, sizeof(*histogram));

        memset(histogram, 0, sizeof(*histogram));
        return histogram;
}

Test(interval, percentiles_are_those_of_the_values_in_between_within_the_error_of_a_bucket)
{
        struct sl_histogram *before = new_histogram(), *now = new_histogram(), *between = new_histogram();
        uint64_t *values = malloc(VALUES * sizeof(*values)), seed = 1;
        struct stage_times times;

        for (uint32_t i = 0; i < VALUES; i++) { /* much slower ones before */
                uint64_t old = 100 * latency(&seed, 3);

                sl_histogram_record(before, old);
                sl_histogram_record(now, old);
        }
        for (uint32_t i = 0; i < VALUES; i++) {
                values[i] = latency(&seed, 4);
                sl_histogram_record(now, values[i]);
        }
        qsort(values, VALUES, sizeof(*values), compare);
        histogram_since(between, before, now);
        stage_times_of(between, &times);
        cr_expect_eq(times.count, VALUES);
        expect_near(times.p50_ns, exact(values, VALUES, 0.5));
        expect_near(times.p99_ns, exact(values, VALUES, 0.99));
        expect_near(times.p999_ns, exact(values, VALUES, 0.999));
        expect_near(times.max_ns, values[VALUES - 1]);
        free(values);
        free(before);
        free(now);
        free(between);
}

Test(interval, a_new_largest_value_is_exact_and_an_old_one_is_not_taken_for_it)
{
        struct sl_histogram *before = new_histogram(), *now = new_histogram(), *between = new_histogram();

        sl_histogram_record(before, 1000000);
        sl_histogram_record(now, 1000000);
        sl_histogram_record(now, 5000);
        histogram_since(between, before, now);
        expect_near(sl_counter_read(&between->max_ns), 5000);
        sl_histogram_record(now, 1234567);
        histogram_since(between, before, now);
        cr_expect_eq(sl_counter_read(&between->max_ns), 1234567);
        histogram_since(between, now, now);
        cr_expect_eq(sl_counter_read(&between->max_ns), 0, "nothing happened");
        histogram_since(between, now, before);
        cr_expect_eq(sl_counter_read(&between->count), 1, "it has another owner, and counts from zero");
        free(before);
        free(now);
        free(between);
}

static void record(struct sl_model_counting *counting, uint64_t requests, uint64_t samples)
{
        sl_model_count(counting, requests, requests);
        sl_model_count(counting, samples, samples);
        sl_model_count(counting, batches, requests);
        sl_model_count(counting, batch_samples, samples);
}

Test(interval, rates_are_of_the_time_between_two_looks)
{
        struct sl_stats *stats = made_stats();
        struct sl_model_counting counting;
        struct snapshot *before, *now;
        struct interval interval;

        sl_stats_model_add(stats, "a", &counting, NULL);
        record(&counting, 1000, 1000);
        sl_model_record(&counting, SL_STAGE_TOTAL, 1000000000);
        before = made_snapshot();
        record(&counting, 30, 120);
        sl_model_count(&counting, failed, 6);
        sl_model_record(&counting, SL_STAGE_TOTAL, 2000);
        now = made_snapshot();
        now->taken_ns = before->taken_ns + 3000000000;
        cr_assert_eq(interval_init(&interval, before, now), 0);
        cr_expect_not(interval.from_start);
        cr_expect_float_eq(interval.seconds, 3, 1e-9);
        const struct model_interval *a = &interval.models[1];
        cr_assert_str_eq(a->now->slot.name, "a");
        cr_expect_float_eq(a->per_second.requests, 10, 1e-9);
        cr_expect_float_eq(a->per_second.samples, 40, 1e-9);
        cr_expect_float_eq(a->per_second.failed, 2, 1e-9);
        cr_expect_float_eq(a->batch_samples, 4, 1e-9);
        expect_near(a->stages[SL_STAGE_TOTAL].p99_ns, 2000);
        cr_expect_float_eq(interval.all.per_second.requests, 10, 1e-9);
        expect_near(interval.all.stages[SL_STAGE_TOTAL].p99_ns, 2000);
        interval_deinit(&interval);
        snapshot_free(before);
        snapshot_free(now);
        sl_stats_free(stats);
}

Test(interval, without_an_earlier_look_it_begins_with_the_runtime)
{
        struct sl_stats *stats = made_stats();
        struct sl_model_counting counting;
        struct interval interval;
        struct snapshot *now;

        sl_stats_model_add(stats, "a", &counting, NULL);
        record(&counting, 100, 100);
        now = made_snapshot();
        now->taken_ns = now->header.started_ns + 50 * 1000000000ull;
        cr_assert_eq(interval_init(&interval, NULL, now), 0);
        cr_expect(interval.from_start);
        cr_expect_float_eq(interval.models[1].per_second.requests, 2, 1e-9);
        interval_deinit(&interval);
        snapshot_free(now);
        sl_stats_free(stats);
}

Test(interval, a_slot_that_somebody_else_has_now_counts_from_zero)
{
        struct sl_stats *stats = made_stats();
        struct sl_client_stats *client;
        struct sl_worker_stats *worker;
        struct snapshot *before, *now;
        struct interval interval;

        sl_stats_client_add(stats, &(struct sl_client_stats){.id = 1}, &client);
        sl_stats_worker_add(stats, &(struct sl_worker_stats){.model = "a"}, true, &worker);
        sl_counter_add(&client->requests, 1000);
        sl_counter_add(&worker->batches, 1000);
        before = made_snapshot();
        sl_stats_client_remove(stats, client);
        sl_stats_worker_remove(stats, worker);
        sl_stats_client_add(stats, &(struct sl_client_stats){.id = 2}, &client);
        sl_stats_worker_add(stats, &(struct sl_worker_stats){.model = "b"}, true, &worker);
        sl_counter_add(&client->requests, 1003);
        sl_counter_add(&worker->batches, 5);
        sl_histogram_record(&sl_stats_worker_histograms(stats, worker)->stages[SL_STAGE_TOTAL], 700);
        now = made_snapshot();
        now->taken_ns = before->taken_ns + 1000000000;
        cr_assert_eq(interval_init(&interval, before, now), 0);
        cr_expect_float_eq(interval.clients[0].per_second.requests, 1003, 1e-6);
        cr_expect_float_eq(interval.workers[0].per_second.batches, 5, 1e-6);
        expect_near(interval.workers[0].total.p50_ns, 700);
        interval_deinit(&interval);
        snapshot_free(before);
        snapshot_free(now);
        sl_stats_free(stats);
}

Test(interval, another_runtime_is_not_compared_with_the_one_before_it)
{
        struct sl_stats *stats = made_stats();
        struct sl_model_counting counting;
        struct snapshot *before, *now;
        struct interval interval;

        sl_stats_model_add(stats, "a", &counting, NULL);
        record(&counting, 100, 100);
        before = made_snapshot();
        sl_stats_free(stats);
        stats = made_stats();
        sl_stats_model_add(stats, "a", &counting, NULL);
        record(&counting, 110, 110);
        now = made_snapshot();
        cr_assert_eq(interval_init(&interval, before, now), 0);
        cr_expect(interval.from_start);
        interval_deinit(&interval);
        snapshot_free(before);
        snapshot_free(now);
        sl_stats_free(stats);
}

Test(interval, what_waits_is_the_sum_of_both_queues_of_a_name_and_the_oldest_counts)
{
        struct sl_stats *stats = made_stats();
        struct sl_queue_stats *requests, *draining, *segments;
        struct sl_model_counting counting;
        struct interval interval;
        struct snapshot *now;

        sl_stats_model_add(stats, "a", &counting, NULL);
        sl_stats_queue_add(stats, "a", SL_STATS_QUEUE_REQUESTS, &requests);
        sl_stats_queue_add(stats, "a", SL_STATS_QUEUE_REQUESTS, &draining);
        sl_stats_queue_add(stats, "a", SL_STATS_QUEUE_SEGMENTS, &segments);
        sl_counter_set(&requests->depth, 3);
        sl_counter_set(&requests->oldest_ns, 5000);
        sl_counter_set(&draining->depth, 2);
        sl_counter_set(&draining->oldest_ns, 4000);
        sl_counter_set(&segments->depth, 7);
        sl_counter_set(&segments->samples, 70);
        now = made_snapshot();
        cr_expect_eq(now->n_queues, 2);
        cr_assert_eq(interval_init(&interval, NULL, now), 0);
        cr_expect_eq(interval.models[1].waiting.requests, 5);
        cr_expect_eq(interval.models[1].waiting.segments, 7);
        cr_expect_eq(interval.models[1].waiting.samples, 70);
        cr_expect_eq(interval.models[1].waiting.oldest_age_ns, now->taken_ns - 4000);
        interval_deinit(&interval);
        snapshot_free(now);
        sl_stats_free(stats);
}

Test(interval, busy_is_the_share_of_what_runs_at_once)
{
        struct sl_stats *stats = made_stats();
        struct sl_worker_stats *worker;
        struct snapshot *before, *now;
        struct sl_let_stats *let;
        struct interval interval;

        sl_stats_let_add(stats, &(struct sl_let_stats){.name = "worker cores", .at_once = 4}, &let);
        sl_stats_worker_add(stats, &(struct sl_worker_stats){.model = "a"}, false, &worker);
        before = made_snapshot();
        sl_counter_add(&let->busy_ns, 2000000000);
        sl_counter_add(&worker->busy_ns, 250000000);
        now = made_snapshot();
        now->taken_ns = before->taken_ns + 1000000000;
        cr_assert_eq(interval_init(&interval, before, now), 0);
        cr_expect_float_eq(interval.lets[0].busy, 0.5, 1e-9);
        cr_expect_float_eq(interval.workers[0].busy, 0.25, 1e-9);
        interval_deinit(&interval);
        snapshot_free(before);
        snapshot_free(now);
        sl_stats_free(stats);
}

/* Sizes come and go; what is counted with them does not fall. */
Test(snapshot, an_open_model_has_what_its_sizes_count_and_had_counted)
{
        struct sl_stats *stats = made_stats();
        static const char *const names[] = {"net", "net[64]", "net[128]", "other"};
        static const uint32_t kinds[] = {SL_STATS_MODEL_OPEN, SL_STATS_MODEL_SIZES, SL_STATS_MODEL_SIZES, SL_STATS_MODEL_PLAIN};
        struct sl_model_counting counting[4];

        for (uint32_t i = 0; i < 4; i++) {
                cr_assert_eq(sl_stats_model_add(stats, names[i], &counting[i], NULL), 0);
                sl_stats_model_show(&counting[i], &(struct sl_model_stats){.kind = kinds[i]});
                sl_model_count(&counting[i], requests, 10u + i);
        }
        for (uint32_t left = 0; left < 3; left++) {
                struct snapshot *now = made_snapshot();

                cr_assert_eq(now->n_models, 5 - left);
                cr_expect_str_eq(now->models[1].slot.name, "net");
                cr_expect(now->models[1].has_sizes && !now->models[4 - left].has_sizes);
                cr_expect_eq(now->models[1].with_sizes.requests, 10 + 11 + 12, "%u have left", left);
                snapshot_free(now);
                if (left < 2)
                        sl_stats_model_remove(stats, &counting[1 + left]);
        }
        sl_stats_free(stats);
}
