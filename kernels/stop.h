/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ends a computation before it is done: a verdict that another thread speaks, or a deadline that passes by itself. Nobody
 * interrupts the thread that computes: it looks, between the steps of a plan and inside of those that may be long.
 *
 *   (V1) who ends it:     store-release the verdict.
 *   (V2) who computes:    load-acquire it, stop, and return it.     pairs with V1
 */
#pragma once

#include "base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct sl_stop {
        const _Atomic int32_t *verdict; /* 0, or the -errno that ends the computation; NULL: nobody ends it */
        uint64_t deadline_ns;           /* CLOCK_MONOTONIC; 0: none */
};

/* 0: go on; the verdict; -ETIME: the deadline has passed. Any thread. */
static inline int sl_stop_look(const struct sl_stop *stop)
{
        int verdict = stop->verdict ? atomic_load_explicit(stop->verdict, memory_order_acquire) : 0; /* V2 */

        if (verdict)
                return verdict;
        return stop->deadline_ns && sl_clock_ns() >= stop->deadline_ns ? -ETIME : 0;
}
