/* SPDX-License-Identifier: Apache-2.0 */
#include "pace.h"

#include "interference.h"

#include <math.h>
#include <stdlib.h>

#define WARM         16u
#define SLOW_WEIGHT  (1.0 / 128)
#define LEVEL_WEIGHT 0.125
#define EXACT        16u
#define PER_OCTAVE   4u

uint32_t sl_pace_size(uint32_t samples)
{
        uint32_t octave = 0, size;

        if (samples <= EXACT)
                return samples - 1;
        while (samples >> octave >= 2 * EXACT)
                octave++;
        size = EXACT + octave * PER_OCTAVE + ((samples >> octave) - EXACT) / PER_OCTAVE;
        return size < SL_PACE_SIZES ? size : SL_PACE_SIZES - 1;
}

/* The first is cold; then the mean of WARM. */
static bool warm_up(float *log_ns, uint8_t *jobs, double log_took)
{
        if (*jobs > WARM)
                return false;
        if (*jobs)
                *log_ns += (float)((log_took - (double)*log_ns) / *jobs);
        (*jobs)++;
        return true;
}

bool sl_pace_ratio(struct sl_pace *pace, uint32_t samples, uint64_t ns, double drift, bool learns, double *ret_log_ratio)
{
        const double most = log(SL_INTERFERENCE_FACTOR);
        uint32_t size = sl_pace_size(samples);
        float *log_ns = &pace->log_ns[size];
        double log_took = log((double)ns), x;

        if (warm_up(log_ns, &pace->jobs[size], log_took - drift))
                return false;
        x = log_took - (double)*log_ns;
        if (learns)
                *log_ns += (float)(fmax(-most, fmin(most, x - drift)) * SLOW_WEIGHT);
        *ret_log_ratio = x;
        return true;
}

double sl_pace_level(double level, double log_ratio)
{
        const double most = 2 * log(SL_INTERFERENCE_FACTOR); /* one that was preempted says little */

        return level + (fmax(level - most, fmin(level + most, log_ratio)) - level) * LEVEL_WEIGHT;
}

static int compare_levels(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

double sl_pace_drift(double *levels, uint32_t n)
{
        if (n < 2)
                return 0;
        qsort(levels, n, sizeof(*levels), compare_levels);
        return levels[(n - 1) / 2];
}
