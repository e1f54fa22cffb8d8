/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever passes descriptors to the runtime decides how long their release takes. Nobody must wait for that: neither who attaches,
 * nor a model that is loaded, nor the end of the process. The runtime and the attackers are users that are nobody's.
 */
#include "honest.h"
#include "lingering.h"
#include "raw.h"
#include "users.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define CONNECTIONS 8
#define FDS_WANTED  (2 * CONNECTIONS * LINGERING_MAX + 64) /* both ends of each */

static const struct sl_channel_shape shape = {.n_queues = 1, .depth = 2, .tensors = 1};

/* As a kernel before 6.16, on which everybody may pass descriptors over every socket. */
static void forget_passrights(void *context)
{
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

        (void)context;
        if (!filter ||
                seccomp_rule_add(
                        filter, SCMP_ACT_ERRNO(ENOPROTOOPT), SCMP_SYS(setsockopt), 1, SCMP_A2(SCMP_CMP_EQ, SO_PASSRIGHTS)) < 0 ||
                seccomp_rule_add(
                        filter, SCMP_ACT_ERRNO(ENOPROTOOPT), SCMP_SYS(getsockopt), 1, SCMP_A2(SCMP_CMP_EQ, SO_PASSRIGHTS)) < 0 ||
                seccomp_load(filter) < 0)
                _exit(125);
        seccomp_release(filter);
}

static void start(struct world *world, bool old_kernel)
{
        users_need_root();
        world_init(world);
        world_move_to_user(world, RUNTIME_UID, "lenet");
        world_configure(world, "models: [lenet]\naccess: {allow: [60002], admins: [60002]}\n");
        world->before_exec = old_kernel ? forget_passrights : NULL;
        world_start(world);
}

/* ---- a stranger ---- */

/* One message with all the descriptors that fit; this process keeps none of them. */
static int pass_lingering(int socket, const struct sl_message *message)
{
        int fds[LINGERING_MAX], r = lingering_make(LINGERING_MAX, fds);

        if (r < 0)
                return r;
        r = lingering_send(socket, message, SL_MESSAGE_BYTES, fds, LINGERING_MAX);
        lingering_close(fds, LINGERING_MAX);
        return r;
}

/* Messages that are right but for what lies beside them, messages that are wrong, and connections that end at once. */
static int flood(const struct world *world)
{
        const struct rlimit limit = {FDS_WANTED, FDS_WANTED};
        struct sl_message hello = raw_hello(SL_ROLE_CLIENT, &shape, 0);
        int sockets[CONNECTIONS];

        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                return BROKEN;
        for (int i = 0; i < CONNECTIONS; i++) {
                sockets[i] = raw_dial(world->socket_path);
                hello.magic = i % 2 ? SL_WIRE_MAGIC : 0;
                int r = sockets[i] < 0 ? sockets[i] : pass_lingering(sockets[i], &hello);

                if (r < 0 && r != -EPERM && r != -ETOOMANYREFS && r != -EPIPE && r != -ECONNRESET)
                        return crossed("connection %d: %s", i, strerror(-r));
                if (i >= CONNECTIONS / 2)
                        close(sockets[i]);
        }
        users_ready();
        pause();
        return HELD;
}

static void expect_service(struct world *world)
{
        struct starling_client *admin = world_connect(world, STARLING_ROLE_ADMIN);
        struct starling_error error = {""};

        cr_expect_eq(starling_admin_reload(admin, "lenet", &error), 0, "%s", error.text);
        starling_close(admin);
        starling_close(world_connect(world, STARLING_ROLE_CLIENT));
}

static void withstand_flood(bool old_kernel)
{
        struct footprint before;
        struct honest *honest;
        struct world world;

        start(&world, old_kernel);
        honest = honest_start(&world, "lenet");
        honest_expect_progress(honest, 1);
        before = world_footprint(&world);
        pid_t attacker = users_start(STRANGER_UID, flood, &world);
        expect_service(&world);
        honest_expect_progress(honest, 10);
        pid_t second = users_start(STRANGER_UID, flood, &world);
        users_end(attacker);
        users_end(second);
        world_expect_footprint(&world, &before);
        honest_stop(honest);
        attacker = users_start(STRANGER_UID, flood, &world);
        kill(world.pid, SIGTERM);
        int status = world_wait(&world);
        users_end(attacker);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %#x:\n%s", status, world_log(&world));
        world_expect_nothing_left(&world, false);
        world_free(&world);
}

Test(descriptors, a_stranger_who_passes_lingering_sockets_holds_nobody_up, .timeout = 60)
{
        withstand_flood(false);
}

Test(descriptors, nor_does_one_where_the_kernel_lets_everybody_pass_them, .timeout = 60)
{
        withstand_flood(true);
}

/* ---- a client ---- */

static uint32_t announced; /* regions, by the attempts below */

/* A client that came back, as it says. */
static int come_back(const struct world *world)
{
        struct sl_message hello = raw_hello(SL_ROLE_CLIENT, &shape, 0), answer = {0};
        int socket = raw_dial(world->socket_path), fds[SL_MESSAGE_FDS_MAX];
        uint32_t n_fds = 0;

        hello.hello.n_kept_regions = announced;
        if (raw_ask(socket, &hello, NULL, 0, &answer, fds, &n_fds) < 0)
                return -1;
        while (n_fds > 0)
                close(fds[--n_fds]);
        return socket;
}

/* Return: true when the runtime has ended the connection, which it must, or the kernel passes no such descriptor. */
static bool is_ejected(int socket, const int *fds, uint32_t n_fds)
{
        struct sl_message region = {.magic = SL_WIRE_MAGIC, .type = SL_MESSAGE_REGION}, answer;
        int sent = lingering_send(socket, &region, SL_MESSAGE_BYTES, fds, n_fds), more[SL_MESSAGE_FDS_MAX];
        uint32_t n_more = 0;

        lingering_close(fds, n_fds);
        int r = sent < 0 ? sent : sl_message_receive(socket, &answer, more, SL_MESSAGE_FDS_MAX, &n_more, 0);
        close(socket);
        return r == -EPIPE || r == -EINVAL || (!announced && r == -EPERM);
}

static int hand_back_anything(const struct world *world)
{
        const char *name;
        int fd, result = HELD;

        announced = 1;
        for (uint32_t kind = 0; (fd = lingering_other(kind, &name)) != -ENOENT; kind++)
                if (fd >= 0 && !is_ejected(come_back(world), &fd, 1))
                        result |= crossed("%s was handed back, and the connection lives on", name);
        return result;
}

Test(descriptors, a_client_that_hands_back_anything_but_its_memory_is_ejected, .timeout = 60)
{
        struct footprint before;
        struct world world;

        for (int old_kernel = 0; old_kernel < 2; old_kernel++) {
                start(&world, old_kernel);
                before = world_footprint(&world);
                cr_expect_eq(users_try(CLIENT_UID, hand_back_anything, &world), HELD);
                cr_expect_eq(world_count_log(&world, "is no memfd of ordinary pages"), 5, "%s", world_log(&world));
                cr_expect_eq(world_count_log(&world, "has seals"), 2, "%s", world_log(&world));
                expect_service(&world);
                world_expect_footprint(&world, &before);
                world_stop(&world);
                world_free(&world);
        }
}

static int hand_back_too_much(const struct world *world)
{
        int fds[LINGERING_MAX], result = HELD;

        for (announced = 0; announced < 2; announced++)
                for (uint32_t n = 1 + announced; n <= LINGERING_MAX; n += LINGERING_MAX - 2) {
                        int socket = come_back(world);

                        if (lingering_make(n, fds) < 0)
                                return BROKEN;
                        if (!is_ejected(socket, fds, n))
                                result |= crossed(
                                        "%u descriptors where %u were announced, and the connection lives on", n, announced);
                }
        return result;
}

Test(descriptors, more_of_them_than_were_announced_end_the_connection, .timeout = 60)
{
        struct footprint before;
        struct world world;

        for (int old_kernel = 0; old_kernel < 2; old_kernel++) {
                start(&world, old_kernel);
                before = world_footprint(&world);
                cr_expect_eq(users_try(CLIENT_UID, hand_back_too_much, &world), HELD);
                cr_expect_geq(world_count_log(&world, "descriptors that were not asked for"), 2, "%s", world_log(&world));
                expect_service(&world);
                world_expect_footprint(&world, &before);
                world_stop(&world);
                world_free(&world);
        }
}
