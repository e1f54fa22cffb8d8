/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread does while it has nothing to do: it looks for work for a while, then it sleeps until its bell rings.
 *
 * @found is inlined with its caller's loop: it says whether anything waits for @context's thread, and is the look of bell.h
 * between W1 and the wait as well.
 */
#pragma once

#include "base/clock.h"
#include "base/relax.h"
#include "bell.h"

#include <stdbool.h>

/* Every sleep has a limit as an insurance against a wake-up that is lost in the kernel. */
#define SL_IDLE_SLEEP_NS (1000 * SL_NS_PER_MS)

typedef bool sl_idle_found_fn(void *context);

/* Looks for @spin_ns, and a few times where that is 0. False: nothing was found. */
static inline bool sl_idle_spin(uint64_t spin_ns, sl_idle_found_fn *found, void *context)
{
        uint64_t until = spin_ns ? sl_clock_ns() + spin_ns : 0;

        do {
                for (int i = 0; i < 64; i++) {
                        if (found(context))
                                return true;
                        sl_relax();
                }
        } while (until && sl_clock_ns() < until);
        return false;
}

/* The bell's owner, whose wait it has. True: somebody has rung. */
static inline bool sl_idle_sleep(struct sl_bell *bell, sl_idle_found_fn *found, void *context)
{
        struct sl_wait_event event;

        sl_bell_sleep(bell);
        if (!found(context))
                sl_wait_for(bell->wait, &event, 1, SL_IDLE_SLEEP_NS);
        return sl_bell_awake(bell);
}
