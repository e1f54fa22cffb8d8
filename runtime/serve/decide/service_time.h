/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service time of a model: how long its jobs take by their number of samples, learned while it serves. What comes of it is how
 * many samples fit a slice of time, which bounds jobs and what is given out ahead. Owner: the dispatcher; pure but for the
 * learning.
 *
 * Jobs are kept apart by the power of two that their samples do not exceed, because a batch costs less a sample than a single one
 * does. A class of which nothing is known yet counts as dear, a sample, as the next smaller one that is known.
 *
 * What is known of a class may keep all jobs of it away, those that would correct it among them. So each job takes a part in 1,024
 * of what other classes take more than it lets expect: no larger one is dearer a sample, no smaller one takes longer. Where one
 * does, it is tried, and known again, after some thousand jobs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_SERVICE_TIME_CLASSES 17u /* jobs of up to 65,536 samples */

/* Samples of the largest job, however short they are. */
#define SL_SLICE_SAMPLES_MAX 65536u

struct sl_service_time {
        uint32_t known;                            /* classes, as bits */
        bool is_doubted;                           /* until the next job is learned */
        double sample_ns[SL_SERVICE_TIME_CLASSES]; /* moving average; 0: not known */
};

/* A job of @samples took @ns. */
void sl_service_time_learn(struct sl_service_time *times, uint32_t samples, uint64_t ns);

/* No job has confirmed for long what is known (SL_VARIANT_DOUBT_NS): the next one counts whole, if it takes less. */
static inline void sl_service_time_doubt(struct sl_service_time *times)
{
        times->is_doubted = true;
}

/* What a job of @samples is expected to take; 0: nothing is known. */
uint64_t sl_service_time_ns(const struct sl_service_time *times, uint32_t samples);

/* Has a job of as many samples, up to the power of two, been seen? */
bool sl_service_time_knows(const struct sl_service_time *times, uint32_t samples);

/* The largest job of at most @most samples that is expected to take no more than @slice_ns; at least 1; @most: nothing is known. */
uint32_t sl_service_time_samples(const struct sl_service_time *times, uint64_t slice_ns, uint32_t most);
