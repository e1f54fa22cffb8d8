/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of users and groups, as the configuration writes them, resolved to numbers. Threads: one at a time (getpwnam).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sl_people {
        uid_t *uids;
        gid_t *gids;
        uint32_t n_uids, n_gids;
        bool everybody;
};

/*
 * Adds "alice", "1000" (users), "@ml", "@100" (groups) or "*" (everybody). Return: 0; -EINVAL nobody of that name, with @ret_wish
 * as value.h says; -ENOMEM.
 */
int sl_people_add(struct sl_people *people, const char *text, char *ret_wish);

/* Frees what was added. */
void sl_people_deinit(struct sl_people *people);
