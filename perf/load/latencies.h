/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log-linear histogram of measured values, in whatever unit: 256 buckets per doubling over all 64 bits, so that nothing that is
 * added is ever dropped or clamped, and the middle of a bucket is at most 1/512 (0.2 %) away from any value in it. Values below 512
 * are exact; so are count, sum, least and most. shm/histogram.h is the coarser one that shared memory has room for.
 *
 * One thread; several fill one each and merge them.
 *
 * Sources: G. Tene, "HdrHistogram", 2012 (buckets that are linear within a power of two).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SL_LATENCIES_SHIFT   8u /* 2^8 buckets per doubling */
#define SL_LATENCIES_BUCKETS ((64u - SL_LATENCIES_SHIFT + 1u) << SL_LATENCIES_SHIFT)

struct sl_latencies {
        uint64_t *buckets;
        uint64_t n, least, most;
        double sum;
};

/* The memory is touched here, so that adding never faults. Return: 0, -ENOMEM. */
int sl_latencies_init(struct sl_latencies *latencies);
void sl_latencies_deinit(struct sl_latencies *latencies);
void sl_latencies_clear(struct sl_latencies *latencies);

/* Adds @from to @into. */
void sl_latencies_merge(struct sl_latencies *into, const struct sl_latencies *from);

static inline uint32_t sl_latencies_bucket(uint64_t value)
{
        if (value < 2u << SL_LATENCIES_SHIFT)
                return (uint32_t)value;

        uint32_t shift = 63u - SL_LATENCIES_SHIFT - (uint32_t)__builtin_clzll(value); /* of the bucket's width */

        return (shift << SL_LATENCIES_SHIFT) + (uint32_t)(value >> shift);
}

static inline void sl_latencies_add(struct sl_latencies *latencies, uint64_t value)
{
        latencies->buckets[sl_latencies_bucket(value)]++;
        latencies->n++;
        latencies->sum += (double)value;
        latencies->least = value < latencies->least ? value : latencies->least;
        latencies->most = value > latencies->most ? value : latencies->most;
}

/* First value of a bucket; of the one behind the last UINT64_MAX. */
uint64_t sl_latencies_begin(uint32_t bucket);

/*
 * The smallest value that at least @share (0 to 1) of all do not exceed: the middle of its bucket, but not outside of least and
 * most. NaN when there is none.
 */
double sl_latencies_at(const struct sl_latencies *latencies, double share);

/* How many are above @value, which stands for its whole bucket. */
uint64_t sl_latencies_above(const struct sl_latencies *latencies, uint64_t value);

/* Exact; NaN when there is none. */
double sl_latencies_mean(const struct sl_latencies *latencies);
