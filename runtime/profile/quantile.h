/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantiles of measurements, and how far the median of such measurements can be trusted. Pure; any thread.
 *
 * The interval is that of order statistics, which assumes nothing about how times are distributed: of n independent measurements
 * each lies below the median of all that could have been made with probability 1/2, so that the k-th smallest lies above it with
 * that of fewer than k successes in n tosses of a coin.
 *
 * Sources: H. A. David, H. N. Nagaraja, "Order Statistics", 3rd edition, 2003, section 7.1.
 */
#pragma once

#include <stddef.h>

/* Fewer have no interval of 95 %. */
#define SL_INTERVAL_MIN 6u

/* Sorts in place. */
void sl_quantile_sort(double *numbers, size_t n);

/* Of @n sorted numbers, at least 1; @share from 0 to 1; between two neighbours in proportion. */
double sl_quantile(const double *sorted, size_t n, double share);

struct sl_interval {
        double low, median, high;
};

/* Of @n sorted numbers, at least 1: covers the median with at least 95 %. With fewer than SL_INTERVAL_MIN it is from 0 to infinity.
 */
struct sl_interval sl_interval_of_median(const double *sorted, size_t n);

/* (high - low) / median. */
double sl_interval_width(const struct sl_interval *interval);
