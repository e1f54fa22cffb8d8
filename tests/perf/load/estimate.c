/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intervals hold the true value as often as they promise.
 */
#include "estimate.h"

#include "random.h"

#include <criterion/criterion.h>
#include <math.h>

#define EXPERIMENTS 20000u

/* Box and Muller, 1958. */
static double normal(struct sl_random *random)
{
        return sqrt(-2 * log(sl_random_uniform(random))) * cos(2 * M_PI * sl_random_uniform(random));
}

Test(estimate, student_has_the_quantiles_of_the_tables)
{
        cr_expect_float_eq(sl_estimate_student(1), 12.706, 0.001);
        cr_expect_float_eq(sl_estimate_student(4), 2.776, 0.001);
        cr_expect_float_eq(sl_estimate_student(4.5), 2.66, 0.01);
        cr_expect_float_eq(sl_estimate_student(30), 2.042, 0.001);
        cr_expect_float_eq(sl_estimate_student(60), 2.000, 0.002);
        cr_expect_float_eq(sl_estimate_student(1e9), 1.960, 0.001);
}

Test(estimate, an_interval_holds_the_mean_in_95_of_100_experiments)
{
        struct sl_random random;
        uint32_t held = 0;

        sl_random_seed(&random, 1, 0);
        for (uint32_t i = 0; i < EXPERIMENTS; i++) {
                double values[5];

                for (int k = 0; k < 5; k++)
                        values[k] = 100 + 7 * normal(&random);
                struct sl_estimate estimate = sl_estimate_mean(values, 5);

                held += estimate.low <= 100 && 100 <= estimate.high;
        }
        cr_expect_float_eq(held / (double)EXPERIMENTS, 0.95, 0.005);
}

Test(estimate, an_interval_of_a_ratio_holds_it_in_95_of_100_experiments)
{
        struct sl_random random;
        uint32_t held = 0;

        sl_random_seed(&random, 2, 0);
        for (uint32_t i = 0; i < EXPERIMENTS; i++) {
                double a[5], b[7];

                for (int k = 0; k < 5; k++)
                        a[k] = 100 * exp(0.02 * normal(&random));
                for (int k = 0; k < 7; k++)
                        b[k] = 80 * exp(0.1 * normal(&random));
                struct sl_estimate estimate = sl_estimate_ratio(a, 5, b, 7);

                held += estimate.low <= 0.8 && 0.8 <= estimate.high;
        }
        cr_expect_float_eq(held / (double)EXPERIMENTS, 0.95, 0.008);
}

/* Both sides vary together by a tenth, and one by a hundredth more: a pair knows the ratio ten times better than the two alone. */
Test(estimate, pairs_do_not_see_what_varies_alike)
{
        struct sl_random random;
        uint32_t held = 0;
        double paired_width = 0, width = 0;

        sl_random_seed(&random, 3, 0);
        for (uint32_t i = 0; i < EXPERIMENTS; i++) {
                double a[5], b[5];

                for (int k = 0; k < 5; k++) {
                        a[k] = 100 * exp(0.1 * normal(&random));
                        b[k] = 0.8 * a[k] * exp(0.01 * normal(&random));
                }
                struct sl_estimate paired = sl_estimate_paired_ratio(a, b, 5), alone = sl_estimate_ratio(a, 5, b, 5);

                held += paired.low <= 0.8 && 0.8 <= paired.high;
                paired_width += paired.high - paired.low;
                width += alone.high - alone.low;
        }
        cr_expect_float_eq(held / (double)EXPERIMENTS, 0.95, 0.005);
        cr_expect_lt(paired_width, width / 5);
}

Test(estimate, a_ratio_and_its_inverse_say_the_same)
{
        const double a[] = {10, 11, 10.5}, b[] = {20, 19, 23, 21};
        struct sl_estimate there = sl_estimate_ratio(a, 3, b, 4), back = sl_estimate_ratio(b, 4, a, 3);

        cr_expect_float_eq(there.value * back.value, 1, 1e-12);
        cr_expect_float_eq(there.low * back.high, 1, 1e-12);
        cr_expect_gt(there.low, 1.5);
}

Test(estimate, what_cannot_be_said_is_no_number)
{
        const double one[] = {5}, none[] = {NAN, NAN}, zero[] = {0, 1};

        cr_expect_eq(sl_estimate_mean(one, 1).value, 5);
        cr_expect(isnan(sl_estimate_mean(one, 1).low));
        cr_expect(isnan(sl_estimate_mean(none, 2).value));
        cr_expect(isnan(sl_estimate_mean(one, 0).value));
        cr_expect(isnan(sl_estimate_ratio(zero, 2, one, 1).value));
        cr_expect_eq(sl_estimate_ratio(one, 1, one, 1).value, 1);
        cr_expect(isnan(sl_estimate_ratio(one, 1, one, 1).low));
}

Test(estimate, binomial_sums_are_those_of_pascals_triangle)
{
        cr_expect_float_eq(sl_estimate_binomial(0, 10, 0.5), 1 / 1024.0, 1e-12);
        cr_expect_float_eq(sl_estimate_binomial(5, 10, 0.5), 638 / 1024.0, 1e-12);
        cr_expect_float_eq(sl_estimate_binomial(9, 10, 0.5), 1023 / 1024.0, 1e-12);
        cr_expect_float_eq(sl_estimate_binomial(2, 3, 0.1), 0.999, 1e-12);
        cr_expect_eq(sl_estimate_binomial(10, 10, 0.5), 1);
        cr_expect_eq(sl_estimate_binomial(3000, 6000, 0.01), 1, "a term of no size is no reason for 0");
        cr_expect_eq(sl_estimate_binomial(0, 1000000, 0.5), 0);
        cr_expect_float_eq(sl_estimate_binomial(2703, 270336, 0.01), 0.5, 0.02);
}
