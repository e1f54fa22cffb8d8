/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record per user (uid) with what it holds of the runtime, whose shares share.h says. A user has one as long as it has a
 * connection, and after that until another user needs the record: how much it has asked for lately is not forgotten when it leaves
 * and comes back.
 *
 * The log is written here as far as it is on behalf of a user: at most lines_per_minute of them, then one line that says how
 * many were left out.
 *
 * Control thread only, but for what user.h says.
 */
#pragma once

#include "base/share.h"
#include "user.h"

struct sl_runtime_options;

struct sl_account {
        struct sl_user user; /* as the dispatcher knows it */
        uint32_t connections, clients, readers;
        uint64_t arena_bytes;
        uint32_t regions;        /* of arenas, each of which keeps a descriptor */
        uint64_t turn;           /* of the last connection; 0: never used */
        uint64_t line_due_ns;    /* sl_share_rate() */
        uint64_t left_out_since; /* ns; of lines_left_out */
        uint32_t lines_left_out;
        uint64_t load_turn;      /* of the last load of sizes that it asked for */
        uint64_t compile_due_ns; /* sl_share_rate() */
};

struct sl_accounts {
        const struct sl_runtime_options *runtime; /* its log */
        uint64_t turn;
        bool left_out; /* by any */
        uint32_t n;
        struct sl_account accounts[];
};

/* @n: more than there can be connections. Return: 0, -ENOMEM. */
int sl_accounts_new(const struct sl_runtime_options *runtime, uint32_t n, struct sl_accounts **ret_accounts);
struct sl_accounts *sl_accounts_free(struct sl_accounts *accounts);

/* For one more connection of this user; and when it ends. */
struct sl_account *sl_account_take(struct sl_accounts *accounts, uid_t uid);
void sl_account_release(struct sl_account *account);

/* That of the user, if it has been here lately; NULL. */
struct sl_account *sl_account_find(struct sl_accounts *accounts, uid_t uid);

/* One line of the log, on behalf of @account (NULL: of nobody, and always written). */
void sl_account_log(struct sl_accounts *accounts, struct sl_account *account, int level, const char *event, const char *fields);

/* Says what has been left out, some seconds after it began. To be called about every second. */
void sl_accounts_tell(struct sl_accounts *accounts);
