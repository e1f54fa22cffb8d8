/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How late a thread is: how long it waits for a core when it is woken or was taken off one, as the kernel counts it
 * (/proc/thread-self/schedstat). One thread, the one that it is about.
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

/* Reads again; one system call. Return: the mean wait of the last turns, 0 when it is not counted. */
uint32_t sl_lateness_read(struct sl_lateness *lateness);

/* The mean after @turns more turns on a core, which waited for @waited_ns together. Pure. */
uint64_t sl_lateness_forget(uint64_t late_ns, uint64_t waited_ns, uint64_t turns);
