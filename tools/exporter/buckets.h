/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The histograms of a stats page in few buckets: each holds twice what the one before it does, and ends with the last nanosecond of
 * one of the page's own, 32 of which make one of these. So every count is exact: the values of at most 255 ns, 511 ns, ... 68.7 s,
 * and all. Pure; any thread.
 */
#pragma once

#include "histogram.h"

#define BUCKETS_FIRST_BITS 8u  /* the first bound is 2^8 - 1 ns */
#define BUCKETS_LAST_BITS  36u /* the last one before infinity */
#define BUCKET_BOUNDS      (BUCKETS_LAST_BITS - BUCKETS_FIRST_BITS + 1)
#define BUCKETS            (BUCKET_BOUNDS + 1) /* with those above the last bound */

static_assert((UINT64_C(1) << BUCKETS_LAST_BITS) < SL_HISTOGRAM_MAX_NS, "what the page cuts off lies above the last bound");

/* The largest value of bucket @i < BUCKET_BOUNDS. */
static inline uint64_t bucket_bound_ns(uint32_t i)
{
        return (UINT64_C(1) << (BUCKETS_FIRST_BITS + i)) - 1;
}

/* How many values lie in each bucket, those below not included. @histogram may be changing. */
void buckets_fold(const struct sl_histogram *histogram, uint64_t ret_counts[BUCKETS]);
