/* SPDX-License-Identifier: Apache-2.0 */
#include "random.h"

#include "base/split_mix.h"

#include <math.h>

static double unit_of(uint64_t bits)
{
        return ((double)(bits >> 11) + 1) / 9007199254740992.0;
}

void sl_random_seed(struct sl_random *random, uint64_t seed, uint64_t stream)
{
        uint64_t at = sl_split_mix_scramble(seed) ^ sl_split_mix_scramble(stream * SL_SPLIT_MIX_STEP + 1);

        for (int i = 0; i < 4; i++)
                random->state[i] = sl_split_mix_next(&at);
}

static uint64_t rotate(uint64_t x, int by)
{
        return (x << by) | (x >> (64 - by));
}

uint64_t sl_random_next(struct sl_random *random)
{
        uint64_t *s = random->state, result = rotate(s[0] + s[3], 23) + s[0], shifted = s[1] << 17;

        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = rotate(s[3], 45);
        return result;
}

double sl_random_uniform(struct sl_random *random)
{
        return unit_of(sl_random_next(random));
}

double sl_random_exponential(struct sl_random *random, double mean)
{
        return -log(sl_random_uniform(random)) * mean;
}

double sl_random_of(uint64_t seed, uint64_t number)
{
        return unit_of(sl_split_mix_scramble(sl_split_mix_scramble(seed) + number * SL_SPLIT_MIX_STEP));
}
