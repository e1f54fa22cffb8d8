/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a thread of the runtime sleeps and another one wakes it: the protocol of shm/doorbell.h (W1 to W3, K1, K2) between
 * threads. The sleeper owns the bell; K1 is the seq_cst store of sl_mailbox_put().
 *
 *     sleeper:  sl_bell_sleep(); look once more at every mailbox; if empty sl_wait_for(); sl_bell_awake()
 *     waker:    sl_mailbox_put(); sl_bell_ring()
 *
 * A sleeper that has nothing to give to whoever brings it something may sleep for ends alone: what ends nothing can wait for it.
 */
#pragma once

#include "wait.h"

#include <stdalign.h>
#include <stdatomic.h>

enum { SL_BELL_AWAKE, SL_BELL_FOR_ALL, SL_BELL_FOR_ENDS };

struct sl_bell {
        alignas(128) _Atomic uint32_t sleeping; /* SL_BELL_* */
        struct sl_wait *wait;                   /* the sleeper's */
        uint64_t token;                         /* of the POSTED event */
};

/* W1. Owner. */
static inline void sl_bell_sleep(struct sl_bell *bell)
{
        atomic_store_explicit(&bell->sleeping, SL_BELL_FOR_ALL, memory_order_seq_cst);
}

/* The same, for what sl_bell_ring_for() says is an end, and for all that rings without saying. */
static inline void sl_bell_sleep_for_ends(struct sl_bell *bell)
{
        atomic_store_explicit(&bell->sleeping, SL_BELL_FOR_ENDS, memory_order_seq_cst);
}

/* Owner, after the wait or when the last look found work. True: somebody has rung. */
static inline bool sl_bell_awake(struct sl_bell *bell)
{
        return atomic_exchange_explicit(&bell->sleeping, SL_BELL_AWAKE, memory_order_relaxed) == SL_BELL_AWAKE;
}

/* K2: a system call only if the owner sleeps; the exchange lets one of several wakers make it. Any thread; @from is its own wait or
 * NULL. True: the owner slept, and this woke it. */
static inline bool sl_bell_ring(struct sl_bell *bell, struct sl_wait *from)
{
        if (atomic_load_explicit(&bell->sleeping, memory_order_seq_cst) == SL_BELL_AWAKE ||
                atomic_exchange_explicit(&bell->sleeping, SL_BELL_AWAKE, memory_order_seq_cst) == SL_BELL_AWAKE)
                return false;
        sl_wait_post(from, bell->wait, bell->token);
        return true;
}

/* K2 of one who knows whether what it has put ends something. */
static inline void sl_bell_ring_for(struct sl_bell *bell, struct sl_wait *from, bool ends)
{
        if (ends || atomic_load_explicit(&bell->sleeping, memory_order_seq_cst) == SL_BELL_FOR_ALL)
                sl_bell_ring(bell, from);
}
