/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of accounts: what a user has asked for is remembered, and its lines in the log are bounded.
 */
#include "account.h"
#include "base/clock.h"
#include "runtime_options.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <time.h>

/* Stands still, but for what a test says. */
static uint64_t now_ns = 1000 * SL_NS_PER_SECOND;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now)
{
        (void)clock;
        *ret_now = (struct timespec){(time_t)(now_ns / SL_NS_PER_SECOND), (long)(now_ns % SL_NS_PER_SECOND)};
        return 0;
}

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
        now_ns += 20 * SL_NS_PER_SECOND;
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
