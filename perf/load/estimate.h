/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What repeats of a measurement say about it: intervals that hold the true value in 95 of 100 such experiments, by Student's
 * distribution, and so for the ratio of two. Pure.
 *
 * Sources: Student, "The probable error of a mean", 1908; B. Welch, "The generalization of Student's problem when several different
 * population variances are involved", 1947; C. Clopper, E. Pearson, "The use of confidence or fiducial limits", 1934, for shares.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_estimate {
        double value, low, high; /* low and high are NaN where there are fewer than two repeats */
};

/* The 0.975 quantile of Student's distribution; @degrees at least 1. */
double sl_estimate_student(double degrees);

/* The mean of @n values. NaN among them are left out; all NaN when none is left. */
struct sl_estimate sl_estimate_mean(const double *values, uint32_t n);

/*
 * b over a, from their repeats, on the logarithmic scale (so that b/a and a/b say the same): geometric means and Welch's interval.
 * All NaN unless all values are above 0; an interval wants two of each.
 */
struct sl_estimate sl_estimate_ratio(const double *a, uint32_t n_a, const double *b, uint32_t n_b);

/* The same of two that were asked for the same, repeat by repeat: what varies between repeats alike in both does not widen it. */
struct sl_estimate sl_estimate_paired_ratio(const double *a, const double *b, uint32_t n);

/* P(X <= @k) for X binomial of @n trials with @share each. */
double sl_estimate_binomial(uint64_t k, uint64_t n, double share);
