/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate.h"

#include <math.h>
#include <stddef.h>

/* clang-format off */
static const double student[] = {
        12.7062,
        4.3027,
        3.1824,
        2.7764,
        2.5706,
        2.4469,
        2.3646,
        2.3060,
        2.2622,
        2.2281,
        2.2010,
        2.1788,
        2.1604,
        2.1448,
        2.1314,
        2.1199,
        2.1098,
        2.1009,
        2.0930,
        2.0860,
        2.0796,
        2.0739,
        2.0687,
        2.0639,
        2.0595,
        2.0555,
        2.0518,
        2.0484,
        2.0452,
        2.0423,
};
/* clang-format on */
#define STUDENT_ROWS     (sizeof(student) / sizeof(student[0]))
#define STUDENT_INFINITE 1.959964

/* Between rows, and from the last one to infinity, it is nearly straight over 1 / degrees. */
double sl_estimate_student(double degrees)
{
        size_t row = degrees < 1 ? 1 : (size_t)fmin(degrees, STUDENT_ROWS);
        double low = student[row - 1], high = row < STUDENT_ROWS ? student[row] : STUDENT_INFINITE;
        double from = 1.0 / (double)row, to = row < STUDENT_ROWS ? 1.0 / (double)(row + 1) : 0;

        return degrees < 1 ? low : low + (high - low) * (1 / degrees - from) / (to - from);
}

struct moments {
        uint32_t n;
        double mean, variance; /* of the mean; NaN with fewer than two */
};

static double as_is(double x)
{
        return x;
}

static struct moments moments_of(const double *values, uint32_t n, double (*scale)(double x))
{
        struct moments moments = {0};
        double squares = 0;

        for (uint32_t i = 0; i < n; i++) {
                if (isnan(values[i]))
                        continue;
                double x = scale(values[i]), delta = x - moments.mean;

                moments.mean += delta / ++moments.n;
                squares += delta * (x - moments.mean);
        }
        if (moments.n == 0)
                moments.mean = NAN;
        moments.variance = moments.n > 1 ? squares / (moments.n - 1.0) / moments.n : NAN;
        return moments;
}

struct sl_estimate sl_estimate_mean(const double *values, uint32_t n)
{
        struct moments moments = moments_of(values, n, as_is);
        double half = moments.n > 1 ? sl_estimate_student(moments.n - 1.0) * sqrt(moments.variance) : NAN;

        return (struct sl_estimate){moments.mean, moments.mean - half, moments.mean + half};
}

static bool all_above_zero(const double *values, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                if (!(values[i] > 0))
                        return false;
        return n > 0;
}

/* Welch's degrees of freedom; two that do not vary at all have an interval of no width. */
static double welch_degrees(const struct moments *a, const struct moments *b)
{
        double sum = a->variance + b->variance;
        double parts = a->variance * a->variance / (a->n - 1.0) + b->variance * b->variance / (b->n - 1.0);

        return parts > 0 ? sum * sum / parts : 1;
}

struct sl_estimate sl_estimate_ratio(const double *a, uint32_t n_a, const double *b, uint32_t n_b)
{
        if (!all_above_zero(a, n_a) || !all_above_zero(b, n_b))
                return (struct sl_estimate){NAN, NAN, NAN};
        struct moments of_a = moments_of(a, n_a, log), of_b = moments_of(b, n_b, log);
        double ratio = of_b.mean - of_a.mean, half = NAN;

        if (of_a.n > 1 && of_b.n > 1)
                half = sl_estimate_student(welch_degrees(&of_a, &of_b)) * sqrt(of_a.variance + of_b.variance);
        return (struct sl_estimate){exp(ratio), exp(ratio - half), exp(ratio + half)};
}

struct sl_estimate sl_estimate_paired_ratio(const double *a, const double *b, uint32_t n)
{
        double mean = 0, squares = 0, half = NAN;

        if (!all_above_zero(a, n) || !all_above_zero(b, n))
                return (struct sl_estimate){NAN, NAN, NAN};
        for (uint32_t i = 0; i < n; i++) {
                double x = log(b[i] / a[i]), delta = x - mean;

                mean += delta / (i + 1.0);
                squares += delta * (x - mean);
        }
        if (n > 1)
                half = sl_estimate_student(n - 1.0) * sqrt(squares / (n - 1.0) / n);
        return (struct sl_estimate){exp(mean), exp(mean - half), exp(mean + half)};
}

static double binomial_term(double x, double trials, double share)
{
        return exp(lgamma(trials + 1) - lgamma(x + 1) - lgamma(trials - x + 1) + x * log(share) + (trials - x) * log1p(-share));
}

/* The tail on the side of @k where the mean is not, from its largest term on: the others only get smaller. */
double sl_estimate_binomial(uint64_t k, uint64_t n, double share)
{
        double trials = (double)n, x = (double)k, sum = 0;

        if (k >= n)
                return 1;
        if (x < trials * share) {
                for (double term = binomial_term(x, trials, share); x >= 0 && term > 1e-17 * sum; x--) {
                        sum += term;
                        term *= x / (trials - x + 1) * (1 - share) / share;
                }
                return sum;
        }
        for (double term = binomial_term(++x, trials, share); x <= trials && term > 1e-17 * sum; x++) {
                sum += term;
                term *= (trials - x) / (x + 1) * share / (1 - share);
        }
        return fmax(0, 1 - sum);
}
