/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums over one row of floats. Sixteen partial sums in a fixed order, and long rows in halves: as fast as the processor adds, the
 * same bits on any processor and in every run, and a rounding error that does not grow with the row. Pure; any thread.
 *
 * Sources: N. J. Higham, "The Accuracy of Floating Point Summation", SIAM Journal on Scientific Computing 14 (4), 1993 (pairwise).
 */
#pragma once

#include <stdint.h>

float sl_row_sum(const float *x, int64_t n);
float sl_row_sum_absolute(const float *x, int64_t n);
float sl_row_sum_square(const float *x, float centre, int64_t n); /* of x - centre */
float sl_row_maximum(const float *x, int64_t n);                  /* -infinity if there is none; NaN if one is */
float sl_row_minimum(const float *x, int64_t n);
double sl_row_maximum_f64(const double *x, int64_t n);
double sl_row_minimum_f64(const double *x, int64_t n);
float sl_row_product(int64_t n, const float *a, const float *b); /* sum of the products */
