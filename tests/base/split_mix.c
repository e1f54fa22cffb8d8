/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of SplitMix64: it is the published generator, so that what a seed has shown is shown again by any other program.
 */
#include "base/split_mix.h"

#include <criterion/criterion.h>

/* The first numbers of S. Vigna's splitmix64.c, of seed 1234567. */
Test(split_mix, a_seed_gives_the_published_numbers)
{
        const uint64_t published[] = {
                6457827717110365317u,
                3203168211198807973u,
                9817491932198370423u,
                4593380528125082431u,
                16408922859458223821u,
        };
        uint64_t state = 1234567;

        for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++)
                cr_expect_eq(sl_split_mix_next(&state), published[i], "number %zu", i);
}

Test(split_mix, a_number_is_the_scramble_of_its_state)
{
        uint64_t state = 99;

        for (uint64_t i = 1; i < 100; i++)
                cr_expect_eq(sl_split_mix_next(&state), sl_split_mix_scramble(99 + i * SL_SPLIT_MIX_STEP));
}
