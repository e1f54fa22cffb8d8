/* SPDX-License-Identifier: Apache-2.0 */
#include "quantile.h"

#include <math.h>
#include <stdlib.h>

#define OUTSIDE 0.025 /* on each side */

static int by_size(const void *a, const void *b)
{
        double left = *(const double *)a, right = *(const double *)b;

        return (left > right) - (left < right);
}

void sl_quantile_sort(double *numbers, size_t n)
{
        qsort(numbers, n, sizeof(*numbers), by_size);
}

double sl_quantile(const double *sorted, size_t n, double share)
{
        double at = share * (double)(n - 1);
        size_t below = (size_t)at;

        if (below + 1 >= n)
                return sorted[n - 1];
        return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

/* The largest k for which fewer than k heads in @n tosses come with at most OUTSIDE; 0: there is none. */
static size_t interval_rank(size_t n)
{
        double term = -(double)n * M_LN2, below = 0; /* the logarithm of "exactly k heads", and the sum of those up to k - 1 */
        size_t k = 0;

        while (k < n) {
                below += exp(term);
                if (below > OUTSIDE)
                        break;
                term += log((double)(n - k)) - log((double)(k + 1));
                k++;
        }
        return k;
}

struct sl_interval sl_interval_of_median(const double *sorted, size_t n)
{
        struct sl_interval interval = {.low = 0, .median = sl_quantile(sorted, n, 0.5), .high = INFINITY};
        size_t rank = n < SL_INTERVAL_MIN ? 0 : interval_rank(n);

        if (rank) {
                interval.low = sorted[rank - 1];
                interval.high = sorted[n - rank];
        }
        return interval;
}

double sl_interval_width(const struct sl_interval *interval)
{
        return interval->median > 0 ? (interval->high - interval->low) / interval->median : INFINITY;
}
