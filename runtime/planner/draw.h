/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random draws out of a seed: the same on every machine, so that an optimizer finds the same again. Sources: G. L. Steele, D. Lea,
 * C. H. Flood, "Fast splittable pseudorandom number generators", 2014 (SplitMix64).
 */
#pragma once

#include <stdint.h>

struct sl_draw {
        uint64_t state;
};

static inline uint64_t sl_draw_bits(struct sl_draw *draw)
{
        uint64_t x = draw->state += 0x9e3779b97f4a7c15ull;

        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
        return x ^ (x >> 31);
}

/* In [0, n), @n above 0 and below 2^32. */
static inline uint32_t sl_draw_below(struct sl_draw *draw, uint32_t n)
{
        return (uint32_t)(((sl_draw_bits(draw) >> 32) * n) >> 32);
}

/* In [0, 1). */
static inline double sl_draw_share(struct sl_draw *draw)
{
        return (double)(sl_draw_bits(draw) >> 11) * 0x1p-53;
}
