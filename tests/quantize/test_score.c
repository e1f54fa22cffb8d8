/* SPDX-License-Identifier: Apache-2.0 */
/* The interval of a share: against the roots of Wilson's equation, found by bisection. */
#include "score.h"

#include <criterion/criterion.h>
#include <math.h>

/* How many standard deviations of a share @truth the measured one is away from it. */
static double distance(double measured, double truth, double n)
{
        return fabs(measured - truth) / sqrt(truth * (1 - truth) / n);
}

static double bisect(double inside, double outside, double measured, double n)
{
        for (int i = 0; i < 200; i++) {
                double middle = (inside + outside) / 2;

                if (distance(measured, middle, n) < 1.959963984540054)
                        inside = middle;
                else
                        outside = middle;
        }
        return inside;
}

Test(quantize_score, the_interval_ends_where_the_share_would_be_two_deviations_away)
{
        static const uint64_t trials[][2] = {{1, 2}, {3, 10}, {440, 450}, {9999, 10000}, {1, 1000}};

        for (size_t i = 0; i < sizeof(trials) / sizeof(*trials); i++) {
                double n = (double)trials[i][1], share = (double)trials[i][0] / n, low, high;

                sl_score_interval(trials[i][0], trials[i][1], &low, &high);
                cr_expect_float_eq(low, bisect(share, 1e-300, share, n), 1e-9, "%zu: %.12g", i, low);
                cr_expect_float_eq(high, bisect(share, 1 - 1e-16, share, n), 1e-9, "%zu: %.12g", i, high);
        }
}

Test(quantize_score, all_right_is_not_certainly_right_and_nothing_says_nothing)
{
        double low, high;

        sl_score_interval(450, 450, &low, &high);
        cr_expect(low > 0.99 && low < 1 && high >= 1 && high <= 1, "%g %g", low, high);
        sl_score_interval(0, 450, &low, &high);
        cr_expect(low >= 0 && low <= 0 && high > 0 && high < 0.01, "%g %g", low, high);
        sl_score_interval(0, 0, &low, &high);
        cr_expect(low >= 0 && low <= 0 && high >= 1 && high <= 1, "%g %g", low, high);
}
