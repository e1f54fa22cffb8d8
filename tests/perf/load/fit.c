/* SPDX-License-Identifier: Apache-2.0 */
#include "fit.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

double fit_ks(double *values, uint32_t n, double (*cdf)(double value))
{
        double farthest = 0;

        qsort(values, n, sizeof(*values), by_value);
        for (uint32_t i = 0; i < n; i++) {
                double expected = cdf(values[i]);

                farthest = fmax(farthest, fmax(expected - (double)i / n, (i + 1.0) / n - expected));
        }
        return farthest * sqrt(n);
}

double fit_chi_square(const uint64_t *counts, const double *expected, uint32_t n)
{
        double sum = 0;

        for (uint32_t i = 0; i < n; i++)
                sum += ((double)counts[i] - expected[i]) * ((double)counts[i] - expected[i]) / expected[i];
        return sum;
}

double fit_chi_square_limit(uint32_t degrees)
{
        double k = degrees, z = 2.326;

        return k * pow(1 - 2 / (9 * k) + z * sqrt(2 / (9 * k)), 3);
}
