/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors whose makers say how long their release takes. Errors are results; one thread.
 */
#pragma once

#include <stdint.h>

/* Descriptors in one message: the most that the kernel lets pass. */
#define LINGERING_MAX 253u

/*
 * TCP sockets with data that nobody reads, which linger for minutes when they are released, to @ret_fds. The other ends stay open
 * in this process, which alone knows them. Return: 0, -errno.
 */
int lingering_make(uint32_t n, int *ret_fds);

/* One more file descriptor of each kind that a process can have: the @kind-th of them. Return: the fd; -ENOENT no such kind;
 * -errno. */
int lingering_other(uint32_t kind, const char **ret_name);

/* Closes them; where that is the last close of one, its lingering is cut short by a signal (SIGALRM). */
void lingering_close(const int *fds, uint32_t n);

/* Sends a message's bytes with any number of descriptors; never waits. Return: 0, -errno. */
int lingering_send(int socket, const void *bytes, uint64_t n_bytes, const int *fds, uint32_t n_fds);
