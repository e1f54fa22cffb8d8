/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a child process of the runtime: with the descriptors that it is given under numbers that both sides know, with nothing
 * else but standard streams (the first two lead nowhere), and with no signal blocked or ignored. Functions without state; any
 * thread. The child asks to die with the thread that started it (process/sandbox.h).
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define SL_SPAWN_FIRST_FD 3

struct sl_spawn_options {
        const char *program;
        char *const *argv, *const *environment;
        const int *fds; /* the child's 3, 4, ...: close-on-exec here, which they stay */
        uint32_t n_fds;
};

/* Return: 0, and the caller reaps *ret_pid; -errno: there is no child. */
int sl_spawn(const struct sl_spawn_options *options, pid_t *ret_pid);

/* A descriptor of the same file that cannot be written to, whatever @fd can. Close-on-exec. Return: it; -errno. */
int sl_spawn_read_only(int fd);

/* One that can, of a file that its mode and its seals allow this process to write to. The same. */
int sl_spawn_writable(int fd);
