/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime in bad surroundings: a wrong configuration, a system that is full or denies things. Each time there is one clear error
 * or the stated fallback, the exit status says it, and nothing is left.
 */
#include "freeze.h"
#include "honest.h"
#include "stats.h"
#include "users.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- configuration ---- */

static void expect_usage_error(const char *yaml, const char *text)
{
        struct world world;

        world_init_compiling(&world);
        world_configure(&world, yaml);
        world_launch(&world);
        int status = world_wait(&world);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 2, "wait status %#x: %s", status, world_log(&world));
        cr_expect_not_null(strstr(world_log(&world), text), "no \"%s\" in: %s", text, world_log(&world));
        cr_expect_eq(world_count_log(&world, "\n"), 1, "more than one line: %s", world_log(&world));
        world_expect_nothing_left(&world, false);
        world_free(&world);
}

Test(surroundings, a_wrong_configuration_is_named_by_file_line_and_key, .timeout = 60)
{
        expect_usage_error("limits: {clients: many}\n", "config.yaml:4");
        expect_usage_error("nonsense: 1\n", "nonsense");
        expect_usage_error("limits: [1, 2\n", "config.yaml:");
        expect_usage_error("wait: sometimes\n", "wait");
}

/* ---- a system that is full ---- */

static void mount_at(const char *path, const char *options, unsigned long flags)
{
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                mount("tmpfs", path, "tmpfs", flags, options) < 0)
                _exit(125);
}

static void fill_shared_memory(void *context)
{
        (void)context;
        mount_at("/dev/shm", "size=64k", 0);
}

static void protect_shared_memory(void *context)
{
        (void)context;
        mount_at("/dev/shm", "", MS_RDONLY);
}

/* A /dev with nothing but what every program needs. */
static void remove_shared_memory(void *context)
{
        const struct world *world = context;
        char path[128], null[160];

        snprintf(path, sizeof(path), "%s/dev", world->folder);
        snprintf(null, sizeof(null), "%s/null", path);
        mkdir(path, 0755);
        mount_at(path, "", 0);
        int fd = open(null, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0 || mount("/dev/null", null, NULL, MS_BIND, NULL) < 0 || mount(path, "/dev", NULL, MS_MOVE, NULL) < 0)
                _exit(125);
        close(fd);
}

static void expect_page_beside_socket(struct world *world, const char *cause)
{
        struct sl_stats_header header;
        struct sl_stats_view *view;

        cr_expect_eq(world_count_log(world, "event=stats-page-elsewhere"), 1, "%s", world_log(world));
        cr_expect_not_null(strstr(world_log(world), cause), "no \"%s\" in: %s", cause, world_log(world));
        setenv("STARLING_SOCKET_DIR", world->folder, 1);
        cr_assert_eq(sl_stats_open(world->name, NULL, &view, NULL), 0);
        sl_stats_read_header(view, &header);
        cr_expect_eq(header.pid, (uint32_t)world->pid);
        sl_stats_close(view);
        unsetenv("STARLING_SOCKET_DIR");
}

Test(surroundings, where_dev_shm_cannot_have_the_stats_page_it_lies_beside_the_socket, .timeout = 60)
{
        static const struct {
                void (*before_exec)(void *context);
                const char *cause;
        } cases[] = {
                {fill_shared_memory, "No space left"},
                {protect_shared_memory, "Read-only file system"},
                {remove_shared_memory, "No such file or directory"},
        };

        if (geteuid() != 0)
                cr_skip_test("only root can mount another /dev/shm");
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct honest *honest;
                struct world world;

                world_init(&world);
                world_configure(&world, "models: [lenet]\n");
                world.before_exec = cases[i].before_exec;
                world.context = &world;
                world_launch(&world);
                world_expect_log(&world, "event=ready ");
                expect_page_beside_socket(&world, cases[i].cause);
                honest = honest_start(&world, "lenet");
                honest_expect_progress(honest, 10);
                honest_stop(honest);
                world_stop(&world);
                world_free(&world);
        }
}

/* ---- limits of the process ---- */

static void set_limit(void *context)
{
        const struct limit {
                int resource;
                rlim_t value;
        } *limit = context;
        const struct rlimit both = {limit->value, limit->value};

        setrlimit((__rlimit_resource_t)limit->resource, &both);
}

Test(surroundings, a_limit_of_the_process_that_is_too_low_is_named_with_value_and_need, .timeout = 60)
{
        static const struct {
                struct {
                        int resource;
                        rlim_t value;
                } limit;
                const char *text;
        } cases[] = {
                {{RLIMIT_NOFILE, 20}, "RLIMIT_NOFILE is 20 descriptors (ulimit -n): a runtime needs at least 48"},
                {{RLIMIT_STACK, 65536}, "RLIMIT_STACK is 65536 bytes (ulimit -s): a runtime needs at least 262144"},
                {{RLIMIT_FSIZE, 1 << 20},
                        "RLIMIT_FSIZE is 1048576 bytes (ulimit -f): limits.staging_bytes needs at least 67108864"},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct world world;

                if (WORLD_SLOW && cases[i].limit.resource == RLIMIT_STACK)
                        continue; /* a sanitizer does not come as far as the check */
                world_init(&world);
                world_configure(&world, "models: [lenet]\n");
                world.before_exec = set_limit;
                world.context = (void *)&cases[i].limit;
                world_launch(&world);
                int status = world_wait(&world);
                cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1, "wait status %#x: %s", status, world_log(&world));
                cr_expect_not_null(strstr(world_log(&world), cases[i].text), "%s", world_log(&world));
                cr_expect_eq(world_count_log(&world, "\n"), 2, "more than the start and the cause: %s", world_log(&world));
                world_expect_nothing_left(&world, false);
                world_free(&world);
        }
}

static void set_largest_file(void *context)
{
        const struct rlimit files = {80 << 20, 80 << 20};

        (void)context;
        setrlimit(RLIMIT_FSIZE, &files);
}

/* Of what is made later the kernel says so by a signal, too, which would end the runtime. */
Test(surroundings, what_is_larger_than_a_file_may_be_is_refused_and_others_go_on, .timeout = 60)
{
        struct starling_client *client;
        struct starling_error error;
        struct honest *honest;
        struct world world;

        world_init(&world);
        world_configure(&world, "models: [lenet]\nlimits: {client: {arena_bytes: 1 GiB}}\n");
        world.before_exec = set_largest_file;
        world_start(&world);
        honest = honest_start(&world, "lenet");
        client = world_connect(&world, STARLING_ROLE_CLIENT);
        errno = 0;
        cr_expect_null(starling_alloc(client, 128 << 20));
        starling_alloc_error(client, 128 << 20, -errno, &error);
        cr_expect_not_null(strstr(error.text, "the runtime refused"), "%s", error.text);
        cr_expect_not_null(strstr(error.text, strerror(EFBIG)), "%s", error.text);
        honest_expect_progress(honest, 10);
        starling_close(client);
        honest_stop(honest);
        world_stop(&world);
        world_free(&world);
}

/* Soft limits are the shell's habit; the hard ones are meant. */
static void set_soft_limits(void *context)
{
        static const int resources[] = {RLIMIT_NOFILE, RLIMIT_STACK, RLIMIT_FSIZE};

        (void)context;
        for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
                struct rlimit limit;

                getrlimit((__rlimit_resource_t)resources[i], &limit);
                limit.rlim_cur = resources[i] == RLIMIT_NOFILE ? 20 : 65536;
                setrlimit((__rlimit_resource_t)resources[i], &limit);
        }
}

static void set_small_stack(void *context)
{
        const struct rlimit stack = {256 << 10, 256 << 10};

        (void)context;
        setrlimit(RLIMIT_STACK, &stack);
}

static void expect_service(void (*before_exec)(void *context))
{
        struct honest *honest;
        struct world world;

        world_init_compiling(&world);
        world_configure(&world, "models: [lenet]\n");
        world.before_exec = before_exec;
        world_start(&world);
        honest = honest_start(&world, "lenet");
        honest_expect_progress(honest, 5);
        honest_stop(honest);
        world_stop(&world);
        world_free(&world);
}

Test(surroundings, soft_limits_are_raised_to_the_hard_ones, .timeout = 60)
{
        expect_service(set_soft_limits);
}

#define THREAD_STACK (8u << 20)

/* Of a process: its threads but the main one, and mappings that are as large as their stacks are to be. */
static void count_stacks(pid_t pid, uint32_t *ret_threads, uint32_t *ret_stacks)
{
        char path[64], line[256];
        unsigned long begin, end;
        FILE *maps;

        *ret_threads = *ret_stacks = 0;
        snprintf(path, sizeof(path), "/proc/%d/maps", pid);
        maps = fopen(path, "re");
        cr_assert_not_null(maps);
        while (fgets(line, sizeof(line), maps))
                if (sscanf(line, "%lx-%lx rw-p", &begin, &end) == 2)
                        *ret_stacks += end - begin == THREAD_STACK;
        fclose(maps);
        snprintf(path, sizeof(path), "/proc/%d/status", pid);
        maps = fopen(path, "re");
        cr_assert_not_null(maps);
        while (fgets(line, sizeof(line), maps))
                if (sscanf(line, "Threads: %u", ret_threads) == 1)
                        --*ret_threads;
        fclose(maps);
}

Test(surroundings, threads_have_stacks_of_their_own_size, .timeout = 60)
{
        uint32_t threads, stacks;
        struct world world;

        users_need_root();
        if (WORLD_SLOW)
                cr_skip_test("sanitizers need more of the main thread's stack, and have mappings of their own");
        world_init(&world);
        world_configure(&world, "models: [lenet]\n");
        world.before_exec = set_small_stack;
        world_start(&world);
        WORLD_AWAIT((count_stacks(world.pid, &threads, &stacks), threads >= 2 && stacks >= threads)); /* they begin and end */
        cr_expect(threads >= 2 && stacks >= threads, "%u threads, %u stacks", threads, stacks);
        world_stop(&world);
        world_free(&world);
}

Test(surroundings, a_socket_folder_that_cannot_be_written_to_is_named_with_what_to_set, .timeout = 60)
{
        struct world world;

        users_need_root();
        world_init(&world);
        world_move_to_user(&world, RUNTIME_UID, "lenet");
        world_configure(&world, "models: [lenet]\n");
        cr_assert_eq(chmod(world.folder, 0755), 0);
        world_launch(&world);
        int status = world_wait(&world);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1, "wait status %#x: %s", status, world_log(&world));
        cr_expect_not_null(strstr(world_log(&world), "Permission denied: set socket_dir, $STARLING_SOCKET_DIR or $XDG_RUNTIME_DIR"),
                "%s", world_log(&world));
        world_expect_nothing_left(&world, false);
        world_free(&world);
}

/* A path of a socket has at most 107 bytes. */
Test(surroundings, a_socket_folder_whose_name_is_too_long_for_a_socket_is_named, .timeout = 60)
{
        struct world world;

        world_init(&world);
        snprintf(world.config, sizeof(world.config), "name: %s\nsocket_dir: %s/%0100d\nmodel_repositories: [%s]\nmodels: [lenet]\n",
                world.name, world.folder, 0, world.repository);
        world_launch(&world);
        int status = world_wait(&world);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1, "wait status %#x: %s", status, world_log(&world));
        cr_expect_not_null(strstr(world_log(&world), "000\": File name too long"), "%s", world_log(&world));
        world_expect_nothing_left(&world, false);
        world_free(&world);
}

#define FDS 64u

static void limit_fds(void *context)
{
        const struct rlimit limit = {FDS, FDS};

        (void)context;
        setrlimit(RLIMIT_NOFILE, &limit);
}

Test(surroundings, without_fds_an_attach_is_refused_with_a_cause_and_others_go_on, .timeout = 60)
{
        struct starling_client *clients[FDS];
        struct starling_error error = {""};
        struct footprint before;
        struct honest *honest;
        struct world world;
        uint32_t n = 0;
        int r = 0;

        world_init_compiling(&world);
        world_configure(&world, "models: [lenet]\n");
        world.before_exec = limit_fds;
        world_start(&world);
        honest = honest_start(&world, "lenet");
        honest_expect_progress(honest, 1);
        before = world_footprint(&world);
        struct starling_options options = {.runtime = world.socket_path, .timeout_ns = WORLD_PATIENCE_NS};
        for (n = 0; n < FDS && r == 0; n += r == 0)
                r = starling_connect(&options, &clients[n], &error);
        cr_assert_lt(n, FDS);
        cr_expect_eq(r, -EMFILE, "%s", error.text);
        cr_expect_not_null(strstr(error.text, "Too many open files"), "%s", error.text);
        for (int i = 0; i < 20; i++) {
                struct starling_client *another;

                cr_expect_lt(starling_connect(&options, &another, &error), 0);
                cr_expect_not_null(strstr(error.text, "Too many open files"), "%s", error.text);
        }
        honest_expect_progress(honest, 20);
        while (n > 0)
                starling_close(clients[--n]);
        world_expect_footprint(&world, &before);
        starling_close(world_connect(&world, STARLING_ROLE_CLIENT));
        honest_stop(honest);
        world_stop(&world);
        world_free(&world);
}

static void limit_much(void *context)
{
        const struct rlimit fds = {48, 48}, files = {1 << 28, 1 << 28}, time = {60, 60};

        (void)context;
        setrlimit(RLIMIT_NOFILE, &fds);
        setrlimit(RLIMIT_FSIZE, &files);
        setrlimit(RLIMIT_CPU, &time);
}

Test(surroundings, a_runtime_with_low_limits_of_its_own_loads_models, .timeout = 60)
{
        struct honest *honest;
        struct world world;

        world_init_compiling(&world);
        world_configure(&world, "models: [lenet, mlp]\n");
        world.before_exec = limit_much;
        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=model-ready"), 2, "%s", world_log(&world));
        honest = honest_start(&world, "mlp");
        honest_expect_progress(honest, 10);
        honest_stop(honest);
        world_stop(&world);
        world_free(&world);
}

/* ---- a system without what the compiler's sandbox is made of ---- */

static void deny(const scmp_filter_ctx filter, int call, unsigned n_args, struct scmp_arg_cmp argument)
{
        if (seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), call, n_args, &argument) < 0)
                _exit(125);
}

static void deny_layers(bool landlock, bool filters)
{
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

        if (!filter)
                _exit(125);
        if (landlock)
                deny(filter, SCMP_SYS(landlock_create_ruleset), 0, SCMP_A0(SCMP_CMP_EQ, 0));
        if (filters) {
                deny(filter, SCMP_SYS(seccomp), 0, SCMP_A0(SCMP_CMP_EQ, 0));
                deny(filter, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP));
        }
        if (seccomp_load(filter) < 0)
                _exit(125);
        seccomp_release(filter);
}

static void deny_landlock(void *context)
{
        (void)context;
        deny_layers(true, false);
}

static void deny_filters(void *context)
{
        (void)context;
        deny_layers(false, true);
}

static void deny_both(void *context)
{
        (void)context;
        deny_layers(true, true);
}

static void expect_incomplete(void (*before_exec)(void *context), const char *layers)
{
        struct world world;

        world_init_compiling(&world);
        world_configure(&world, "models: [lenet]\n");
        world.before_exec = before_exec;
        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=model-ready model=lenet"), 1, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "event=sandbox-incomplete model=lenet"), 1, "%s", world_log(&world));
        cr_expect_not_null(strstr(world_log(&world), layers), "no \"%s\" in: %s", layers, world_log(&world));
        world_stop(&world);
        world_free(&world);
}

Test(surroundings, what_the_host_lacks_of_the_compilers_sandbox_is_named_and_the_model_loads, .timeout = 60)
{
        expect_incomplete(deny_landlock, "has the filter of system calls, but not Landlock");
        if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 1)
                fprintf(stderr, "[SKIP] this kernel has no Landlock, which is not tried alone\n");
        else
                expect_incomplete(deny_filters, "has Landlock, but not the filter of system calls");
        expect_incomplete(deny_both, "has neither Landlock nor the filter of system calls");
}

/* ---- a system that denies io_uring ---- */

static void deny_uring(void *context)
{
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

        (void)context;
        if (!filter || seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(io_uring_setup), 0) < 0 || seccomp_load(filter) < 0)
                _exit(125);
        seccomp_release(filter);
}

static void expect_wait_name(const struct world *world, const char *name)
{
        struct sl_stats_header header;
        struct sl_stats_view *view;

        cr_assert_eq(sl_stats_open(world->name, NULL, &view, NULL), 0);
        sl_stats_read_header(view, &header);
        cr_expect_str_eq(header.wait_name, name);
        sl_stats_close(view);
}

static void kill_some_clients(const struct world *world)
{
        for (uint32_t i = 0; i < 20; i++) {
                char seed[16];

                snprintf(seed, sizeof(seed), "%u", i);
                pid_t pid = world_spawn((const char *const[]){DOOMED_CLIENT, world->socket_path, seed, NULL});
                world_pause_us(i * 1000);
                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
        }
}

static void live_on_epoll(struct world *world)
{
        struct honest *honest;
        struct footprint before;

        world_start(world);
        expect_wait_name(world, "epoll");
        honest = honest_start(world, "digits");
        honest_expect_progress(honest, 20);
        before = world_footprint(world);
        kill_some_clients(world);
        world_expect_footprint(world, &before);
        kill(world->pid, SIGHUP);
        honest_expect_progress(honest, 20);
        honest_stop(honest);
        world_stop(world);
        world_free(world);
}

Test(surroundings, where_io_uring_is_denied_everything_works_on_epoll, .timeout = 60)
{
        struct world world;

        world_init_compiling(&world);
        world.before_exec = deny_uring;
        live_on_epoll(&world);
}

Test(surroundings, epoll_can_be_asked_for, .timeout = 60)
{
        struct world world;

        world_init_compiling(&world);
        world_configure(&world, "wait: epoll\n");
        live_on_epoll(&world);
}

Test(surroundings, io_uring_that_is_asked_for_and_denied_is_an_error, .timeout = 60)
{
        struct world world;

        world_init_compiling(&world);
        world_configure(&world, "wait: io_uring\n");
        world.before_exec = deny_uring;
        world_launch(&world);
        int status = world_wait(&world);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1, "wait status %#x: %s", status, world_log(&world));
        cr_expect_not_null(strstr(world_log(&world), "io_uring"), "%s", world_log(&world));
        world_expect_nothing_left(&world, false);
        world_free(&world);
}

/* ---- two of one name ---- */

Test(surroundings, a_second_runtime_of_a_name_is_refused_and_the_first_lives_on, .timeout = 60)
{
        struct honest *honest;
        struct world world, second;

        world_init_compiling(&world);
        world_configure(&world, "models: [lenet]\n");
        world_start(&world);
        honest = honest_start(&world, "lenet");
        second = world;
        strcat(second.log_path, "2");
        world_launch(&second);
        int status = world_wait(&second);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1, "wait status %#x: %s", status, world_log(&second));
        cr_expect_not_null(strstr(world_log(&second), "a runtime of this name is running"), "%s", world_log(&second));
        honest_expect_progress(honest, 20);
        starling_close(world_connect(&world, STARLING_ROLE_CLIENT));
        honest_stop(honest);
        world_stop(&world);
        world_free(&world);
}

/* ---- a runtime that is stopped for a while ---- */

static void *grow(struct starling_client *client)
{
        return starling_alloc(client, 256ull << 20); /* more than a first region has */
}

/* A runtime that has gone on may be late once more. */
static void *grow_in_time(struct starling_client *client)
{
        void *data = NULL;

        WORLD_AWAIT((data = grow(client)) || errno != ETIMEDOUT);
        return data;
}

/* What a client waits for it gets later; what it is not granted in time it is told, and finds granted at the next try. */
Test(surroundings, a_runtime_that_is_stopped_for_a_while_keeps_its_clients, .timeout = 60)
{
        struct starling_client *client;
        struct starling_model *model;
        struct honest *honest;
        struct footprint before;
        struct world world;
        void *data;

        world_init(&world);
        world_configure(&world, "models: [lenet]\n");
        world_start(&world);
        honest = honest_start(&world, "lenet");
        honest_expect_progress(honest, 10);
        before = world_footprint(&world);
        client = world_connect(&world, STARLING_ROLE_CLIENT);
        cr_assert(freeze(world.pid));
        errno = 0;
        cr_expect_null(grow(client));
        cr_expect_eq(errno, ETIMEDOUT, "%s", strerror(errno));
        cr_expect_eq(starling_model_open(client, "lenet", &model, NULL), 0);
        kill(world.pid, SIGCONT);
        data = grow_in_time(client);
        cr_expect_not_null(data, "%s", strerror(errno));
        cr_expect_eq(starling_free(client, data), 0);
        cr_expect_eq(grow(client), data, "what was granted late is a part of the arena, and once");
        starling_close(client);
        honest_expect_progress(honest, 20);
        honest_stop(honest);
        world_expect_footprint(&world, &before);
        world_stop(&world);
        world_free(&world);
}

/* A worker that has long been done is not taken for one that hangs. */
Test(surroundings, a_stop_of_the_runtime_is_no_hang_of_its_workers, .timeout = 60)
{
        struct honest *honest;
        struct world world;

        world_init(&world);
        world_configure(&world,
                "models: [lenet]\nmodel_defaults: {isolation: process, hang_ms: 5000}\n"); /* more than a busy machine takes */
        world_start(&world);
        honest = honest_start(&world, "lenet");
        for (int i = 0; i < 2; i++) {
                honest_expect_progress(honest, 10);
                cr_assert(freeze(world.pid));
                world_pause_us(6000000);
                kill(world.pid, SIGCONT);
        }
        honest_expect_progress(honest, 20);
        cr_expect_eq(world_count_log(&world, "worker-"), 0, "%s", world_log(&world));
        honest_stop(honest);
        world_stop(&world);
        world_free(&world);
}

/* ---- signals ---- */

Test(surroundings, a_hangup_signal_replaces_what_changed_under_those_who_use_it, .timeout = 60)
{
        struct honest *honest;
        struct world world;

        world_init_compiling(&world);
        world_configure(&world, "models: [lenet, mlp]\n");
        world_start(&world);
        honest = honest_start(&world, "lenet");
        for (uint32_t i = 1; i <= 5; i++) {
                char yaml[64];

                snprintf(yaml, sizeof(yaml), "batch_max: %u\n", i);
                world_remove_model(&world, "lenet");
                world_add_model(&world, "lenet", "", 0);
                char command[512];
                snprintf(command, sizeof(command), "cp " DIGITS "/models/lenet/1/model.onnx %s/lenet/1/", world.repository);
                cr_assert_eq(system(command), 0);
                world_add_model_config(&world, "lenet", yaml);
                kill(world.pid, SIGHUP);
                WORLD_AWAIT(world_count_log(&world, "event=model-replaced model=lenet") >= i);
                cr_assert_eq(world_count_log(&world, "event=model-replaced model=lenet"), i, "%s", world_log(&world));
        }
        honest_expect_progress(honest, 20);
        honest_stop(honest);
        world_stop(&world);
        world_free(&world);
}

Test(surroundings, a_term_signal_ends_a_runtime_that_compiles, .timeout = 60)
{
        struct world world;

        world_init_compiling(&world);
        world_launch(&world);
        world_expect_log(&world, "event=placed");
        world_stop(&world);
        world_free(&world);
}
