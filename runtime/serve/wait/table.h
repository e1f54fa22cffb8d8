/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an implementation of the wait provides. struct sl_wait is the first member of the implementation's own struct.
 * Contracts and threads are those of wait.h.
 */
#pragma once

#include "wait.h"

struct sl_wait_table {
        const char *name;
        struct sl_wait *(*free)(struct sl_wait *wait);
        int (*watch)(struct sl_wait *wait, int fd, uint64_t token);
        int (*accept)(struct sl_wait *wait, int fd, uint64_t token);
        int (*unwatch)(struct sl_wait *wait, uint64_t token);
        int (*wait_for)(struct sl_wait *wait, struct sl_wait_event *ret_events, uint32_t n, uint64_t timeout_ns);

        /* Tries a way that only two waits of this kind have. False: the post goes through the target's eventfd. NULL: never. */
        bool (*post_directly)(struct sl_wait *from, struct sl_wait *target, uint64_t token);
};

struct sl_postbox;

struct sl_wait {
        const struct sl_wait_table *table;
        struct sl_postbox *postbox;
};

int sl_wait_uring_new(struct sl_wait **ret_wait, struct sl_error *error);
int sl_wait_epoll_new(struct sl_wait **ret_wait, struct sl_error *error);
