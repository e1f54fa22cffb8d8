/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of shares: nobody takes everything, and who has nothing gets something.
 */
#include "base/share.h"
#include "base/clock.h"

#include <criterion/criterion.h>

/* Each of @n users takes as much as it is given, one after the other. */
static void take_all(uint32_t total, uint32_t n, uint32_t *ret_held)
{
        uint32_t taken = 0;

        for (uint32_t i = 0; i < n; i++)
                for (ret_held[i] = 0; sl_share_grants(total, taken, ret_held[i]); taken++)
                        ret_held[i]++;
}

Test(share, who_takes_all_it_is_given_leaves_places_for_many_that_have_none)
{
        for (uint32_t total = 4; total <= 1024; total++) {
                uint32_t held[1024], users = 0;

                take_all(total, total, held);
                while (users < total && held[users])
                        users++;
                cr_assert_geq(held[0], total / 2, "%u of %u", held[0], total);
                cr_assert_gt(users, total / 8, "of %u places the first of %u users has %u", total, users, held[0]);
        }
}

Test(share, what_is_given_out_never_passes_what_there_is)
{
        for (uint32_t total = 0; total <= 64; total++) {
                uint32_t held[64], sum = 0;

                take_all(total, 64, held);
                for (uint32_t i = 0; i < 64; i++)
                        sum += held[i];
                cr_assert_eq(sum, total);
        }
        cr_assert_not(sl_share_grants(8, 9, 0));
}

Test(share, the_shares_of_all_are_no_more_than_there_is_but_never_nothing)
{
        for (uint32_t users = 1; users <= 100; users++)
                cr_assert_leq(users * sl_share_each(100, users), 100);
        cr_assert_eq(sl_share_each(3, 8), 1);
        cr_assert_eq(sl_share_each(64, 0), 64);
}

Test(share, a_rate_allows_a_minutes_worth_at_once_and_then_one_at_a_time)
{
        uint64_t due = 0, now = 1000 * SL_NS_PER_SECOND;
        uint32_t n = 0;

        while (sl_share_rate(&due, 30, now))
                n++;
        cr_assert_eq(n, 30);
        cr_assert_not(sl_share_rate(&due, 30, now + SL_NS_PER_SECOND));
        cr_assert(sl_share_rate(&due, 30, now + 2 * SL_NS_PER_SECOND));
        cr_assert_not(sl_share_rate(&due, 30, now + 3 * SL_NS_PER_SECOND));
        for (n = 0, now += 3600 * SL_NS_PER_SECOND; sl_share_rate(&due, 30, now);)
                n++;
        cr_assert_eq(n, 30, "an hour of rest is worth no more than a minute");
        sl_share_rate_back(&due, 30);
        cr_assert(sl_share_rate(&due, 30, now));
        cr_assert_not(sl_share_rate(&due, 30, now));
}
