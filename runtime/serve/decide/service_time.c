/* SPDX-License-Identifier: Apache-2.0 */
#include "service_time.h"

/* One job in four's weight: ten jobs forget a cold start. */
#define LEARNING_RATE 0.25
/* Beyond so many times what is known a job was preempted, most likely, and counts as that: it changes little, and who really takes
 * longer is known after a few. */
#define OUTLIER       4

/* The first power of two that is not below @samples, or the last class. */
static uint32_t samples_bucket(uint32_t samples)
{
        uint32_t bucket = samples > 1 ? 32u - (uint32_t)__builtin_clz(samples - 1) : 0;

        return bucket < SL_SERVICE_TIME_CLASSES ? bucket : SL_SERVICE_TIME_CLASSES - 1;
}

/* So much of what speaks against a size is forgotten with each job of another one: some thousand let it be tried again. */
#define FORGETTING_RATE (1.0 / 1024)

/* What a sample of other sizes costs at most, if a smaller job takes no longer than this one, and a larger one no longer a sample.
 */
static void forget(struct sl_service_time *times, uint32_t bucket)
{
        for (uint32_t others = times->known & ~(1u << bucket); others; others &= others - 1) {
                uint32_t other = (uint32_t)__builtin_ctz(others);
                double most = times->sample_ns[bucket] * (other < bucket ? 1u << (bucket - other) : 1);

                if (times->sample_ns[other] > most)
                        times->sample_ns[other] -= FORGETTING_RATE * (times->sample_ns[other] - most);
        }
}

void sl_service_time_learn(struct sl_service_time *times, uint32_t samples, uint64_t ns)
{
        uint32_t bucket = samples_bucket(samples);
        double *known = &times->sample_ns[bucket];
        double sample_ns = (double)ns / (samples ? samples : 1);

        if (*known > 0 && sample_ns > OUTLIER * *known)
                sample_ns = OUTLIER * *known;
        if (*known > 0 && !(times->is_doubted && sample_ns > 0 && sample_ns < *known))
                sample_ns = *known + LEARNING_RATE * (sample_ns - *known);
        *known = sample_ns;
        times->is_doubted = false;
        if (*known > 0)
                times->known |= 1u << bucket;
        forget(times, bucket);
}

/* Whose time says what a sample costs in jobs of this size: its own, that of the next smaller size that is known, or of the next
 * larger. SL_SERVICE_TIME_CLASSES: nothing is known. */
static uint32_t known_bucket(const struct sl_service_time *times, uint32_t bucket)
{
        uint32_t up_to = times->known & ((2u << bucket) - 1);

        if (up_to)
                return 31u - (uint32_t)__builtin_clz(up_to);
        return times->known ? (uint32_t)__builtin_ctz(times->known) : SL_SERVICE_TIME_CLASSES;
}

uint64_t sl_service_time_ns(const struct sl_service_time *times, uint32_t samples)
{
        uint32_t known = known_bucket(times, samples_bucket(samples));

        return known < SL_SERVICE_TIME_CLASSES ? (uint64_t)(times->sample_ns[known] * samples) : 0;
}

bool sl_service_time_knows(const struct sl_service_time *times, uint32_t samples)
{
        return times->known >> samples_bucket(samples) & 1;
}

/* From the largest jobs down, all that one class's time stands for at a time. */
uint32_t sl_service_time_samples(const struct sl_service_time *times, uint64_t slice_ns, uint32_t most)
{
        uint32_t bucket = samples_bucket(most), top = most;

        if (!times->known)
                return most;
        while (true) {
                uint32_t known = known_bucket(times, bucket), smaller = times->known & ((1u << known) - 1);
                uint32_t least = smaller ? (1u << (known - 1)) + 1 : 1;
                double fits = (double)slice_ns / times->sample_ns[known];

                if (fits >= least)
                        return fits < top ? (uint32_t)fits : top;
                if (!smaller)
                        return 1;
                bucket = known - 1;
                top = 1u << bucket;
        }
}
