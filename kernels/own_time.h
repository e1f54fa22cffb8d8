/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a thread may compute, in time of its own: while others have its core it does not count. To ask how long it has computed
 * takes a system call, so it is asked only when so much time has passed by the clock: then its own time begins to count, and after
 * as much of that it is over. One thread, that which computes.
 */
#pragma once

#include <stdint.h>

struct sl_own_time {
        uint64_t bound_ns;
        uint64_t look_ns;  /* CLOCK_MONOTONIC: not before that */
        uint64_t begun_ns; /* of the thread's own time, when it began to count; 0: it does not yet */
};

/* Of this thread so far: what else ran meanwhile does not count. A system call. */
uint64_t sl_own_ns(void);

/* From @now_ns on, of the clock. */
static inline void sl_own_time_begin(struct sl_own_time *own, uint64_t bound_ns, uint64_t now_ns)
{
        *own = (struct sl_own_time){.bound_ns = bound_ns, .look_ns = now_ns + bound_ns};
}

/* At look_ns or later. Return: 0; -EAGAIN: it is over. */
int sl_own_time_look(struct sl_own_time *own, uint64_t now_ns);
