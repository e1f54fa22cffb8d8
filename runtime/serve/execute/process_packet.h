/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of fixed size on a socket between the runtime and a worker process (process_link.h), each with at most one descriptor,
 * but for those that bring workers to the process of a GPU. Functions without state; any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Without waiting. @fd: goes along; -1: none does. Return: 0; -EAGAIN no room; -EPIPE; -errno. */
int sl_process_packet_send(int socket_fd, const void *packet, size_t bytes, int fd);

/* The same with @n_fds descriptors, at most SL_PACKET_FDS_MAX. */
#define SL_PACKET_FDS_MAX 8
int sl_process_packet_send_all(int socket_fd, const void *packet, size_t bytes, const int *fds, uint32_t n_fds);

/* Without waiting. All descriptors that came along are the caller's. Return: as below. */
int sl_process_packet_receive_all(
        int socket_fd, void *ret_packet, size_t bytes, int ret_fds[SL_PACKET_FDS_MAX], uint32_t *ret_n_fds);

/*
 * Without waiting, into @bytes bytes. @ret_fd: the descriptor that came along, the caller's now, or -1; NULL: none is taken.
 * Return: bytes of the packet; 0: the other side is gone; -EAGAIN; -errno.
 */
int sl_process_packet_receive(int socket_fd, void *ret_packet, size_t bytes, int *ret_fd);
