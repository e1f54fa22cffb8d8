/*
 * Rules of shares: nobody takes everything, and who has nothing gets something.
 */
#include "account.h"
#include "base/clock.h"
#include "runtime.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

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
}

/* ---- accounts ---- */

struct lines {
        uint32_t n, left_out;
        char last[256];
};

static void count_line(void *context, int level, const char *event, const char *fields)
{
        struct lines *lines = context;

        (void)level;
        if (sscanf(fields, "uid=7 lines=%u limit_per_minute=5", &lines->left_out) == 1)
                cr_assert_str_eq(event, "log-lines-left-out");
        else
                lines->n++;
        snprintf(lines->last, sizeof(lines->last), "%s %s", event, fields);
}

Test(account, lines_of_one_user_are_bounded_and_the_rest_is_counted_and_others_write_on)
{
        struct lines lines = {0};
        struct sl_runtime_options runtime = {.uid_log_lines = 5, .log = count_line, .context = &lines};
        struct sl_accounts *accounts;

        cr_assert_eq(sl_accounts_new(&runtime, 3, &accounts), 0);
        struct sl_account *loud = sl_account_take(accounts, 7), *other = sl_account_take(accounts, 8);
        for (int i = 0; i < 100; i++)
                sl_account_log(accounts, loud, 1, "refused", "");
        cr_assert_eq(lines.n, 5);
        sl_account_log(accounts, other, 1, "refused", "of another");
        sl_account_log(accounts, NULL, 0, "failed", "of nobody");
        sl_account_log(accounts, loud, 3, "detail", "whoever wants details gets them");
        cr_assert_eq(lines.n, 8);
        sl_accounts_tell(accounts);
        cr_assert_eq(lines.left_out, 0, "it is too early");
        loud->left_out_since -= 20 * SL_NS_PER_SECOND;
        sl_accounts_tell(accounts);
        cr_assert_eq(lines.left_out, 95);
        lines.left_out = 0;
        sl_accounts_tell(accounts);
        sl_accounts_free(accounts);
        cr_assert_eq(lines.left_out, 0, "it is told once");
}

Test(account, what_is_left_out_is_told_at_the_end_too)
{
        struct lines lines = {0};
        struct sl_runtime_options runtime = {.uid_log_lines = 5, .log = count_line, .context = &lines};
        struct sl_accounts *accounts;

        cr_assert_eq(sl_accounts_new(&runtime, 3, &accounts), 0);
        for (int i = 0; i < 9; i++)
                sl_account_log(accounts, sl_account_take(accounts, 7), 1, "refused", "");
        sl_accounts_free(accounts);
        cr_assert_eq(lines.left_out, 4);
}

Test(account, a_user_that_leaves_and_comes_back_has_the_account_that_it_had)
{
        struct sl_runtime_options runtime = {.uid_log_lines = 5};
        struct sl_accounts *accounts;

        cr_assert_eq(sl_accounts_new(&runtime, 3, &accounts), 0);
        struct sl_account *first = sl_account_take(accounts, 1);
        first->line_due_ns = 77;
        sl_account_release(first);
        for (uid_t uid = 2; uid < 4; uid++)
                sl_account_release(sl_account_take(accounts, uid));
        cr_assert_eq(sl_account_take(accounts, 1), first);
        cr_assert_eq(first->line_due_ns, 77);
        cr_assert_eq(first->connections, 1);
        for (uid_t uid = 4; uid < 9; uid++)
                sl_account_release(sl_account_take(accounts, uid));
        cr_assert_eq(sl_account_find(accounts, 1), first, "who is here keeps it");
        cr_assert_null(sl_account_find(accounts, 2), "who has been away for longest makes room");
        sl_accounts_free(accounts);
}
