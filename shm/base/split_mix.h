/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SplitMix64: random bits out of a seed, the same on every machine. Plain values; pure functions.
 *
 * Sources: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", 2014.
 */
#pragma once

#include <stdint.h>

#define SL_SPLIT_MIX_STEP 0x9e3779b97f4a7c15ull /* of the state, before each number; the odd number next to 2^64 / golden ratio */

/* The number that belongs to state @x: each bit of it depends on all of the state's. */
static inline uint64_t sl_split_mix_scramble(uint64_t x)
{
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
        return x ^ (x >> 31);
}

/* The next number. @state: a seed at first. */
static inline uint64_t sl_split_mix_next(uint64_t *state)
{
        return sl_split_mix_scramble(*state += SL_SPLIT_MIX_STEP);
}
