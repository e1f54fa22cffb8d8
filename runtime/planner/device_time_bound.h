/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no allocation can exceed: the throughput if every device's time could be divided among the models at will, each in its best
 * batch size, memory for one worker at a time. With r(d, m) samples a second of model m alone on device d:
 *
 *     max T  with  sum over d of x(d, m) * r(d, m) >= T  for each m,  sum over m of x(d, m) <= c(d)  for each d
 *
 * c(d) is what co-running can win: of n models whose pairs are slower by at least 1 + q, n / (1 + q (n - 1)) where q is below 1,
 * else 1; of a CPU with several cores n is no more than these. The programme's dual needs no solver: for weights l(m) that add up
 * to 1,
 *
 *     T <= sum over d of c(d) * max over m of l(m) * r(d, m)
 *
 * and every l gives a bound. They are improved by multiplicative weights for a fixed number of rounds; the bound is valid whether
 * or not that has come to the optimum of the programme. Pure; any thread.
 *
 * Sources: S. Arora, E. Hazan, S. Kale, "The multiplicative weights update method", 2012.
 */
#pragma once

struct sl_error;
struct sl_problem;

/* Samples a second; infinity never. Return: 0; -ENOSPC a model that runs on no device, which the error names; -ENOMEM. */
int sl_device_time_bound(const struct sl_problem *problem, double *ret_throughput, struct sl_error *error);
