/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of E-Ebird's configurations are worth measuring, by what a batch of each size takes alone. Pure.
 *
 * Workers are seated on the cores in turn, those of the largest batches first, and those of one core share its time evenly: while k
 * of them compute, each takes k times as long.
 *
 * Sources: W. Cui et al., "E2bird: Enhanced Elastic Batch for Improving Responsiveness and Throughput of Deep Learning Services",
 * section 7.3.1, equation 6. The paper measures all configurations; so does who has time for 202 of them at a load of 32.
 */
#pragma once

#include "ebird_engine.h"

#include <stdint.h>

#define ELASTIC_WORKERS_MAX 32u /* 32 samples in workers of 1 */

/* The batch sizes of its workers as powers of two, the largest first. Return: how many there are. */
uint32_t elastic_workers(const struct sl_ebird_configuration *configuration, uint32_t ret_sizes[ELASTIC_WORKERS_MAX]);

/* The mean latency of its workers when they begin at once, in nanoseconds. @alone_ns[i]: a batch of 2^i. @n_cores: at least 1. */
double elastic_estimate_ns(
        const double alone_ns[SL_EBIRD_SIZES], uint32_t n_cores, const struct sl_ebird_configuration *configuration);

/*
 * At most @max of those of @load, in ascending order of the estimate, but the first: that is one worker for all of the load.
 * Return: how many; *ret_all: how many equation 6 has.
 */
uint32_t elastic_candidates(const double alone_ns[SL_EBIRD_SIZES], uint32_t n_cores, uint32_t load,
        struct sl_ebird_configuration *ret_candidates, uint32_t max, uint32_t *ret_all);
