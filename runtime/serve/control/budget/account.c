/* SPDX-License-Identifier: Apache-2.0 */
#include "account.h"

#include "base/clock.h"
#include "base/fields.h"
#include "runtime_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LEVEL_WARNING 1 /* as sl_runtime_log_fn counts */
#define LEVEL_INFO    2

/* Lines that are left out are counted so long before a line says how many. */
#define TELL_AFTER_NS (5 * SL_NS_PER_SECOND)

int sl_accounts_new(const struct sl_runtime_options *runtime, uint32_t n, struct sl_accounts **ret_accounts)
{
        struct sl_accounts *accounts = calloc(1, sizeof(*accounts) + n * sizeof(accounts->accounts[0]));

        if (!accounts)
                return -ENOMEM;
        accounts->runtime = runtime;
        accounts->n = n;
        *ret_accounts = accounts;
        return 0;
}

static void write_line(const struct sl_accounts *accounts, int level, const char *event, const char *fields)
{
        if (accounts->runtime->log)
                accounts->runtime->log(accounts->runtime->context, level, event, fields);
}

static void tell_left_out(const struct sl_accounts *accounts, struct sl_account *account)
{
        struct sl_fields fields = {0};

        sl_fields_add_number(&fields, "uid", account->user.uid);
        sl_fields_add_number(&fields, "lines", account->lines_left_out);
        sl_fields_add_number(&fields, "limit_per_minute", accounts->runtime->uid_log_lines);
        account->lines_left_out = 0;
        write_line(accounts, LEVEL_WARNING, "log-lines-left-out", fields.text);
}

struct sl_accounts *sl_accounts_free(struct sl_accounts *accounts)
{
        for (uint32_t i = 0; accounts && i < accounts->n; i++)
                if (accounts->accounts[i].lines_left_out)
                        tell_left_out(accounts, &accounts->accounts[i]);
        free(accounts);
        return NULL;
}

struct sl_account *sl_account_find(struct sl_accounts *accounts, uid_t uid)
{
        for (uint32_t i = 0; i < accounts->n; i++)
                if (accounts->accounts[i].turn && accounts->accounts[i].user.uid == uid)
                        return &accounts->accounts[i];
        return NULL;
}

/* The one that nobody has used for longest. */
static struct sl_account *recycle(struct sl_accounts *accounts, uid_t uid)
{
        struct sl_account *spare = NULL;

        for (uint32_t i = 0; i < accounts->n; i++) {
                struct sl_account *account = &accounts->accounts[i];

                if (account->connections == 0 && (!spare || account->turn < spare->turn))
                        spare = account;
        }
        if (spare->lines_left_out)
                tell_left_out(accounts, spare);
        *spare = (struct sl_account){.user.uid = uid};
        return spare;
}

struct sl_account *sl_account_take(struct sl_accounts *accounts, uid_t uid)
{
        struct sl_account *account = sl_account_find(accounts, uid);

        if (!account)
                account = recycle(accounts, uid);
        account->turn = ++accounts->turn;
        account->connections++;
        return account;
}

void sl_account_release(struct sl_account *account)
{
        account->connections--;
}

void sl_account_log(struct sl_accounts *accounts, struct sl_account *account, int level, const char *event, const char *fields)
{
        uint64_t now;

        if (!account || level > LEVEL_INFO) {
                write_line(accounts, level, event, fields);
                return;
        }
        now = sl_clock_ns();
        if (sl_share_rate(&account->line_due_ns, accounts->runtime->uid_log_lines, now)) {
                write_line(accounts, level, event, fields);
                return;
        }
        if (account->lines_left_out++ == 0)
                account->left_out_since = now;
        accounts->left_out = true;
}

void sl_accounts_tell(struct sl_accounts *accounts)
{
        uint64_t now;

        if (!accounts->left_out)
                return;
        now = sl_clock_ns();
        accounts->left_out = false;
        for (uint32_t i = 0; i < accounts->n; i++) {
                struct sl_account *account = &accounts->accounts[i];

                if (account->lines_left_out && now - account->left_out_since >= TELL_AFTER_NS)
                        tell_left_out(accounts, account);
                accounts->left_out |= account->lines_left_out > 0;
        }
}
