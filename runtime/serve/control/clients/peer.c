/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* A user of a directory service may be in hundreds of groups: the kernel is asked how many first. */
static int read_groups(int socket, struct sl_peer *peer)
{
        socklen_t bytes = 0;

        if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes) == 0 || errno != ERANGE)
                return 0;
        peer->groups = malloc(bytes);
        if (!peer->groups)
                return -ENOMEM;
        if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, peer->groups, &bytes) == 0)
                peer->n_groups = bytes / (socklen_t)sizeof(peer->groups[0]);
        return 0;
}

int sl_peer_of(int socket, struct sl_peer *ret_peer)
{
        struct ucred credentials;
        socklen_t bytes = sizeof(credentials);
        struct sl_peer peer = {0};

        if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) < 0)
                return -errno;
        peer.pid = credentials.pid;
        peer.uid = credentials.uid;
        peer.gid = credentials.gid;
        int r = read_groups(socket, &peer);
        if (r == 0)
                *ret_peer = peer;
        return r;
}

void sl_peer_deinit(struct sl_peer *peer)
{
        free(peer->groups);
        *peer = (struct sl_peer){0};
}

int sl_peer_pidfd(int socket, const struct sl_peer *peer)
{
        int fd = -1;
        socklen_t bytes = sizeof(fd);

        if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &bytes) == 0 && fd >= 0)
                return fd;
        return peer->pid > 0 ? (int)syscall(SYS_pidfd_open, peer->pid, 0) : -1;
}

static bool lists_uid(const uid_t *uids, uint32_t n, uid_t uid)
{
        for (uint32_t i = 0; i < n; i++)
                if (uids[i] == uid)
                        return true;
        return false;
}

static bool in_group(const struct sl_peer *peer, gid_t gid)
{
        for (uint32_t i = 0; i < peer->n_groups; i++)
                if (peer->groups[i] == gid)
                        return true;
        return peer->gid == gid;
}

static bool lists_group(const gid_t *gids, uint32_t n, const struct sl_peer *peer)
{
        for (uint32_t i = 0; i < n; i++)
                if (in_group(peer, gids[i]))
                        return true;
        return false;
}

static bool may(const struct sl_peer *peer, const struct sl_access *access, enum sl_role role)
{
        if (peer->uid == 0 || peer->uid == geteuid())
                return true;
        switch (role) {
        case SL_ROLE_ADMIN:
                return lists_uid(access->admin_uids, access->n_admin_uids, peer->uid) ||
                       lists_group(access->admin_gids, access->n_admin_gids, peer);
        case SL_ROLE_CLIENT:
                return access->everybody_client || lists_uid(access->client_uids, access->n_client_uids, peer->uid) ||
                       lists_group(access->client_gids, access->n_client_gids, peer);
        case SL_ROLE_READER:
                return access->everybody_reader || may(peer, access, SL_ROLE_CLIENT) ||
                       lists_uid(access->reader_uids, access->n_reader_uids, peer->uid) ||
                       lists_group(access->reader_gids, access->n_reader_gids, peer);
        }
        return false;
}

static const char *role_name(enum sl_role role)
{
        switch (role) {
        case SL_ROLE_ADMIN:
                return "administrator";
        case SL_ROLE_CLIENT:
                return "client";
        case SL_ROLE_READER:
                return "reader";
        }
        return "unknown role";
}

int sl_peer_check(const struct sl_peer *peer, const struct sl_access *access, enum sl_role role, struct sl_error *error)
{
        if (may(peer, access, role))
                return 0;
        return sl_error_set(error, EACCES, "user %u may not attach as %s", peer->uid, role_name(role));
}
