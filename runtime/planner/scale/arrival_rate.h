/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a load moves, by how many requests came in each of its looks: rate, trend and burst. Plain values, one owner; no clock.
 *
 *     rate     requests a second: a moving average over RATE_S that goes on with the trend
 *     trend    by how much that grows a second: a moving average of its changes over TREND_S
 *     burst    variance of counts by their mean, of what came by what was expected: 1 for arrivals at random, 0 for regular ones
 *
 * Sources: C. C. Holt, "Forecasting seasonals and trends by exponentially weighted moving averages", 1957; E. S. Gardner, E.
 * McKenzie, "Forecasting trends in time series", Management Science 31, 1985 (a trend that fades).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_arrival_rate {
        double rate, trend, burst;
        bool known;
};

/* @requests came in @seconds, above 0, since the last time. */
void sl_arrival_rate_learn(struct sl_arrival_rate *rate, uint64_t requests, double seconds);

/*
 * What has to be expected in @seconds from now, a second: the trend fades over FADE_S; beside it there is room for a burst of two
 * standard deviations of what comes in a second. At most three times the rate. Pure.
 */
double sl_arrival_forecast(double rate, double trend, double burst, double seconds);
