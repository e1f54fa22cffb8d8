/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log-linear histogram of latencies: 32 buckets per doubling, so that the middle of a bucket is at most 1/64 = 1.57 % away from any
 * value in it. From 0 to 63 ns exact; above 100 s everything counts in the last bucket and in `clamped`.
 *
 * Lies in shared memory. Threads: one writer, which never waits; any reader at any time, which sees each bucket at some moment.
 * sl_histogram_record_shared() is for the rare histogram with several writers; the two must not be mixed.
 */
#pragma once

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#define SL_HISTOGRAM_MAX_NS  100000000000ull
#define SL_HISTOGRAM_BUCKETS 1040u /* the bucket of 100 s is number 1038 */

struct sl_histogram {
        alignas(64) _Atomic uint64_t count;
        _Atomic uint64_t sum_ns; /* of the true values, clamped or not */
        _Atomic uint64_t max_ns; /* the true one */
        _Atomic uint64_t clamped;
        uint64_t reserved[4];
        _Atomic uint64_t buckets[SL_HISTOGRAM_BUCKETS];
};
static_assert(sizeof(struct sl_histogram) == 8384, "131 lines");

/* A counter with one writer: no locked instruction. */
static inline void sl_counter_add(_Atomic uint64_t *counter, uint64_t n)
{
        atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline uint64_t sl_counter_read(const _Atomic uint64_t *counter)
{
        return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline uint32_t sl_histogram_bucket(uint64_t ns)
{
        if (ns > SL_HISTOGRAM_MAX_NS)
                ns = SL_HISTOGRAM_MAX_NS;
        if (ns < 32)
                return (uint32_t)ns;

        uint32_t shift = 58u - (uint32_t)__builtin_clzll(ns); /* of the bucket's width */

        return 32 * shift + (uint32_t)(ns >> shift);
}

static inline void sl_histogram_record(struct sl_histogram *histogram, uint64_t ns)
{
        sl_counter_add(&histogram->buckets[sl_histogram_bucket(ns)], 1);
        sl_counter_add(&histogram->count, 1);
        sl_counter_add(&histogram->sum_ns, ns);
        if (ns > sl_counter_read(&histogram->max_ns))
                atomic_store_explicit(&histogram->max_ns, ns, memory_order_relaxed);
        if (ns > SL_HISTOGRAM_MAX_NS)
                sl_counter_add(&histogram->clamped, 1);
}

void sl_histogram_record_shared(struct sl_histogram *histogram, uint64_t ns);

/* The value that a bucket stands for: its middle. */
uint64_t sl_histogram_value(uint32_t bucket);

/* Smallest value with at least @q (0 to 1) of all values at or below it, at most the true maximum; 0 when empty. */
uint64_t sl_histogram_quantile(const struct sl_histogram *histogram, double q);

/* Of the true values, not of the buckets; 0 when empty. */
double sl_histogram_mean(const struct sl_histogram *histogram);

/* Adds @from, which may be changing, to @into, which belongs to the caller. */
void sl_histogram_merge(struct sl_histogram *into, const struct sl_histogram *from);
