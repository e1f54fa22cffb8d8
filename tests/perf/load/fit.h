/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How well numbers suit a distribution. Seeds are fixed, so that a test passes always or never.
 */
#pragma once

#include <stdint.h>

/*
 * Kolmogorov and Smirnov's statistic times the square root of @n; @values are sorted here. One in a hundred samples of the
 * distribution whose cumulative function is @cdf is above FIT_KS_LIMIT.
 */
#define FIT_KS_LIMIT 1.628
double fit_ks(double *values, uint32_t n, double (*cdf)(double value));

/* Pearson's statistic of @n counts. */
double fit_chi_square(const uint64_t *counts, const double *expected, uint32_t n);

/* What one in a hundred exceeds with @degrees of freedom (Wilson and Hilferty, 1931). */
double fit_chi_square_limit(uint32_t degrees);
