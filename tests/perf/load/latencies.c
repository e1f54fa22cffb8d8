/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantiles are those of the values, within half a bucket of 1/256; nothing that is added is lost.
 */
#include "latencies.h"

#include "random.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N 200000u

static const double shares[] = {0, 0.001, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 1};

static struct sl_latencies fresh(void)
{
        struct sl_latencies latencies;

        cr_assert_eq(sl_latencies_init(&latencies), 0);
        return latencies;
}

static int by_value(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

/* What a service shows: a body, a tail over many scales, and now and then a stall. */
static uint64_t value_of(struct sl_random *random, int kind)
{
        switch (kind) {
        case 0:
                return (uint64_t)sl_random_exponential(random, 1e6);
        case 1:
                return (uint64_t)pow(10, 2 + 9 * sl_random_uniform(random));
        case 2:
                return (uint64_t)(sl_random_uniform(random) * 600);
        default:
                return sl_random_uniform(random) < 0.001 ? 3000000000u : 5000 + (uint64_t)(sl_random_uniform(random) * 100);
        }
}

Test(latencies, quantiles_are_those_of_the_sorted_values_within_1_in_512)
{
        uint64_t *values = malloc(N * sizeof(*values));

        for (int kind = 0; kind < 4; kind++) {
                struct sl_latencies latencies = fresh();
                struct sl_random random;
                double sum = 0;

                sl_random_seed(&random, 1, (uint64_t)kind);
                for (uint32_t i = 0; i < N; i++) {
                        sl_latencies_add(&latencies, values[i] = value_of(&random, kind));
                        sum += (double)values[i];
                }
                qsort(values, N, sizeof(*values), by_value);
                for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
                        double rank = fmax(1, ceil(shares[i] * N)), exact = (double)values[(uint32_t)rank - 1];

                        cr_expect_float_eq(sl_latencies_at(&latencies, shares[i]), exact, exact / 512, "kind %d, %g: %g for %g",
                                kind, shares[i], sl_latencies_at(&latencies, shares[i]), exact);
                }
                cr_expect_eq(sl_latencies_at(&latencies, 1), values[N - 1], "the maximum is exact");
                cr_expect_eq(latencies.least, values[0]);
                cr_expect_float_eq(sl_latencies_mean(&latencies), sum / N, 1e-6 * sum / N);
                sl_latencies_deinit(&latencies);
        }
        free(values);
}

Test(latencies, percentile_is_the_smallest_value_that_covers_the_share)
{
        struct sl_latencies latencies = fresh();

        for (uint64_t i = 0; i < 500; i++)
                sl_latencies_add(&latencies, (i * 7919) % 500 + 1); /* 1 to 500 in some order */
        cr_expect_eq(sl_latencies_at(&latencies, 0.5), 250);
        cr_expect_eq(sl_latencies_at(&latencies, 0.99), 495);
        cr_expect_eq(sl_latencies_at(&latencies, 0.9901), 496);
        cr_expect_eq(sl_latencies_at(&latencies, 0), 1);
        cr_expect_eq(sl_latencies_at(&latencies, 1), 500);
        cr_expect_eq(sl_latencies_mean(&latencies), 250.5);
        sl_latencies_deinit(&latencies);
}

Test(latencies, buckets_are_gapless_narrow_and_in_order)
{
        for (uint32_t bucket = 0; bucket < SL_LATENCIES_BUCKETS; bucket++) {
                uint64_t begin = sl_latencies_begin(bucket), last = sl_latencies_begin(bucket + 1) - 1;

                if (bucket == SL_LATENCIES_BUCKETS - 1)
                        last = UINT64_MAX;
                cr_assert_geq(last, begin);
                cr_assert_eq(sl_latencies_bucket(begin), bucket);
                cr_assert_eq(sl_latencies_bucket(last), bucket);
                cr_assert_leq((double)(last - begin), (double)begin / 256);
        }
}

Test(latencies, one_outlier_in_a_thousand_shows_only_above_its_share)
{
        struct sl_latencies latencies = fresh();

        sl_latencies_add(&latencies, 1000000);
        for (int i = 0; i < 999; i++)
                sl_latencies_add(&latencies, 10);
        cr_expect_eq(sl_latencies_at(&latencies, 0.999), 10);
        cr_expect_eq(sl_latencies_at(&latencies, 0.9991), 1000000);
        sl_latencies_deinit(&latencies);
}

Test(latencies, nothing_is_too_many_or_too_large)
{
        struct sl_latencies latencies = fresh();

        for (uint32_t i = 0; i < 10000000; i++)
                sl_latencies_add(&latencies, i < 9000000 ? 100 : 100000);
        sl_latencies_add(&latencies, UINT64_MAX);
        cr_expect_eq(latencies.n, 10000001);
        cr_expect_eq(sl_latencies_at(&latencies, 0.8999), 100);
        cr_expect_float_eq(sl_latencies_at(&latencies, 0.9001), 100000, 200);
        cr_expect_eq(sl_latencies_at(&latencies, 1), (double)UINT64_MAX);
        sl_latencies_deinit(&latencies);
}

Test(latencies, merged_ones_are_those_of_all_values)
{
        struct sl_latencies whole = fresh(), one = fresh(), other = fresh();
        struct sl_random random;

        sl_random_seed(&random, 3, 0);
        for (uint32_t i = 0; i < N; i++) {
                uint64_t value = value_of(&random, 1);

                sl_latencies_add(&whole, value);
                sl_latencies_add(i % 3 ? &one : &other, value);
        }
        sl_latencies_merge(&one, &other);
        cr_expect_eq(memcmp(one.buckets, whole.buckets, SL_LATENCIES_BUCKETS * sizeof(*one.buckets)), 0);
        cr_expect_eq(one.n, whole.n);
        cr_expect_eq(one.least, whole.least);
        cr_expect_eq(one.most, whole.most);
        cr_expect_float_eq(one.sum / whole.sum, 1, 1e-12);
        sl_latencies_deinit(&whole);
        sl_latencies_deinit(&one);
        sl_latencies_deinit(&other);
}

Test(latencies, what_is_above_an_objective_is_counted)
{
        struct sl_latencies latencies = fresh();

        for (uint64_t i = 1; i <= 500; i++)
                sl_latencies_add(&latencies, i);
        cr_expect_eq(sl_latencies_above(&latencies, 500), 0);
        cr_expect_eq(sl_latencies_above(&latencies, 400), 100);
        cr_expect_eq(sl_latencies_above(&latencies, 0), 500);
        sl_latencies_deinit(&latencies);
}

Test(latencies, no_value_is_no_number)
{
        struct sl_latencies latencies = fresh();

        cr_expect(isnan(sl_latencies_at(&latencies, 0.5)));
        cr_expect(isnan(sl_latencies_mean(&latencies)));
        sl_latencies_add(&latencies, 7);
        sl_latencies_clear(&latencies);
        cr_expect(isnan(sl_latencies_at(&latencies, 1)));
        sl_latencies_deinit(&latencies);
}
