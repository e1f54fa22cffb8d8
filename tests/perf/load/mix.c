/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mix picks each model as often as its weight says.
 */
#include "mix.h"

#include "fit.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>

#define PICKS 1000000u
#define MOST  64u

static void expect_shares(const double *weights, uint32_t n)
{
        double sum = 0, expected[MOST];
        uint64_t counts[MOST] = {0};
        struct sl_random random;
        struct sl_mix *mix;

        cr_assert_eq(sl_mix_new(weights, n, &mix), 0);
        sl_random_seed(&random, 1, 0);
        for (uint32_t i = 0; i < PICKS; i++)
                counts[sl_mix_pick(mix, &random)]++;
        for (uint32_t i = 0; i < n; i++)
                sum += weights[i];
        for (uint32_t i = 0; i < n; i++)
                expected[i] = PICKS * weights[i] / sum;
        cr_expect_lt(fit_chi_square(counts, expected, n), fit_chi_square_limit(n - 1));
        sl_mix_free(mix);
}

Test(mix, picks_are_shared_as_the_weights_say)
{
        expect_shares((const double[]){1, 1, 1, 1}, 4);
        expect_shares((const double[]){5, 3, 1, 0.5, 0.25}, 5);
        expect_shares((const double[]){0.001, 1000}, 2);
}

Test(mix, zipf_makes_the_first_as_popular_as_its_law_says)
{
        double weights[MOST];

        sl_mix_zipf(1, MOST, weights);
        cr_expect_eq(weights[0], 1);
        cr_expect_float_eq(weights[9], 0.1, 1e-12);
        expect_shares(weights, MOST);
        sl_mix_zipf(0, 8, weights);
        cr_expect_eq(weights[7], 1, "exponent 0 is uniform");
}

Test(mix, what_weighs_nothing_is_never_picked)
{
        struct sl_random random;
        struct sl_mix *mix;

        cr_assert_eq(sl_mix_new((const double[]){0, 1, 0, 2, 0}, 5, &mix), 0);
        sl_random_seed(&random, 2, 0);
        for (uint32_t i = 0; i < PICKS; i++) {
                uint32_t pick = sl_mix_pick(mix, &random);

                cr_assert(pick == 1 || pick == 3, "picked %u", pick);
        }
        sl_mix_free(mix);
}

Test(mix, weights_that_are_no_mix_are_refused)
{
        struct sl_mix *mix;

        cr_expect_eq(sl_mix_new((const double[]){0, 0}, 2, &mix), -EINVAL);
        cr_expect_eq(sl_mix_new((const double[]){1, -1, 3}, 3, &mix), -EINVAL);
        cr_expect_eq(sl_mix_new((const double[]){1, NAN}, 2, &mix), -EINVAL);
        cr_expect_eq(sl_mix_new((const double[]){1, INFINITY}, 2, &mix), -EINVAL);
}
