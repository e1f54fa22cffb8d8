/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells a forked child from the process that connected. One page of a client's own is wiped by the kernel in every child
 * (MADV_WIPEONFORK), so that the check on the request path is one load. Where the kernel lacks that, the process id is compared.
 * Any thread; written once by sl_fork_guard_init().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

enum { SL_FORK_IN_CHILD = 0, SL_FORK_IN_PARENT = 1, SL_FORK_ASK_PID = 2 };

struct sl_fork_guard {
        uint32_t *state; /* SL_FORK_*, on a page of its own */
        pid_t pid;
};

/* Return: 0, -ENOMEM. */
int sl_fork_guard_init(struct sl_fork_guard *guard);
void sl_fork_guard_deinit(struct sl_fork_guard *guard);

static inline bool sl_forked(const struct sl_fork_guard *guard)
{
        uint32_t state = *guard->state;

        if (__builtin_expect(state == SL_FORK_IN_PARENT, 1))
                return false;
        return state != SL_FORK_ASK_PID || getpid() != guard->pid;
}
