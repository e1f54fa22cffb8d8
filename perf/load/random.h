/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers that a seed repeats, on every machine alike. A seed has many streams, which do not depend on each other: a load
 * takes one for its arrivals, another for its mix. A plain value; one thread.
 *
 * Sources: D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators", 2021 (xoshiro256++); G. Steele, D. Lea,
 * C. Flood, "Fast splittable pseudorandom number generators", 2014 (the seeding).
 */
#pragma once

#include <stdint.h>

struct sl_random {
        uint64_t state[4];
};

void sl_random_seed(struct sl_random *random, uint64_t seed, uint64_t stream);

uint64_t sl_random_next(struct sl_random *random);

/* In (0, 1]: its logarithm is a number. */
double sl_random_uniform(struct sl_random *random);

/* Exponential with this mean. */
double sl_random_exponential(struct sl_random *random, double mean);

/* In (0, 1], of the pair alone: the same whenever it is asked. */
double sl_random_of(uint64_t seed, uint64_t number);
