/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Percentiles are exact: the smallest value that at least the given share of the samples do not exceed.
 */
#include "samples.h"

#include <criterion/criterion.h>
#include <math.h>

Test(samples, percentile_is_the_smallest_value_that_covers_the_share)
{
        struct sl_samples samples;

        cr_assert_eq(sl_samples_init(&samples, 1000), 0);
        for (uint64_t i = 0; i < 1000; i++)
                sl_samples_add(&samples, (i * 7919) % 1000 + 1); /* 1 to 1000 in some order */
        sl_samples_sort(&samples);
        cr_assert_eq(sl_samples_at(&samples, 0.5), 500);
        cr_assert_eq(sl_samples_at(&samples, 0.99), 990);
        cr_assert_eq(sl_samples_at(&samples, 0.999), 999);
        cr_assert_eq(sl_samples_at(&samples, 0), 1);
        cr_assert_eq(sl_samples_at(&samples, 1), 1000);
        cr_assert_eq(sl_samples_mean(&samples), 500.5);
        sl_samples_deinit(&samples);
}

Test(samples, one_outlier_in_a_thousand_shows_only_above_its_share)
{
        struct sl_samples samples;

        cr_assert_eq(sl_samples_init(&samples, 1000), 0);
        sl_samples_add(&samples, 1000000);
        for (int i = 0; i < 999; i++)
                sl_samples_add(&samples, 10);
        sl_samples_sort(&samples);
        cr_assert_eq(sl_samples_at(&samples, 0.999), 10);
        cr_assert_eq(sl_samples_at(&samples, 0.9991), 1000000);
        sl_samples_deinit(&samples);
}

Test(samples, no_sample_is_no_number)
{
        struct sl_samples samples;

        cr_assert_eq(sl_samples_init(&samples, 1), 0);
        sl_samples_sort(&samples);
        cr_assert(isnan(sl_samples_at(&samples, 0.5)));
        cr_assert(isnan(sl_samples_mean(&samples)));
        sl_samples_deinit(&samples);
}

Test(samples, what_finds_no_room_is_dropped)
{
        struct sl_samples samples;

        cr_assert_eq(sl_samples_init(&samples, 2), 0);
        for (uint64_t i = 1; i <= 5; i++)
                sl_samples_add(&samples, i);
        cr_assert_eq(samples.n, 2);
        cr_assert_eq(samples.values[1], 2);
        sl_samples_deinit(&samples);
}
