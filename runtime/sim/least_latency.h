/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What share of requests can be answered within which time at best, by a schedule that knows all arrivals: a lower bound, nearer to
 * what can be reached than sl_sim_bound_ns(), which lets a single sample have a large batch's rate.
 *
 * If all but d requests are answered within L, then so is every batch with one of them. A batch of b that takes T(b) alone and no
 * longer than L has its part of the device, the integral of 1 / k over its life where k compute at a time, and with S(k) = 1 + (k -
 * 1) e that part is at least
 *
 *     C(b, L) = L f(T(b) / L),  f(x) = e x / (1 - (1 - e) x)        f is convex for e below 1, so an even k is the cheapest
 *     C(b, L) >= T(b) min over k of S(k) / k                        whatever S is
 *
 * Parts that are side by side add up to no more than the time that passes. Where launches are known, so do the times for which
 * batches have the device alone, T(b) less the launches; and so does any mixture of the two. So with R(L) the largest b / C(b, L)
 * of a batch that can be that fast, in the mixture for which that is least, the n requests from i to j that are answered in time,
 * between a(i) and a(j) + L, keep
 *
 *     n / R(L) <= a(j) - a(i) + L                                   for all i and j
 *
 * The least number of requests that must be left out for that is counted from the first one on, each as the last of those that are
 * too many; the bound is the least L for which it is no more than d, found by bisection. Of single samples, without copies. Pure.
 *
 * Sources: J. M. Moore, "An n job, one machine sequencing algorithm for minimizing the number of late jobs", 1968.
 */
#pragma once

#include <stdint.h>

struct sl_sim_options;

/*
 * @arrivals_ns: of all @n requests, ascending; @share of them (0 to 1) are answered within the time. Return: nanoseconds, rounded
 * down; 0 for no request.
 */
uint64_t sl_sim_least_latency_ns(const struct sl_sim_options *options, const uint64_t *arrivals_ns, uint32_t n, double share);
