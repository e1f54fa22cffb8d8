/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that others wait for, and which takes little: it goes before those that compute. A higher priority needs privileges; a
 * short slice does not (Linux 6.12 and later: what asks for little at a time is served sooner). Both are wishes. Neither is handed
 * on to threads and processes that it starts.
 */
#pragma once

#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SL_URGENT_SLICE_NS 100000ull /* the least that the kernel knows */

/* As the kernel has it since Linux 3.14; libc declares it later. */
struct sl_urgent_attributes {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
};

/* The calling thread. @niceness: a negative one. */
static inline void sl_urgent_thread(int32_t niceness)
{
        struct sl_urgent_attributes attributes = {
                .size = sizeof(attributes),
                .policy = SCHED_OTHER,
                .flags = 1, /* SCHED_FLAG_RESET_ON_FORK */
                .nice = niceness,
                .runtime_ns = SL_URGENT_SLICE_NS,
        };

        if (syscall(SYS_sched_setattr, 0, &attributes, 0) == 0)
                return;
        attributes.nice = 0;
        (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

/* The same, unless somebody has given this process another priority: then all of its threads have that. */
static inline void sl_urgent_thread_unless_given(int32_t niceness)
{
        if (getpriority(PRIO_PROCESS, 0) == 0)
                sl_urgent_thread(niceness);
}
