/* SPDX-License-Identifier: Apache-2.0 */
#include "interference.h"

#include <math.h>

#define NOISE_FIRST  0.15 /* until the jobs say something else */
#define NOISE_WEIGHT (1.0 / 64)
#define NOISE_CLIP   4.0
#define SPREAD       1.1283791670955126 /* 2 / sqrt(pi): the mean difference of two normal numbers, in standard deviations */

static double clip(double x, double most)
{
        return x > most ? most : x < -most ? -most : x;
}

/* By differences, which a step in the mean does not change but once. */
static void learn_noise(struct sl_interference *test, double x)
{
        double difference = fabs(x - test->last);
        double most = NOISE_CLIP * test->noise;

        test->noise += ((difference < most ? difference : most) / SPREAD - test->noise) * NOISE_WEIGHT;
        test->last = x;
}

/* Of one test: has its sum passed the threshold? */
static bool add(double *sum, double z, double threshold)
{
        *sum = fmax(0, *sum + z);
        if (*sum < threshold)
                return false;
        *sum = 0;
        return true;
}

bool sl_interference_learn(struct sl_interference *test, double log_ratio)
{
        const double threshold = log(SL_INTERFERENCE_QUIET_JOBS), d = log(SL_INTERFERENCE_FACTOR);

        if (!test->jobs) {
                test->noise = NOISE_FIRST;
                test->last = log_ratio;
        }
        test->jobs += test->jobs < UINT32_MAX;
        learn_noise(test, log_ratio);

        double noise = fmax(test->noise, SL_INTERFERENCE_NOISE_LEAST);
        double z = clip(d / (noise * noise) * (log_ratio - d / 2), threshold / SL_INTERFERENCE_JOBS_LEAST);

        if (!add(test->slowed ? &test->fall : &test->rise, test->slowed ? -z : z, threshold))
                return false;
        test->slowed = !test->slowed;
        return true;
}

void sl_interference_forget(struct sl_interference *test)
{
        if (!test->slowed)
                return;
        test->slowed = false;
        test->fall = 0;
}
