/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens external data for a child that cannot. The names come out of a hostile model, and an open may wait for long (a network file
 * system, FUSE), so a detached thread does it: nobody waits for it, nothing is shared with it. It ends when the child has ended, or
 * closed its end of the socket.
 */
#pragma once

#include <stdint.h>

struct sl_data_folders;

/*
 * @model_paths: of each model only what lies in its folder is opened, or what a link there leads to in one of @others (NULL: none);
 * both are read during the call only. @socket_fd: of packets, as
 * child_args.h says; the thread's from now on, also on failure. Return: 0; -ENOMEM; -EAGAIN there are too many threads.
 */
int sl_external_opener_start(
        const char *const *model_paths, uint32_t n_models, const struct sl_data_folders *others, int socket_fd);
