/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no allocation can exceed: the throughput of the device-time linear programme, solved with CBC.
 *
 *     maximise X, with x(d, m, b) the share of device d's time, as if alone, in which it computes batches of b of model m
 *         sum over d, b of x(d, m, b) * b / period(d, m, b) >= X       for each model
 *         sum over b of x(d, m, b) <= 1                                for each device and model: one worker
 *         sum over m, b of x(d, m, b) <= most(d)                       for each device
 *         sum over m, b of x(d, m, b) * workspace + z(d, m) * weights <= room(d)
 *         x(d, m, b) <= z(d, m), 0 <= x, z <= 1
 *
 * most(d) is 1 where devices are shared by time. Where workers fill each other's gaps, at most n / (1 + (n - 1) k) of alone-time fits
 * into a second, with k the least (pair - 1) of the models that run there and n their number: then most(d) is that. The relaxation
 * lets a worker be there in part, and work be divided at will, so the simulated bench (simulated_bench.h) stays below it.
 *
 * device_time_bound.h says nearly the same without a solver, and without the rows of memory; this one is at most that, and less
 * where memory is what binds. CBC is loaded when it is asked for: whoever never optimizes does not need it.
 */
#pragma once

struct sl_error;
struct sl_problem;

/* Samples a second. Return: 0; -ENOSYS the library is not installed; -ENOSPC no worker may be anywhere; -EIO CBC found no answer;
 * -ENOMEM. */
int sl_bound_throughput(const struct sl_problem *problem, double *ret_throughput, struct sl_error *error);
