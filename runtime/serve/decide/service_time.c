/* SPDX-License-Identifier: Apache-2.0 */
#include "service_time.h"

/* One job in four's weight: ten jobs forget a cold start. */
#define LEARNING_RATE 0.25
/* Beyond so many times what is known a job was preempted, most likely, and counts as that: it changes little, and who really takes
 * longer is known after a few. */
#define OUTLIER       4

static uint32_t samples_bucket(uint32_t samples)
{
        uint32_t bucket = 0;

        while (bucket + 1 < SL_SERVICE_TIME_CLASSES && (1u << bucket) < samples)
                bucket++;
        return bucket;
}

void sl_service_time_learn(struct sl_service_time *times, uint32_t samples, uint64_t ns)
{
        double *known = &times->sample_ns[samples_bucket(samples)];
        double sample_ns = (double)ns / (samples ? samples : 1);

        if (*known > 0 && sample_ns > OUTLIER * *known)
                sample_ns = OUTLIER * *known;
        *known = *known > 0 ? *known + LEARNING_RATE * (sample_ns - *known) : sample_ns;
}

/* Whose time says what a sample costs in jobs of this size: its own, that of the next smaller size that is known, or of the next
 * larger. SL_SERVICE_TIME_CLASSES: nothing is known. */
static uint32_t known_bucket(const struct sl_service_time *times, uint32_t bucket)
{
        for (uint32_t i = bucket + 1; i-- > 0;)
                if (times->sample_ns[i] > 0)
                        return i;
        while (++bucket < SL_SERVICE_TIME_CLASSES && !(times->sample_ns[bucket] > 0))
                ;
        return bucket;
}

uint64_t sl_service_time_ns(const struct sl_service_time *times, uint32_t samples)
{
        uint32_t known = known_bucket(times, samples_bucket(samples));

        return known < SL_SERVICE_TIME_CLASSES ? (uint64_t)(times->sample_ns[known] * samples) : 0;
}

bool sl_service_time_knows(const struct sl_service_time *times, uint32_t samples)
{
        return times->sample_ns[samples_bucket(samples)] > 0;
}

uint32_t sl_service_time_samples(const struct sl_service_time *times, uint64_t slice_ns, uint32_t most)
{
        uint32_t top_bucket = samples_bucket(most), known = known_bucket(times, top_bucket);

        if (known == SL_SERVICE_TIME_CLASSES)
                return most;
        for (uint32_t bucket = top_bucket + 1; bucket-- > 0;) {
                known = known > bucket ? known_bucket(times, bucket) : known;
                double fits = (double)slice_ns / times->sample_ns[known];
                uint32_t least = bucket ? (1u << (bucket - 1)) + 1 : 1,
                         top = bucket + 1 < SL_SERVICE_TIME_CLASSES ? 1u << bucket : most;

                if (top > most)
                        top = most;
                if (fits >= least)
                        return fits < top ? (uint32_t)fits : top;
        }
        return 1;
}
