/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random draws out of a seed (SplitMix64): the same on every machine, so that an optimizer finds the same again.
 */
#pragma once

#include "base/split_mix.h"

#include <stdint.h>

struct sl_draw {
        uint64_t state;
};

static inline uint64_t sl_draw_bits(struct sl_draw *draw)
{
        return sl_split_mix_next(&draw->state);
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
