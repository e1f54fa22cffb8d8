/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the exporter listens. Functions without state.
 */
#pragma once

#include <stddef.h>

struct sl_error;

/*
 * A listening socket at "127.0.0.1:9464", "[::1]:9464" or "localhost:9464"; port 0 lets the kernel choose. Non-blocking and
 * close-on-exec. Return: it; -EINVAL with text: that is no address and port; -EADDRINUSE, -EADDRNOTAVAIL, -EACCES, -errno with
 * text.
 */
int listen_at(const char *address, struct sl_error *error);

/*
 * The socket that a service manager has handed over (sd_listen_fds(3)), of whatever kind. Return: it, ready as of listen_at();
 * -ENOENT none; -EINVAL with text: more than one, or no listening socket.
 */
int listen_handed_over(struct sl_error *error);

/* "127.0.0.1:9464", as the kernel says; of a Unix socket its path. */
void listen_name(int fd, char *ret_name, size_t bytes);
