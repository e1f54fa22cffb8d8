/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of quantiles and of the interval of a median.
 */
#include "quantile.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#define DRAWS  2000
#define SAMPLE 25

Test(quantile, lies_between_its_neighbours_in_proportion)
{
        double numbers[] = {4, 1, 3, 2};

        sl_quantile_sort(numbers, 4);
        cr_expect_float_eq(sl_quantile(numbers, 4, 0), 1, 1e-12);
        cr_expect_float_eq(sl_quantile(numbers, 4, 0.5), 2.5, 1e-12);
        cr_expect_float_eq(sl_quantile(numbers, 4, 1), 4, 1e-12);
}

Test(quantile, few_measurements_have_no_interval)
{
        const double numbers[] = {1, 2, 3, 4, 5, 6};

        cr_expect(isinf(sl_interval_of_median(numbers, SL_INTERVAL_MIN - 1).high));
        cr_expect_eq(sl_interval_of_median(numbers, SL_INTERVAL_MIN).high, 6);
}

Test(quantile, the_interval_holds_the_median_in_95_of_100_draws)
{
        unsigned held = 0;

        srand48(7);
        for (int draw = 0; draw < DRAWS; draw++) {
                double numbers[SAMPLE];

                for (int i = 0; i < SAMPLE; i++)
                        numbers[i] = -log(1 - drand48()); /* its median is ln 2 */
                sl_quantile_sort(numbers, SAMPLE);
                struct sl_interval interval = sl_interval_of_median(numbers, SAMPLE);

                held += interval.low <= M_LN2 && M_LN2 <= interval.high;
        }
        cr_expect_geq(held, DRAWS * 94 / 100);
        cr_expect_leq(held, DRAWS * 98 / 100);
}
