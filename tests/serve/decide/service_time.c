/* SPDX-License-Identifier: Apache-2.0 */
#include "service_time.h"

#include <criterion/criterion.h>

#define SLICE_NS 10000000u

Test(times, bounds_nothing_before_anything_is_known)
{
        struct sl_service_time times = {0};

        cr_expect_eq(sl_service_time_samples(&times, SLICE_NS, 128), 128);
        cr_expect_eq(sl_service_time_ns(&times, 128), 0);
}

Test(times, as_many_samples_fit_a_slice_as_their_jobs_take_and_one_always_does)
{
        static const struct {
                uint64_t sample_ns;
                uint32_t fits;
        } rows[] = {{1000, 128}, {78125, 128}, {79000, 126}, {1000000, 10}, {3300000, 3}, {10000000, 1}, {69000000, 1}};

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct sl_service_time times = {0};

                sl_service_time_learn(&times, 1, rows[i].sample_ns);
                cr_expect_eq(sl_service_time_samples(&times, SLICE_NS, 128), rows[i].fits, "%llu ns a sample: %u",
                        (unsigned long long)rows[i].sample_ns, sl_service_time_samples(&times, SLICE_NS, 128));
        }
}

/* A batch of 32 that is cheaper a sample than single ones lets larger jobs be tried, one that is dearer holds them back. */
Test(times, what_larger_jobs_take_counts_for_larger_jobs)
{
        struct sl_service_time cheap = {0}, dear = {0};

        sl_service_time_learn(&cheap, 1, 1000000);
        sl_service_time_learn(&cheap, 32, 3200000);
        cr_expect_eq(sl_service_time_samples(&cheap, SLICE_NS, 128), 100);
        sl_service_time_learn(&dear, 1, 100000);
        sl_service_time_learn(&dear, 32, 32000000);
        cr_expect_eq(sl_service_time_samples(&dear, SLICE_NS, 128), 16);
}

Test(times, follows_a_model_that_has_become_slower_or_faster)
{
        struct sl_service_time times = {0};

        for (int i = 0; i < 30; i++)
                sl_service_time_learn(&times, 1, 1000000);
        for (int i = 0; i < 30; i++)
                sl_service_time_learn(&times, 1, 5000000);
        cr_expect_eq(sl_service_time_samples(&times, SLICE_NS, 128), 2);
        for (int i = 0; i < 30; i++)
                sl_service_time_learn(&times, 1, 100000);
        cr_expect_geq(sl_service_time_samples(&times, SLICE_NS, 128), 99);
}

/* 8 ms were known; a doubted time falls at once, and rises as any. */
Test(times, what_is_doubted_is_what_the_next_job_takes_if_that_is_less)
{
        static const struct {
                uint64_t took_ns, known_ns;
        } rows[] = {{1000000, 1000000}, {8000000, 8000000}, {12000000, 9000000}, {800000000, 14000000}, {0, 6000000}};

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct sl_service_time times = {0};

                sl_service_time_learn(&times, 1, 8000000);
                sl_service_time_doubt(&times);
                sl_service_time_learn(&times, 1, rows[i].took_ns);
                cr_expect_eq(sl_service_time_ns(&times, 1), rows[i].known_ns, "row %zu", i);
                sl_service_time_learn(&times, 1, rows[i].known_ns / 2);
                cr_expect_eq(sl_service_time_ns(&times, 1), rows[i].known_ns - rows[i].known_ns / 8, "no longer doubted");
        }
}

static void learn_often(struct sl_service_time *times, uint32_t jobs, uint32_t samples, uint64_t sample_ns)
{
        for (uint32_t i = 0; i < jobs; i++)
                sl_service_time_learn(times, samples, samples * sample_ns);
}

/* Batches of 32 were slow once, and are no longer let out: single ones say nothing of that, but in the long run. */
Test(times, a_size_that_was_slow_once_is_tried_again)
{
        struct sl_service_time times = {0};

        learn_often(&times, 30, 1, 100000);
        learn_often(&times, 30, 32, 4000000);
        cr_expect_eq(sl_service_time_samples(&times, SLICE_NS, 128), 16);
        learn_often(&times, 1000, 1, 100000);
        cr_expect_eq(sl_service_time_samples(&times, SLICE_NS, 128), 16, "it is not forgotten at once");
        learn_often(&times, 3000, 1, 100000);
        cr_expect_geq(sl_service_time_samples(&times, SLICE_NS, 128), 17);
        learn_often(&times, 4, 32, 4000000);
        cr_expect_eq(sl_service_time_samples(&times, SLICE_NS, 128), 16, "a few say that it is still so");
}

/* Whoever asks for one sample is told what it takes, though only large jobs come. */
Test(times, a_small_job_is_not_thought_to_take_longer_than_a_large_one_for_ever)
{
        struct sl_service_time times = {0};

        learn_often(&times, 30, 1, 40000000);
        learn_often(&times, 10000, 32, 100000);
        cr_expect_leq(sl_service_time_ns(&times, 1), 32 * 100000 * 11 / 10);
        cr_expect_geq(sl_service_time_ns(&times, 1), 32 * 100000);
        cr_expect_eq(sl_service_time_ns(&times, 32), 32 * 100000, "the dear one says nothing of the cheap one");
}
