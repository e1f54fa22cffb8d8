/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attach socket's place in the file system. Whoever finds it can connect at once: it is bound beside its place (PATH~), gets
 * its mode, listens, and is then moved there in one step, over what a dead runtime left behind. Functions without state; control
 * thread.
 */
#pragma once

#include <stdbool.h>

struct sl_error;

/*
 * Opens the socket at @path, which its caller alone uses (the claim on the stats page says so). Everybody may connect, nobody may
 * pass fds (where the kernel knows SO_PASSRIGHTS). Return: 0; -EISDIR, -EPERM, -EACCES, -ENAMETOOLONG, -errno with text.
 */
int sl_listener_open(const char *path, int *ret_fd, struct sl_error *error);

/* True when a socket lies at @path. */
bool sl_listener_is_there(const char *path);
