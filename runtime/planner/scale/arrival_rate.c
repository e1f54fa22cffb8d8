/* SPDX-License-Identifier: Apache-2.0 */
#include "arrival_rate.h"

#include <math.h>

#define RATE_S     0.5
#define TREND_S    2.0
#define BURST_S    5.0
#define FADE_S     2.0
#define DEVIATIONS 2.0
#define MOST       3.0 /* times the rate: more is not believed */

/* Of what is measured for @seconds, in an average over @over_s. */
static double weight(double seconds, double over_s)
{
        return 1 - exp(-seconds / over_s);
}

void sl_arrival_rate_learn(struct sl_arrival_rate *rate, uint64_t requests, double seconds)
{
        double expected = fmax(0, rate->rate + rate->trend * seconds), before = rate->rate, off, mean;

        if (!rate->known) {
                *rate = (struct sl_arrival_rate){.rate = (double)requests / seconds, .burst = 1, .known = true};
                return;
        }
        off = (double)requests - expected * seconds;
        rate->rate = expected + (off / seconds) * weight(seconds, RATE_S);
        rate->trend += ((rate->rate - before) / seconds - rate->trend) * weight(seconds, TREND_S);
        mean = fmax(1, fmax(expected * seconds, (double)requests)); /* a load that has just begun is no burst of that size */
        rate->burst += (off * off / mean - rate->burst) * weight(seconds, BURST_S);
}

double sl_arrival_forecast(double rate, double trend, double burst, double seconds)
{
        double grown = rate + fmax(0, trend) * FADE_S * (1 - exp(-seconds / FADE_S));

        return fmin(grown + DEVIATIONS * sqrt(fmax(0, burst) * rate), MOST * rate);
}
