/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ends a computation before it is done: a verdict that another thread speaks, a deadline that passes by itself, or that the
 * thread has computed for as long as it may (own_time.h), or that it makes way for what is more urgent. Nobody
 * interrupts the thread that computes: it looks, between the steps of a plan and inside of those that may be long.
 *
 *   (V1) who ends it:     store-release the verdict.
 *   (V2) who computes:    load-acquire it, stop, and return it.     pairs with V1
 */
#pragma once

#include "base/clock.h"
#include "own_time.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Of a computation that nobody waits for. The thread that computes asks it at each look. */
struct sl_way {
        /* May wait, and counts that. Return: 0: go on; -EAGAIN: leave it as it is, it will be begun anew. */
        int (*look)(struct sl_way *way);
        uint64_t paused_ns;
};

struct sl_stop {
        const _Atomic int32_t *verdict; /* 0, or the -errno that ends the computation; NULL: nobody ends it */
        uint64_t deadline_ns;           /* CLOCK_MONOTONIC; 0: none */
        struct sl_own_time *own;        /* of the thread that looks; NULL: it may compute as long as it likes */
        struct sl_way *way;             /* NULL: it is not in anybody's */
};

/* 0: go on; the verdict; -ETIME: the deadline has passed; -EAGAIN: the thread's own time is over, or it makes way. Any thread, but
 * for those. */
static inline int sl_stop_look(const struct sl_stop *stop)
{
        int verdict = stop->verdict ? atomic_load_explicit(stop->verdict, memory_order_acquire) : 0; /* V2 */
        uint64_t now_ns;

        if (verdict || (!stop->deadline_ns && !stop->own && !stop->way))
                return verdict;
        if (stop->way && stop->way->look(stop->way) < 0)
                return -EAGAIN;
        now_ns = sl_clock_ns();
        if (stop->deadline_ns && now_ns >= stop->deadline_ns)
                return -ETIME;
        return stop->own && now_ns >= stop->own->look_ns ? sl_own_time_look(stop->own, now_ns) : 0;
}
