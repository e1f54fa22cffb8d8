/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another process costs, as /proc tells it. No state; any thread.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/*
 * CPU time of all threads of @pid since it started: in nanoseconds where the kernel keeps /proc/PID/task/TID/schedstat, else in
 * clock ticks of 10 ms. Threads that have ended count with the latter only. Return: 0, -ESRCH.
 */
int sl_process_cpu_ns(pid_t pid, uint64_t *ret_ns);

/* Resident memory. Return: 0, -ESRCH. */
int sl_process_rss(pid_t pid, uint64_t *ret_bytes);
