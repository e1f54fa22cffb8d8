/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes that share memory and run on two CPUs: this one and a child that runs one function.
 *
 * The child ends with its function, is killed when this process dies, and is waited for by sl_pair_end(). It is a fork: @there may
 * use what was there before, but must not touch a starling client of its parent.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct sl_pair {
        void *memory; /* zeroed, page-aligned, touched */
        size_t bytes;
        pid_t child;
};

/* Runs in the child, on its CPU. Return: the child's exit code. */
typedef int (*sl_pair_fn)(void *memory, void *argument);

/* Binds this thread to @cpus[0] and a child to @cpus[1]. Return: 0; -EINVAL a CPU that this process may not use; -ENOMEM, -EAGAIN.
 */
int sl_pair_start(struct sl_pair *pair, const int cpus[2], size_t bytes, sl_pair_fn there, void *argument);

/*
 * Waits for the child, which was told to end through the memory, up to 10 s, then kills it; unmaps. A pair that did not start is
 * fine. Return: 0; -EIO the child failed.
 */
int sl_pair_end(struct sl_pair *pair);

/* Kills the child if it still runs and unmaps. */
void sl_pair_abort(struct sl_pair *pair);

/* True when the child has ended already. */
int sl_pair_ended(struct sl_pair *pair);
