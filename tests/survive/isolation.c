/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The boundary is the user. A runtime and two clients run as three users that are nobody's; each test tries one way across. What is
 * tried happens in a forked child that has become the user, and that says by its exit status how it went.
 */
#include "raw.h"
#include "users.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct sl_channel_shape shape = {.n_queues = 1, .depth = 4, .tensors = 2};

static void start(struct world *world, const char *access)
{
        users_need_root();
        world_init(world);
        world_move_to_user(world, RUNTIME_UID, "lenet");
        world_configure(world, "models: [lenet]\n");
        world_configure(world, access);
        world_start(world);
}

static void finish(struct world *world)
{
        world_stop(world);
        world_free(world);
}

/* ---- who is let in ---- */

static int expect_role(const struct world *world, enum sl_role role, int wanted, const char *text)
{
        struct sl_message hello = raw_hello(role, role == SL_ROLE_CLIENT ? &shape : NULL, 0), answer = {0};
        int socket = raw_dial(world->socket_path), fds[SL_MESSAGE_FDS_MAX];
        uint32_t n_fds = 0;

        if (socket < 0)
                return crossed("connect: %s", strerror(-socket));
        int r = raw_ask(socket, &hello, NULL, 0, &answer, fds, &n_fds);
        if (r != wanted)
                return crossed("role %d: %d, wanted %d: %s", role, r, wanted, answer.text);
        if (r < 0 && (!strstr(answer.text, text) || n_fds))
                return crossed("refused with \"%s\" and %u fds", answer.text, n_fds);
        close(socket);
        return HELD;
}

static int try_as_stranger(const struct world *world)
{
        return expect_role(world, SL_ROLE_CLIENT, -EACCES, "user 60004 may not attach as client") |
               expect_role(world, SL_ROLE_READER, -EACCES, "user 60004 may not attach as reader") |
               expect_role(world, SL_ROLE_ADMIN, -EACCES, "user 60004 may not attach as administrator") |
               expect_role(world, (enum sl_role)9, -EINVAL, "role 9 is not known");
}

static int try_as_client(const struct world *world)
{
        return expect_role(world, SL_ROLE_CLIENT, 0, "") | expect_role(world, SL_ROLE_READER, 0, "") |
               expect_role(world, SL_ROLE_ADMIN, -EACCES, "user 60002 may not attach as administrator");
}

static int try_as_reader(const struct world *world)
{
        return expect_role(world, SL_ROLE_READER, 0, "") |
               expect_role(world, SL_ROLE_CLIENT, -EACCES, "user 60003 may not attach as client");
}

Test(isolation, who_is_not_allowed_is_refused_by_name_and_role, .timeout = 60)
{
        struct world world;

        start(&world, "access: {allow: [60002], readers: [60003]}\n");
        cr_expect_eq(users_try(STRANGER_UID, try_as_stranger, &world), HELD);
        cr_expect_eq(users_try(CLIENT_UID, try_as_client, &world), HELD);
        cr_expect_eq(users_try(OTHER_UID, try_as_reader, &world), HELD);
        cr_expect_geq(world_count_log(&world, "user 60004 may not attach as client"), 1);
        finish(&world);
}

/* ---- what a role may do ---- */

static int ask_as(const struct world *world, enum sl_role role, uint32_t type, const char *model, int wanted)
{
        struct sl_message hello = raw_hello(role, role == SL_ROLE_CLIENT ? &shape : NULL, 0), answer = {0};
        struct sl_message question = {.magic = SL_WIRE_MAGIC, .type = type};
        int socket = raw_dial(world->socket_path), fds[SL_MESSAGE_FDS_MAX];
        uint32_t n_fds = 0;

        snprintf(question.model, sizeof(question.model), "%s", model);
        if (raw_ask(socket, &hello, NULL, 0, &answer, fds, &n_fds) < 0)
                return crossed("attach: %s", answer.text);
        while (n_fds > 0)
                close(fds[--n_fds]);
        int r = raw_ask(socket, &question, NULL, 0, &answer, fds, &n_fds);
        close(socket);
        return r == wanted ? HELD : crossed("role %d, message %u: %d, wanted %d: %s", role, type, r, wanted, answer.text);
}

static int try_to_administer_as_client(const struct world *world)
{
        return ask_as(world, SL_ROLE_CLIENT, SL_MESSAGE_UNLOAD, "lenet", -EPERM) |
               ask_as(world, SL_ROLE_CLIENT, SL_MESSAGE_LOAD, "mlp", -EPERM) |
               ask_as(world, SL_ROLE_CLIENT, SL_MESSAGE_RELOAD, "lenet", -EPERM) |
               ask_as(world, SL_ROLE_READER, SL_MESSAGE_UNLOAD, "lenet", -EPERM);
}

/* A reader has no queue pairs to submit to and gets no memory: asking for some ends the connection. */
static int try_to_submit_as_reader(const struct world *world)
{
        struct starling_options options = {.runtime = world->socket_path, .role = STARLING_ROLE_READER};
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model_entry entry;

        if (starling_connect(&options, &client, NULL) < 0)
                return BROKEN;
        if (starling_model_list(client, &entry, 1) != 1)
                return crossed("a reader cannot list");
        if (starling_queue_open(client, &queue, NULL) != -EPERM || starling_alloc(client, 64))
                return crossed("a reader has a queue pair or memory");
        starling_close(client);
        return ask_as(world, SL_ROLE_READER, SL_MESSAGE_REGION, "", -EPIPE);
}

static int administer(const struct world *world)
{
        return ask_as(world, SL_ROLE_ADMIN, SL_MESSAGE_RELOAD, "lenet", 0) |
               ask_as(world, SL_ROLE_ADMIN, SL_MESSAGE_UNLOAD, "lenet", 0) |
               ask_as(world, SL_ROLE_ADMIN, SL_MESSAGE_LOAD, "lenet", 0);
}

Test(isolation, only_administrators_load_and_unload_and_readers_only_read, .timeout = 60)
{
        struct world world;

        start(&world, "access: {allow: [60002], readers: [60002, 60003], admins: [60004]}\n");
        cr_expect_eq(users_try(CLIENT_UID, try_to_administer_as_client, &world), HELD);
        cr_expect_eq(users_try(OTHER_UID, try_to_submit_as_reader, &world), HELD);
        cr_expect_eq(users_try(STRANGER_UID, administer, &world), HELD);
        finish(&world);
}

/* ---- a client's own memory ---- */

static int expect_unwritable(int fd, const char *name)
{
        void *base = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (base != MAP_FAILED)
                return crossed("%s can be mapped for writing", name);
        base = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED)
                return crossed("%s cannot be read", name);
        if (mprotect(base, 4096, PROT_READ | PROT_WRITE) == 0)
                return crossed("%s can be made writable", name);
        if (pwrite(fd, "x", 1, 0) == 1)
                return crossed("%s can be written", name);
        return HELD;
}

static int expect_unwritable_reopened(int fd, const char *name)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        int again = open(path, O_RDWR | O_CLOEXEC);
        if (again < 0)
                return HELD;
        int r = expect_unwritable(again, name);
        close(again);
        return r;
}

static int expect_fixed_size(int fd, const char *name)
{
        struct stat status;

        if (fstat(fd, &status) < 0)
                return BROKEN;
        if (ftruncate(fd, 0) == 0 || errno != EPERM)
                return crossed("%s can be shrunk, or errno is %s", name, strerror(errno));
        if (ftruncate(fd, status.st_size * 2) == 0 || errno != EPERM)
                return crossed("%s can be grown, or errno is %s", name, strerror(errno));
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0)
                return crossed("%s can be sealed further", name);
        return HELD;
}

static int try_own_segments(const struct world *world)
{
        static const char *const names[] = {"catalogue", "request memory", "response memory", "doorbell", "bell", "arena"};
        struct raw raw;
        int result = HELD;

        if (raw_attach(&raw, world->socket_path, &shape, 1 << 16) < 0)
                return BROKEN;
        const struct sl_channel_header *headers[2] = {raw.request.base, raw.response.base};
        for (int i = 0; i < 2; i++)
                if (headers[i]->client_id != raw.welcome.welcome.client_id)
                        result |= crossed("a header of client %llu", (unsigned long long)headers[i]->client_id);
        for (uint32_t i = 0; i < raw.n_fds; i++) {
                if (i == SL_FD_DOORBELL || i == SL_FD_COMPLETION)
                        continue;
                result |= expect_fixed_size(raw.fds[i], names[i]);
                if (i == SL_FD_CATALOGUE || i == SL_FD_RESPONSE)
                        result |= expect_unwritable(raw.fds[i], names[i]) | expect_unwritable_reopened(raw.fds[i], names[i]);
        }
        raw_detach(&raw);
        return result;
}

Test(isolation, a_client_can_neither_write_responses_nor_resize_a_segment, .timeout = 60)
{
        struct world world;

        start(&world, "access: {allow: [60002, 60003]}\n");
        cr_expect_eq(users_try(CLIENT_UID, try_own_segments, &world), HELD);
        finish(&world);
}

/* ---- the memory of others ---- */

/* A client that sits there, with an arena, until it is killed. */
static int sit_there(const struct world *world)
{
        struct raw raw;

        if (raw_attach(&raw, world->socket_path, &shape, 1 << 16) < 0)
                return BROKEN;
        users_ready();
        for (;;)
                pause();
}

static int expect_closed(pid_t pid, const char *file)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
                return crossed("%s can be opened", path);
        return errno == EACCES || errno == EPERM || errno == ENOENT ? HELD : crossed("%s: %s", path, strerror(errno));
}

static pid_t victim; /* of the attempt: set before the fork, read in the child */

static int try_memory_of_another(const struct world *world)
{
        char bytes[64], path[64];
        struct iovec own = {bytes, sizeof(bytes)}, theirs = {(void *)expect_closed, sizeof(bytes)};
        int result = HELD;

        (void)world;
        result |= expect_closed(victim, "mem") | expect_closed(victim, "maps") | expect_closed(victim, "environ");
        for (int fd = 0; fd < 64; fd++) {
                snprintf(path, sizeof(path), "fd/%d", fd);
                result |= expect_closed(victim, path);
                snprintf(path, sizeof(path), "map_files/%d", fd);
                result |= expect_closed(victim, path);
        }
        if (process_vm_readv(victim, &own, 1, &theirs, 1, 0) > 0)
                result |= crossed("process_vm_readv reads");
        if (ptrace(PTRACE_SEIZE, victim, NULL, NULL) == 0)
                result |= crossed("ptrace");
        if (kill(victim, 0) == 0)
                result |= crossed("signals arrive");
        return result;
}

Test(isolation, nobody_reads_the_memory_of_the_runtime_or_of_another_client, .timeout = 60)
{
        struct world world;

        start(&world, "access: {allow: [60002, 60003]}\n");
        pid_t client = users_start(CLIENT_UID, sit_there, &world);
        victim = client;
        cr_expect_eq(users_try(OTHER_UID, try_memory_of_another, &world), HELD);
        victim = world.pid;
        cr_expect_eq(users_try(OTHER_UID, try_memory_of_another, &world), HELD);
        cr_expect_eq(users_try(CLIENT_UID, try_memory_of_another, &world), HELD);
        users_end(client);
        finish(&world);
}

static int try_memory_of_own_user(const struct world *world)
{
        (void)world;
        return expect_closed(victim, "mem") | expect_closed(victim, "maps") | expect_closed(victim, "fd/3") |
               (ptrace(PTRACE_SEIZE, victim, NULL, NULL) == 0 ? crossed("ptrace") : HELD);
}

/* A process of the runtime's own user can kill it, but finds its memory closed: the runtime is not dumpable. */
Test(isolation, the_runtime_is_closed_even_to_its_own_user, .timeout = 60)
{
        struct world world;

        start(&world, "access: {allow: [60002]}\n");
        victim = world.pid;
        cr_expect_eq(users_try(RUNTIME_UID, try_memory_of_own_user, &world), HELD);
        finish(&world);
}
