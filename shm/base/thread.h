/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that has a name and what else it needs from its first instruction on; its stack is 8 MiB, whatever RLIMIT_STACK says.
 */
#pragma once

#include <pthread.h>
#include <sched.h>

typedef void *sl_thread_main_fn(void *argument);

/**
 * sl_thread_start() - start a thread
 * @cores: where it runs; empty: wherever the caller may
 * @name:  at most 15 bytes: what is behind them is left out
 *
 * Any thread. It is the caller's to join.
 *
 * Return: 0, -EAGAIN, -ENOMEM, or -EINVAL when this process may run on none of @cores.
 */
int sl_thread_start(const cpu_set_t *cores, const char *name, sl_thread_main_fn *main, void *argument, pthread_t *ret_thread);

/**
 * sl_thread_start_aside() - start a thread that no signal comes to: they are for the threads that wait for them
 * @cores: where it runs; NULL or empty: wherever the caller may
 * @name:  at most 15 bytes: what is behind them is left out
 *
 * Any thread. It is the caller's to join, or to detach. Return: as above.
 */
int sl_thread_start_aside(const cpu_set_t *cores, const char *name, sl_thread_main_fn *main, void *argument, pthread_t *ret_thread);
