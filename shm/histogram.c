/* SPDX-License-Identifier: Apache-2.0 */
#include "histogram.h"

static void raise_to(_Atomic uint64_t *max, uint64_t value)
{
        uint64_t old = atomic_load_explicit(max, memory_order_relaxed);

        while (value > old && !atomic_compare_exchange_weak_explicit(max, &old, value, memory_order_relaxed, memory_order_relaxed))
                ;
}

void sl_histogram_record_shared(struct sl_histogram *histogram, uint64_t ns)
{
        atomic_fetch_add_explicit(&histogram->buckets[sl_histogram_bucket(ns)], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&histogram->count, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&histogram->sum_ns, ns, memory_order_relaxed);
        raise_to(&histogram->max_ns, ns);
        if (ns > SL_HISTOGRAM_MAX_NS)
                atomic_fetch_add_explicit(&histogram->clamped, 1, memory_order_relaxed);
}

uint64_t sl_histogram_value(uint32_t bucket)
{
        if (bucket < 64)
                return bucket;

        uint32_t shift = bucket / 32 - 1;
        uint64_t low = (uint64_t)(bucket - 32 * shift) << shift;

        return low + (UINT64_C(1) << shift) / 2;
}

/* The sum of the buckets, not `count`: the two are not read at one moment. */
static uint64_t sum_of_buckets(const struct sl_histogram *histogram)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < SL_HISTOGRAM_BUCKETS; i++)
                sum += sl_counter_read(&histogram->buckets[i]);
        return sum;
}

/* Values at or below the wanted one: the smallest whole number that is at least q * n, and at least 1. */
static uint64_t rank_of(double q, uint64_t n)
{
        double exact = q * (double)n;
        uint64_t rank = exact <= 0 ? 0 : (uint64_t)exact;

        if ((double)rank < exact)
                rank++;
        if (rank < 1)
                return 1;
        return rank < n ? rank : n;
}

uint64_t sl_histogram_quantile(const struct sl_histogram *histogram, double q)
{
        uint64_t n = sum_of_buckets(histogram);
        uint64_t max_ns = sl_counter_read(&histogram->max_ns);
        uint64_t below = 0;

        if (n == 0)
                return 0;

        uint64_t rank = rank_of(q, n);

        for (uint32_t i = 0; i < SL_HISTOGRAM_BUCKETS; i++) {
                below += sl_counter_read(&histogram->buckets[i]);
                if (below >= rank) {
                        uint64_t value = sl_histogram_value(i);

                        return value < max_ns ? value : max_ns;
                }
        }
        return max_ns;
}

double sl_histogram_mean(const struct sl_histogram *histogram)
{
        uint64_t count = sl_counter_read(&histogram->count);

        return count ? (double)sl_counter_read(&histogram->sum_ns) / (double)count : 0;
}

void sl_histogram_merge(struct sl_histogram *into, const struct sl_histogram *from)
{
        for (uint32_t i = 0; i < SL_HISTOGRAM_BUCKETS; i++)
                sl_counter_add(&into->buckets[i], sl_counter_read(&from->buckets[i]));
        sl_counter_add(&into->count, sl_counter_read(&from->count));
        sl_counter_add(&into->sum_ns, sl_counter_read(&from->sum_ns));
        sl_counter_add(&into->clamped, sl_counter_read(&from->clamped));
        raise_to(&into->max_ns, sl_counter_read(&from->max_ns));
}
