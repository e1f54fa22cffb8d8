/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of successive halving: which of several goes on, when it ends, and how seldom chance is taken for a difference.
 */
#include "halving.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DRAWS 2000

static double normal(void)
{
        return sqrt(-2 * log(1 - drand48())) * cos(2 * M_PI * drand48());
}

/* Until it ends: of candidate i means[i], with noise of its own and a drift of the machine that all of a turn have. */
static uint32_t run(struct sl_halving *halving, const double *means, uint32_t n, double noise, double drift)
{
        uint32_t index, measured = 0;
        double machine = 0;

        sl_halving_init(halving, n);
        for (uint32_t turn = UINT32_MAX; sl_halving_next(halving, &index); measured++) {
                if (turn != halving->turn)
                        machine = drift * normal();
                turn = halving->turn;
                sl_halving_take(halving, means[index] + machine + noise * normal());
        }
        return measured;
}

Test(halving, the_best_is_found_though_the_machine_changes_more_than_they_differ)
{
        const double means[] = {100, 98, 103, 95, 100, 99, 110, 101};
        struct sl_halving halving;
        unsigned found = 0, told = 0;

        srand48(1);
        for (int draw = 0; draw < DRAWS; draw++) {
                run(&halving, means, 8, 2, 30);
                found += sl_halving_best(&halving) == 6;
                told += sl_halving_beats(&halving, 6, 0);
        }
        cr_expect_geq(found, DRAWS * 99 / 100);
        cr_expect_geq(told, DRAWS * 99 / 100);
}

Test(halving, of_two_that_are_alike_fewer_than_5_in_100_seem_better)
{
        const double means[] = {100, 100};
        struct sl_halving halving;
        unsigned seem = 0;

        srand48(2);
        for (int draw = 0; draw < DRAWS; draw++) {
                run(&halving, means, 2, 10, 0);
                seem += sl_halving_beats(&halving, 1, 0);
        }
        cr_expect_lt(seem, DRAWS * 5 / 100 + 20, "%u", seem); /* two standard deviations */
        cr_expect_gt(seem, 0);
}

/* Chances counted with a coin: 6 heads of 6, 10 of 12 and 18 of 24 come in less than 2.5 of 100 throws. */
static bool won_often(const struct sl_halving *halving, uint32_t a, uint32_t b)
{
        uint32_t n = halving->n_scores[b], won = 0;

        for (uint32_t i = 0; i < n; i++)
                won += halving->scores[a][i] > halving->scores[b][i];
        return won >= (n == 6 ? 6 : n == 12 ? 10 : 18);
}

Test(halving, what_is_there_stays_until_all_that_are_left_have_won_often_enough)
{
        const double means[] = {100, 103, 102, 97, 101.5};
        struct sl_halving halving;
        unsigned out = 0, to_the_end = 0;

        srand48(3);
        for (int draw = 0; draw < DRAWS; draw++) {
                uint32_t n;

                run(&halving, means, 5, 4, 10);
                n = halving.n_scores[0];
                if (!halving.is_out[0]) {
                        to_the_end += n == SL_HALVING_TURNS;
                        continue;
                }
                cr_assert(n == 6 || n == 12 || n == 24, "%u", n);
                cr_assert(won_often(&halving, sl_halving_best(&halving), 0));
                out++;
        }
        cr_expect_gt(out, DRAWS / 10);
        cr_expect_gt(to_the_end, DRAWS / 10);
}

Test(halving, half_of_them_goes_on_after_3_6_and_12_turns)
{
        /* None beats another by these: they win in turns. The first one is the worst and stays. */
        static const double scores[8][2] = {{0, 8.5}, {9, 2}, {2, 8}, {8, 3}, {3, 7}, {7, 4}, {4, 6}, {6, 5}};
        static const uint32_t left[SL_HALVING_TURNS] = {[2] = 5, [5] = 4, [11] = 3, [23] = 3};
        struct sl_halving halving;
        uint32_t index, measured = 0;

        sl_halving_init(&halving, 8);
        while (sl_halving_next(&halving, &index)) {
                uint32_t turn = halving.turn, n = 0;

                sl_halving_take(&halving, scores[index][turn % 2]);
                measured++;
                for (uint32_t i = 0; i < 8; i++)
                        n += !halving.is_out[i];
                if (halving.turn != turn && left[turn])
                        cr_expect_eq(n, left[turn], "%u are left after %u turns", n, halving.turn);
        }
        cr_expect_eq(halving.turn, SL_HALVING_TURNS);
        cr_expect_eq(measured, 3 * 8 + 3 * 5 + 6 * 4 + 12 * 3);
        cr_expect_eq(measured, sl_halving_most(8));
        cr_expect_not(halving.is_out[0]);
}

Test(halving, a_turn_has_each_that_is_left_once_and_every_other_turn_is_backwards)
{
        static const uint32_t wanted[] = {0, 1, 2, 2, 1, 0, 0, 1, 2};
        struct sl_halving halving;
        uint32_t index;

        sl_halving_init(&halving, 3);
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
                cr_assert(sl_halving_next(&halving, &index));
                cr_expect_eq(index, wanted[i], "measurement %zu is of %u", i, index);
                sl_halving_take(&halving, index);
        }
}

Test(halving, what_cannot_be_measured_is_left_out)
{
        struct sl_halving halving;
        uint32_t index, n = 0;

        sl_halving_init(&halving, 3);
        for (; sl_halving_next(&halving, &index); n++)
                sl_halving_take(&halving, index == 1 ? 5 : -INFINITY);
        cr_expect_eq(n, 2 + 6);
        cr_expect_eq(sl_halving_best(&halving), 1);
        sl_halving_init(&halving, 2);
        for (n = 0; sl_halving_next(&halving, &index); n++)
                sl_halving_take(&halving, -INFINITY);
        cr_expect_eq(n, 2);
        cr_expect_eq(sl_halving_best(&halving), 2);
}

Test(halving, of_equal_ones_the_former_stands_and_no_time_is_spent_on_them)
{
        struct sl_halving halving;
        uint32_t index;

        sl_halving_init(&halving, 3);
        while (sl_halving_next(&halving, &index))
                sl_halving_take(&halving, 7);
        cr_expect_eq(halving.turn, 6);
        cr_expect_eq(sl_halving_best(&halving), 0);
        cr_expect_not(sl_halving_beats(&halving, 1, 0));
}
