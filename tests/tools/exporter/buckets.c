/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms in few buckets: every count is exact. */
#include "buckets.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct sl_histogram histogram;
static uint64_t counts[BUCKETS];

static uint64_t up_to(uint32_t bound)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i <= bound; i++)
                sum += counts[i];
        return sum;
}

Test(exporter_buckets, a_bound_is_the_last_value_of_one_of_the_pages_buckets)
{
        for (uint32_t i = 0; i < BUCKET_BOUNDS; i++)
                cr_expect_lt(sl_histogram_bucket(bucket_bound_ns(i)), sl_histogram_bucket(bucket_bound_ns(i) + 1), "bound %u", i);
        cr_expect_eq(bucket_bound_ns(0), 255);
        cr_expect_eq(bucket_bound_ns(BUCKET_BOUNDS - 1), 68719476735ull);
}

Test(exporter_buckets, a_value_at_its_bound_counts_there_and_the_next_one_does_not)
{
        for (uint32_t i = 0; i < BUCKET_BOUNDS; i++) {
                memset(&histogram, 0, sizeof(histogram));
                sl_histogram_record(&histogram, bucket_bound_ns(i));
                sl_histogram_record(&histogram, bucket_bound_ns(i) + 1);
                buckets_fold(&histogram, counts);
                cr_expect(up_to(i) == 1 && up_to(i + 1) == 2 && counts[i] == 1, "bound %u", i);
        }
}

Test(exporter_buckets, counts_are_those_of_the_values_themselves)
{
        uint64_t exact[BUCKET_BOUNDS] = {0};
        const uint32_t n = 20000;

        memset(&histogram, 0, sizeof(histogram));
        srand48(7);
        for (uint32_t k = 0; k < n; k++) {
                uint64_t ns = ((uint64_t)mrand48() << 16) >> (lrand48() % 60);

                sl_histogram_record(&histogram, ns);
                for (uint32_t i = 0; i < BUCKET_BOUNDS; i++)
                        exact[i] += ns <= bucket_bound_ns(i);
        }
        buckets_fold(&histogram, counts);
        for (uint32_t i = 0; i < BUCKET_BOUNDS; i++)
                cr_expect_eq(up_to(i), exact[i], "up to %llu ns", (unsigned long long)bucket_bound_ns(i));
        cr_expect_eq(up_to(BUCKET_BOUNDS), n, "those above the last bound too");
}
