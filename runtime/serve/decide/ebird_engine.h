/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The offline phase of E-Ebird: which workers compute best at each load, and the engine that has all of them. Pure; what an engine
 * takes is asked of the caller, who has profiles or measures.
 *
 * Equation 6: a configuration [i, j, k, l, m, n] has i workers of batch size 1, j of 2, ... n of 32, and their batch sizes add up
 * to the load, TotalBS. There are 4, 10, 36 and 202 of them for 4, 8, 16 and 32.
 *
 * The engine is the element-wise maximum of the stored rows, with at least one worker of 1 and one of 2 for the lowest load, as
 * section 7.3.2 says. Table 4 of the paper gives [1, 1, 1, 2, 1, 0], which has one worker of 4 although its row for 16 has two:
 * here it is [1, 1, 2, 2, 1, 0].
 *
 * Sources: W. Cui et al., "E2bird: Enhanced Elastic Batch for Improving Responsiveness and Throughput of Deep Learning Services",
 * section 7.3, equation 6, table 4.
 */
#pragma once

#include <stdint.h>

#define SL_EBIRD_SIZES 6u /* 1, 2, 4, 8, 16, 32 */
#define SL_EBIRD_ROWS  4u /* TotalBS of 4, 8, 16, 32 */

struct sl_ebird_configuration {
        uint32_t workers[SL_EBIRD_SIZES]; /* of batch size 2^i */
};

/* Of row i TotalBS is 4 << i. All zero: nothing is stored. */
struct sl_ebird_engine {
        struct sl_ebird_configuration rows[SL_EBIRD_ROWS];
};

static inline uint32_t sl_ebird_load(uint32_t row)
{
        return 4u << row;
}

/* The sum of a configuration's batch sizes. */
uint32_t sl_ebird_total(const struct sl_ebird_configuration *configuration);

/* All that equation 6 has for @total, in lexical order from the largest size; at most @max are stored. Return: how many there are.
 */
uint32_t sl_ebird_configurations(uint32_t total, struct sl_ebird_configuration *ret_configurations, uint32_t max);

/* The mean latency of the workers of a configuration that compute beside each other, in nanoseconds. */
typedef double sl_ebird_cost_fn(void *context, const struct sl_ebird_configuration *configuration);

/* Stores the best configuration of each row; of equals the first. */
void sl_ebird_search(sl_ebird_cost_fn *cost, void *context, struct sl_ebird_engine *ret_engine);

/* The workers that it takes to serve all rows. */
struct sl_ebird_configuration sl_ebird_workers(const struct sl_ebird_engine *engine);

/* What is stored for @pending samples: the row of the largest load that is not above it, below all of them one of 1 and one of 2.
 */
struct sl_ebird_configuration sl_ebird_row(const struct sl_ebird_engine *engine, uint64_t pending);
