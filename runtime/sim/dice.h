/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of a seed, the same on each machine. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_sim_dice {
        uint64_t state;
};

static inline uint32_t sl_sim_roll(struct sl_sim_dice *dice, uint32_t sides)
{
        dice->state = dice->state * 6364136223846793005ull + 1442695040888963407ull;
        return (uint32_t)(((dice->state >> 32) * sides) >> 32);
}

static inline bool sl_sim_one_in(struct sl_sim_dice *dice, uint32_t sides)
{
        return sl_sim_roll(dice, sides) == 0;
}
