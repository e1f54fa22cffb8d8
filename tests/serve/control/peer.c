/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"
#include "base/error.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <grp.h>
#include <sys/socket.h>
#include <unistd.h>

#define GROUPS 300u
#define FIRST  70000u

/* Only root can be in so many groups without a directory service; others have nothing to try here. */
Test(peer, the_last_of_many_groups_counts_as_much_as_the_first)
{
        gid_t groups[GROUPS], wanted = FIRST + GROUPS - 1, other = FIRST + GROUPS;
        struct sl_access access = {.client_gids = &wanted, .n_client_gids = 1};
        struct sl_peer peer;
        int sockets[2];

        for (uint32_t i = 0; i < GROUPS; i++)
                groups[i] = FIRST + i;
        if (geteuid() != 0 || setgroups(GROUPS, groups) < 0)
                cr_skip_test("it takes the right to join groups");
        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
        cr_assert_eq(sl_peer_of(sockets[0], &peer), 0);
        cr_expect_eq(peer.n_groups, GROUPS);
        peer.uid = 4711; /* root and the runtime's own user may always */
        cr_expect_eq(sl_peer_check(&peer, &access, SL_ROLE_CLIENT, NULL), 0);
        access.client_gids = &other;
        cr_expect_eq(sl_peer_check(&peer, &access, SL_ROLE_CLIENT, NULL), -EACCES);
        sl_peer_deinit(&peer);
        close(sockets[0]);
        close(sockets[1]);
}
