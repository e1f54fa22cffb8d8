/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated form of bench(): the steady state of an ensemble, from costs and the co-run model, in microseconds.
 *
 * Workers of a model take from one queue, so all of them are busy for the same share u(m) of the time. With w a worker of model m,
 * batch b, alone b / period(w) samples a second:
 *
 *     speed(w) = E[1 / (1 + sum over busy v beside w of (pair(w, v) - 1))]       v is busy with probability u(model of v)
 *     C(m)     = sum over workers w of m of b(w) / period(w) * speed(w)          what m could do
 *     u(m)     = X / C(m)                                                        at X samples a second
 *
 * The throughput is the X at which the busiest u(m) is 1. The expectation over the 2^n sets of busy workers is the integral over t
 * from 0 to 1 of the product of (1 - u(v) + u(v) * t^(pair(w, v) - 1)), here in 8 Gauss-Legendre nodes: exact for 15 others on a
 * device shared by time, and by its closed form for one other; beside more in 8 of each half of what is left, close to 1. Sharing
 * by time is met exactly: workers whose batches take p and q alone reach 1 / (p + q) each. On a CPU with several cores (costs.h)
 * speed(w) is that times E[min(1, cores / (1 + K))] for K busy others: exact where pairs are 1, or there is a core for each.
 *
 * Latency at a load: u at X = load; the slowest model's batch time / speed, and in front of it the wait in a queue with n workers
 * and Poisson arrivals, u^(sqrt(2 (n + 1)) - 1) / (n (1 - u)) * time / 2.
 *
 * Left out: filling of batches, segments, what broadcasting and combining take, bandwidth that devices share.
 *
 * Sources: H. Sakasegawa, "An approximation formula Lq = a rho^b / (1 - rho)", 1977.
 */
#pragma once

#include <stdint.h>

struct sl_bench;
struct sl_error;
struct sl_problem;

/* @problem is checked, and outlives it. Return: 0; -ENOMEM. */
int sl_simulated_bench_new(const struct sl_problem *problem, struct sl_bench **ret_bench, struct sl_error *error);

/* u(m) of the last run at its throughput, for each model: 1 of the one that limits it. Valid until the next run. */
double sl_simulated_bench_busy(const struct sl_bench *bench, uint32_t model);
