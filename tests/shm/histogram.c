/* SPDX-License-Identifier: Apache-2.0 */
#include "histogram.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct sl_histogram *new_histogram(void)
{
        struct sl_histogram *histogram = aligned_alloc(64, sizeof(*histogram));

        cr_assert_not_null(histogram);
        memset(histogram, 0, sizeof(*histogram));
        return histogram;
}

static void expect_bound(uint64_t ns)
{
        uint64_t value = sl_histogram_value(sl_histogram_bucket(ns));
        uint64_t error = value > ns ? value - ns : ns - value;

        cr_assert_leq(error * 1000, ns * 16, "%lu ns counts as %lu", (unsigned long)ns, (unsigned long)value);
}

Test(histogram, the_relative_error_is_at_most_1_6_percent_from_1_ns_to_100_s)
{
        for (uint64_t ns = 1; ns < 1000000; ns++)
                expect_bound(ns);
        /* Above, the edges of every bucket: the error is largest there. */
        for (uint32_t shift = 14; shift <= 31; shift++)
                for (uint64_t low = 32; low < 64; low++)
                        for (int64_t edge = -1; edge <= 1; edge++)
                                if ((low << shift) + edge <= SL_HISTOGRAM_MAX_NS)
                                        expect_bound((low << shift) + edge);
        expect_bound(SL_HISTOGRAM_MAX_NS);
}

Test(histogram, buckets_are_gapless_and_in_order)
{
        uint32_t last = 0;

        for (uint64_t ns = 0; ns <= SL_HISTOGRAM_MAX_NS; ns += 1 + ns / 200) {
                uint32_t bucket = sl_histogram_bucket(ns);

                cr_assert_geq(bucket, last);
                cr_assert_leq(bucket, last + 1);
                cr_assert_lt(bucket, SL_HISTOGRAM_BUCKETS);
                last = bucket;
        }
        cr_expect_eq(sl_histogram_bucket(SL_HISTOGRAM_MAX_NS), 1038);
        cr_expect_eq(sl_histogram_bucket(UINT64_MAX), 1038);
        for (uint32_t bucket = 0; bucket < 1038; bucket++)
                cr_assert_eq(sl_histogram_bucket(sl_histogram_value(bucket)), bucket);
}

Test(histogram, values_above_the_range_are_clamped_and_counted)
{
        struct sl_histogram *h = new_histogram();

        sl_histogram_record(h, SL_HISTOGRAM_MAX_NS);
        sl_histogram_record(h, SL_HISTOGRAM_MAX_NS + 1);
        sl_histogram_record(h, 10 * SL_HISTOGRAM_MAX_NS);
        cr_expect_eq(sl_counter_read(&h->count), 3);
        cr_expect_eq(sl_counter_read(&h->clamped), 2);
        cr_expect_eq(sl_counter_read(&h->max_ns), 10 * SL_HISTOGRAM_MAX_NS);
        cr_expect_eq(sl_counter_read(&h->sum_ns), 12 * SL_HISTOGRAM_MAX_NS + 1);
        cr_expect_eq(sl_counter_read(&h->buckets[1038]), 3);
        free(h);
}

Test(histogram, quantiles_are_those_of_the_values_within_the_bound)
{
        struct sl_histogram *h = new_histogram();

        for (uint64_t i = 1; i <= 10000; i++)
                sl_histogram_record(h, i * 1000);
        for (int permille = 1; permille <= 1000; permille++) {
                double exact = permille * 10000.0, got = (double)sl_histogram_quantile(h, permille / 1000.0);

                cr_assert_leq(got, exact * 1.016);
                cr_assert_geq(got, exact * 0.984);
        }
        cr_expect_eq(sl_histogram_quantile(h, 1.0), 10000000, "the maximum is exact");
        cr_expect_eq(sl_histogram_quantile(h, 7.0), 10000000);
        cr_expect_geq(sl_histogram_quantile(h, -1.0), 984);
        cr_expect_eq(sl_histogram_mean(h), 5000500.0);
        free(h);
}

Test(histogram, an_empty_one_answers_zero)
{
        struct sl_histogram *h = new_histogram();

        cr_expect_eq(sl_histogram_quantile(h, 0.5), 0);
        cr_expect_eq(sl_histogram_mean(h), 0);
        free(h);
}

Test(histogram, a_merge_is_as_if_all_had_been_recorded_in_one)
{
        struct sl_histogram *a = new_histogram(), *b = new_histogram(), *both = new_histogram();

        for (uint64_t i = 0; i < 5000; i++) {
                uint64_t ns = i * i * 977;

                sl_histogram_record(i % 3 ? a : b, ns);
                sl_histogram_record(both, ns);
        }
        sl_histogram_record(b, 2 * SL_HISTOGRAM_MAX_NS);
        sl_histogram_record(both, 2 * SL_HISTOGRAM_MAX_NS);
        sl_histogram_merge(a, b);
        cr_expect_eq(memcmp(a, both, sizeof(*a)), 0);
        free(a);
        free(b);
        free(both);
}

#define VALUES 100000

static void *record_on(void *context)
{
        for (uint64_t i = 0; i < VALUES; i++)
                sl_histogram_record(context, 1000 + i % 64);
        return NULL;
}

Test(histogram, a_reader_sees_only_what_was_recorded_while_it_changes)
{
        struct sl_histogram *h = new_histogram();
        pthread_t thread;
        uint64_t q;

        cr_assert_eq(pthread_create(&thread, NULL, record_on, h), 0);
        do {
                q = sl_histogram_quantile(h, 0.5);
                cr_assert(q <= 1064 * 1.016 && (q == 0 || q >= 984));
        } while (sl_counter_read(&h->count) < VALUES);
        pthread_join(thread, NULL);
        cr_expect_eq(sl_counter_read(&h->count), VALUES, "one writer loses nothing");
        free(h);
}

static void *record_shared_on(void *context)
{
        for (uint64_t i = 0; i < VALUES; i++)
                sl_histogram_record_shared(context, i);
        return NULL;
}

Test(histogram, several_writers_of_a_shared_one_lose_nothing)
{
        struct sl_histogram *h = new_histogram();
        pthread_t threads[2];

        for (int i = 0; i < 2; i++)
                cr_assert_eq(pthread_create(&threads[i], NULL, record_shared_on, h), 0);
        for (int i = 0; i < 2; i++)
                pthread_join(threads[i], NULL);
        cr_expect_eq(sl_counter_read(&h->count), 2 * VALUES);
        cr_expect_eq(sl_counter_read(&h->max_ns), VALUES - 1);
        free(h);
}
