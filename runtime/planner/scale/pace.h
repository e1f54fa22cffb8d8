/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile that the states of workers are judged by: how long a model's jobs take by their samples while nothing disturbs them.
 * Plain values, one owner.
 *
 * Learned from the model's own jobs. The first job of each size is cold and does not count; the next WARM say what is usual. After
 * that the profile follows by a 128th of each job's difference, and not at all while the worker is interfered with: within the 20
 * jobs in which a neighbour is found it takes a tenth of that neighbour for usual. Sizes up to 16 samples are kept apart, larger
 * ones by quarters of a power of two.
 *
 * Drift. On a shared host all workers become slower and faster together. The level of a worker is a moving average of its x, before
 * the drift is taken off; the drift is the lower median of all levels, so that of two workers the less disturbed one says it, and a
 * lone one has none. A neighbour that slows more than half of all workers counts as drift: that is the limit of this.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_PACE_SIZES 64u

struct sl_pace {
        float log_ns[SL_PACE_SIZES];
        uint8_t jobs[SL_PACE_SIZES]; /* so many have been learned from, up to what is enough */
};

/* The entry of a job of @samples, at least 1. */
uint32_t sl_pace_size(uint32_t samples);

/*
 * A job of @samples has taken @ns, not 0, while all workers together were slower by @drift. @learns: nothing disturbs it, as far as
 * is known. Return: false: the profile does not know such jobs yet; else @ret_log_ratio is the logarithm of what it took by the
 * profile, drift included.
 */
bool sl_pace_ratio(struct sl_pace *pace, uint32_t samples, uint64_t ns, double drift, bool learns, double *ret_log_ratio);

/* The level of a worker after another job. */
double sl_pace_level(double level, double log_ratio);

/* Of the levels of @n workers, which are left in another order. */
double sl_pace_drift(double *levels, uint32_t n);
