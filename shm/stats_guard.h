/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may read a file: its mode when that is everybody or nobody, else a POSIX access list, which names users and groups alike and
 * needs no membership of the owner. Pure but for the file; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_stats_guard {
        bool everybody;
        const uint32_t *uids, *gids; /* in any order, twice or not */
        uint32_t n_uids, n_gids;
};

#define SL_GUARD_NAMES_MAX 1024u

/*
 * Opens the caller's file @fd, of mode 0600, to those whom @guard names; NULL: to everybody. Return: 0; -EOPNOTSUPP the file system
 * knows no access lists, -E2BIG more than SL_GUARD_NAMES_MAX names, -errno: the file stays as it is.
 */
int sl_stats_guard_apply(int fd, const struct sl_stats_guard *guard);
