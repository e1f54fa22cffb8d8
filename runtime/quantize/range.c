/* SPDX-License-Identifier: Apache-2.0 */
#include "range.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define SHRINKS 40 /* candidates of SL_RANGE_MSE, down to a tenth */

/* Twice the span: two neighbours become one. */
static void widen(struct sl_range *range)
{
        uint64_t joined[SL_RANGE_BINS] = {0};

        for (int i = 0; i < SL_RANGE_BINS; i++)
                joined[SL_RANGE_BINS / 4 + i / 2] += range->bins[i];
        memcpy(range->bins, joined, sizeof(joined));
        range->reach *= 2;
}

static void reach_out(struct sl_range *range, float most)
{
        if (range->reach == 0)
                range->reach = ldexpf(1.0f, most > 0 ? ilogbf(most) + 1 : -20);
        while (range->reach <= most)
                widen(range);
}

/* In double: a float just below the reach is it when one is added. */
static int bin_of(const struct sl_range *range, float x)
{
        return (int)(((double)x / (double)range->reach + 1.0) * (SL_RANGE_BINS / 2));
}

void sl_range_add(struct sl_range *range, const float *data, uint64_t elements)
{
        for (uint64_t i = 0; i < elements; i++) {
                float x = data[i];

                if (!isfinite(x) || fabsf(x) > 0x1p100f)
                        continue;
                if (range->reach == 0 || fabsf(x) >= range->reach)
                        reach_out(range, fabsf(x));
                range->least = !range->seen || x < range->least ? x : range->least;
                range->most = !range->seen || x > range->most ? x : range->most;
                range->bins[bin_of(range, x)]++;
                range->seen++;
        }
}

static double bin_middle(const struct sl_range *range, int bin)
{
        return ((double)bin + 0.5 - SL_RANGE_BINS / 2) / (SL_RANGE_BINS / 2) * (double)range->reach;
}

/* Cuts bins from both ends while no more than @spare numbers lie in those of one end. */
static void cut_tails(const struct sl_range *range, double spare, double *low, double *high)
{
        uint64_t below = 0, above = 0;
        int first = 0, last = SL_RANGE_BINS - 1;

        while (first < last && (double)(below + range->bins[first]) <= spare)
                below += range->bins[first++];
        while (last > first && (double)(above + range->bins[last]) <= spare)
                above += range->bins[last--];
        *low = fmax(*low, bin_middle(range, first));
        *high = fmin(*high, bin_middle(range, last));
}

static double square_error(const struct sl_range *range, double low, double high)
{
        double step = (high - low) / 255, sum = 0;

        for (int i = 0; i < SL_RANGE_BINS; i++) {
                double x, clipped;

                if (!range->bins[i])
                        continue;
                x = bin_middle(range, i);
                clipped = x < low ? low - x : x > high ? x - high : 0;
                sum += (double)range->bins[i] * (clipped * clipped + step * step / 12);
        }
        return sum;
}

/* The share of one end at which the error is least, the other end as it is. */
static double best_share(const struct sl_range *range, double low, double high, bool of_high)
{
        double least = INFINITY, best = 1;

        for (int i = 0; i < SHRINKS; i++) {
                double share = 1.0 - 0.9 * i / SHRINKS;
                double error = square_error(range, of_high ? low : share * low, of_high ? share * high : high);

                if (error >= least)
                        continue;
                least = error;
                best = share;
        }
        return best;
}

/* One end after the other, twice: what is best for one depends on the other. */
static void least_error(const struct sl_range *range, double *low, double *high)
{
        const double lowest = *low, highest = *high;

        for (int i = 0; i < 2; i++) {
                *high = highest * best_share(range, *low, highest, true);
                *low = lowest * best_share(range, lowest, *high, false);
        }
}

void sl_range_limits(const struct sl_range *range, enum sl_range_method method, double percentile, float *ret_low, float *ret_high)
{
        double low = fmin((double)range->least, 0), high = fmax((double)range->most, 0);

        if (range->seen && method == SL_RANGE_PERCENTILE)
                cut_tails(range, (double)range->seen * (1 - percentile / 100) / 2, &low, &high);
        if (range->seen && method == SL_RANGE_MSE && high > low)
                least_error(range, &low, &high);
        *ret_low = (float)fmin(low, 0);
        *ret_high = (float)fmax(high, 0);
}
