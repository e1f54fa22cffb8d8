/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How late a thread is for what comes to it: how long it waits for a core when it is woken or was taken off one, as the kernel
 * counts it (/proc/thread-self/schedstat), a turn on a core or an entry that it took, whichever were more. A thread that is woken
 * for each entry is as late as its wake-ups are; one that stays awake and is taken off its core now and then is hardly ever late.
 * One thread, the one that it is about.
 */
#pragma once

#include <stdint.h>

struct sl_lateness {
        int fd;                    /* -1: the kernel does not count it */
        uint64_t waited_ns, turns; /* as last read */
        uint64_t late_ns;          /* of late: a mean that forgets */
};

/* The calling thread's from now on. */
void sl_lateness_init(struct sl_lateness *lateness);
void sl_lateness_deinit(struct sl_lateness *lateness);

/* Reads again; one system call. @entries: taken since the last time. Return: the mean wait of late, 0 when it is not counted. */
uint32_t sl_lateness_read(struct sl_lateness *lateness, uint64_t entries);

/* The mean after so many more turns on a core, which waited for @waited_ns together, and entries. Pure. */
uint64_t sl_lateness_forget(uint64_t late_ns, uint64_t waited_ns, uint64_t turns, uint64_t entries);
