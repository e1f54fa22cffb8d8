/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is on the other end of an attach socket, and what that user may do. Pure but for the two questions to the kernel; any
 * thread.
 */
#pragma once

#include "attach.h"
#include "runtime_options.h"

#include <sys/types.h>

struct sl_peer {
        pid_t pid; /* in the runtime's PID namespace; 0 when it is in another one */
        uid_t uid;
        gid_t gid;
        gid_t *groups; /* [n_groups] supplementary ones */
        uint32_t n_groups;
};

/* SO_PEERCRED and SO_PEERGROUPS: as they were at connect(). Return: 0, -ENOMEM, -errno. */
int sl_peer_of(int socket, struct sl_peer *ret_peer);

/* Frees the groups; one of all zeroes is fine. Leaves it empty. */
void sl_peer_deinit(struct sl_peer *peer);

/* A pidfd of the peer: SO_PEERPIDFD where the kernel has it, else pidfd_open(). -1 when there is none to be had. */
int sl_peer_pidfd(int socket, const struct sl_peer *peer);

/* Return: 0; -EACCES with a text that names user and role. */
int sl_peer_check(const struct sl_peer *peer, const struct sl_access *access, enum sl_role role, struct sl_error *error);
