/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a calibration has seen of one value: its limits, and how often which numbers occurred. From that come the limits that bytes
 * should span. Plain memory of the caller, zero at first; one thread at a time.
 */
#pragma once

#include <stdint.h>

#define SL_RANGE_BINS 2048

struct sl_range {
        float least, most;
        float reach; /* the bins span [-reach, reach); a power of two; 0: nothing seen yet */
        uint64_t seen;
        uint64_t bins[SL_RANGE_BINS];
};

enum sl_range_method {
        SL_RANGE_MINMAX,     /* everything that was seen */
        SL_RANGE_PERCENTILE, /* but the same share of the tails at either end */
        SL_RANGE_MSE,        /* where the mean square of rounding and clipping is least */
};

/* Adds what was seen; what is not finite is passed over. */
void sl_range_add(struct sl_range *range, const float *data, uint64_t elements);

/* The limits for @method, 0 between them. @percentile: of all numbers, those that stay inside, 0 to 100. */
void sl_range_limits(const struct sl_range *range, enum sl_range_method method, double percentile, float *ret_low, float *ret_high);
