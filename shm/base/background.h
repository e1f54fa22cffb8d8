/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that gives way to the threads that serve. A process gets what they leave, and a tenth of a core that they never leave. A
 * thread shares locks with them (the heap's, the address space's), and must not be kept from its core while it holds one: it has
 * their priority and only takes no core from a thread that runs. A host that denies it lets a task be as it is.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#define SL_BACKGROUND_NICE 10

/* A process of one thread. It cannot come back from there without privileges. */
static inline void sl_background_process(pid_t pid)
{
        struct sched_param none = {0};

        (void)sched_setscheduler(pid, SCHED_BATCH, &none);
        (void)setpriority(PRIO_PROCESS, (id_t)pid, SL_BACKGROUND_NICE);
}

/* The calling thread, or back. */
static inline void sl_background_thread(bool background)
{
        struct sched_param none = {0};

        (void)sched_setscheduler(0, background ? SCHED_BATCH : SCHED_OTHER, &none);
}
