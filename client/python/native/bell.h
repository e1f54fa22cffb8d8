/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bell: who waits for a change that another thread makes sleeps here without the interpreter lock. The state itself is guarded by
 * that lock, so that a waiter looks at it, sleeps, and looks again:
 *
 *     while (it is not as wanted)
 *             if (sl_bell_wait(&bell) < 0)
 *                     return -1;
 */
#pragma once

#include "native.h"

#include <pthread.h>

struct bell {
        pthread_mutex_t lock;
        pthread_cond_t rung;
        uint32_t rings; /* under both locks when it is written */
};

void sl_bell_init(struct bell *bell);
void sl_bell_deinit(struct bell *bell);

/* Tells everybody who waits. With the interpreter lock. */
void sl_bell_ring(struct bell *bell);

/* Until the next ring, or for a tenth of a second, or @limit_ns if that is less. With the interpreter lock. */
void sl_bell_sleep(struct bell *bell, uint64_t limit_ns);

/* The same, and then handlers of signals run. Return: 0; -1 one has raised. */
int sl_bell_wait(struct bell *bell);
