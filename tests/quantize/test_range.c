/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges: what each method makes of numbers with a known spread. */
#include "range.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static struct sl_range range; /* too large for a stack */

/* Ten thousand numbers, evenly from -1 to 3, and one of 100. */
static void fill(void)
{
        range = (struct sl_range){0};
        for (int i = 0; i < 10000; i++) {
                float x = -1 + 4 * (float)i / 9999;

                sl_range_add(&range, &x, 1);
        }
        sl_range_add(&range, &(float){100}, 1);
}

Test(range, minmax_spans_everything)
{
        float low, high;

        fill();
        sl_range_limits(&range, SL_RANGE_MINMAX, 0, &low, &high);
        cr_expect_eq(low, -1);
        cr_expect_eq(high, 100);
}

Test(range, a_percentile_leaves_the_outlier_out)
{
        float low, high;

        fill();
        sl_range_limits(&range, SL_RANGE_PERCENTILE, 99.9, &low, &high);
        cr_expect_float_eq(low, -1, 0.1);
        cr_expect_float_eq(high, 3, 0.2);
}

Test(range, the_least_square_does_not_spend_its_steps_on_one_number)
{
        float low, high;

        fill();
        for (int i = 0; i < 1000; i++)
                for (float x = -1; x < 3; x += 0.01f)
                        sl_range_add(&range, &x, 1);
        sl_range_limits(&range, SL_RANGE_MSE, 0, &low, &high);
        cr_expect_lt(high, 75);
        cr_expect_gt(high, 3);
}

Test(range, zero_lies_between_the_limits)
{
        float low, high, data[] = {3, 4, 5};

        range = (struct sl_range){0};
        sl_range_add(&range, data, 3);
        sl_range_limits(&range, SL_RANGE_MINMAX, 0, &low, &high);
        cr_expect_eq(low, 0);
        cr_expect_eq(high, 5);
}

Test(range, what_is_not_finite_is_passed_over)
{
        float low, high, data[] = {1, NAN, INFINITY, -INFINITY, -2};

        range = (struct sl_range){0};
        sl_range_add(&range, data, 5);
        sl_range_limits(&range, SL_RANGE_MINMAX, 0, &low, &high);
        cr_expect_eq(range.seen, 2);
        cr_expect_eq(low, -2);
        cr_expect_eq(high, 1);
}

/* As a saturated sigmoid makes them: one more, as a float, is twice the reach. */
Test(range, a_number_just_below_a_power_of_two_lies_in_the_last_bin)
{
        static struct sl_range neighbours[3];
        const float below = nextafterf(1, 0);
        uint64_t counted = 0;

        for (int i = 0; i < 100; i++)
                sl_range_add(&neighbours[1], &below, 1);
        for (int i = 0; i < SL_RANGE_BINS; i++)
                counted += neighbours[1].bins[i];
        cr_expect_eq(counted, 100);
        cr_expect_eq(neighbours[1].bins[SL_RANGE_BINS - 1], 100);
        cr_expect_eq(memcmp(&neighbours[2], &neighbours[0], sizeof(*neighbours)), 0, "the next range is another's");
}
