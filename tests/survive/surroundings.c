/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime in bad surroundings: files that are broken, a system that is full or denies things. Each time there is one clear error
 * or the stated fallback, the exit status says it, and nothing is left.
 */
#include "builder.h"
#include "honest.h"
#include "stats.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
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
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- models ---- */

static void add_truncated(const struct world *world)
{
        static unsigned char bytes[1 << 20];
        FILE *file = fopen(DIGITS "/models/lenet/1/model.onnx", "rb");

        cr_assert_not_null(file);
        size_t n = fread(bytes, 1, sizeof(bytes), file);
        fclose(file);
        world_add_model(world, "bad-truncated", bytes, n / 2);
}

/* Ten gigabytes of a constant, in a file of a few bytes. */
static void add_claim(const struct world *world)
{
        struct builder *b = builder_new(13);
        size_t bytes;

        builder_input(b, "x", 1, DIMS(-1, 4));
        builder_ints(b, "shape", DIMS(3), (int64_t[]){2500, 1000, 1000});
        builder_node(b, "ConstantOfShape", "shape", "huge");
        builder_node(b, "ReduceSum", "huge", "sum");
        builder_node(b, "Add", "x,sum", "y");
        builder_output(b, "y");
        const uint8_t *file = builder_pack(b, &bytes);
        world_add_model(world, "bad-claim", file, bytes);
        builder_free(b);
}

static void add_unknown(const struct world *world)
{
        struct builder *b = builder_new(13);
        size_t bytes;

        builder_input(b, "x", 1, DIMS(-1, 4));
        builder_node(b, "Frobnicate", "x", "y");
        builder_output(b, "y");
        const uint8_t *file = builder_pack(b, &bytes);
        world_add_model(world, "bad-operator", file, bytes);
        builder_free(b);
}

/* A model whose 16 weights are in a file of their own. */
static void add_external(const struct world *world, const char *name, const char *location)
{
        struct builder *b = builder_new(13);
        Onnx__TensorProto *weights;
        Onnx__StringStringEntryProto *entry = builder_alloc(b, sizeof(*entry));
        size_t bytes;

        builder_input(b, "x", 1, DIMS(-1, 4));
        weights = builder_random(b, "w", DIMS(4, 4));
        onnx__string_string_entry_proto__init(entry);
        entry->key = (char *)"location";
        entry->value = (char *)location;
        weights->raw_data.len = 0;
        weights->has_raw_data = 0;
        weights->external_data = builder_alloc(b, sizeof(entry));
        weights->external_data[0] = entry;
        weights->n_external_data = 1;
        weights->has_data_location = 1;
        weights->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
        builder_node(b, "MatMul", "x,w", "y");
        builder_output(b, "y");
        const uint8_t *file = builder_pack(b, &bytes);
        world_add_model(world, name, file, bytes);
        builder_free(b);
}

static void add_bad_models(const struct world *world)
{
        char noise[5000];

        for (size_t i = 0; i < sizeof(noise); i++)
                noise[i] = (char)(i * 2654435761u >> 13);
        world_add_model(world, "bad-noise", noise, sizeof(noise));
        world_add_model(world, "bad-empty", noise, 0);
        add_truncated(world);
        add_claim(world);
        add_unknown(world);
        add_external(world, "bad-path", "../../../../../../etc/passwd");
}

static void expect_one_line_each(struct world *world)
{
        static const char *const names[] = {"noise", "empty", "truncated", "claim", "operator", "path"};

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                char text[128];

                snprintf(text, sizeof(text), "event=model-failed model=bad-%s version=1 cause=", names[i]);
                world_expect_log(world, text);
                cr_expect_eq(world_count_log(world, text), 1, "%s", text);
        }
        cr_expect_eq(world_count_log(world, " error event="), 6, "%s", world_log(world));
}

Test(compilers, bad_models_cost_one_line_each_at_the_start, .timeout = 60)
{
        struct honest *honest;
        struct world world;

        world_init(&world);
        add_bad_models(&world);
        world_start(&world);
        expect_one_line_each(&world);
        cr_expect_not_null(strstr(world_log(&world), "event=ready failed_models=6"), "%s", world_log(&world));
        honest = honest_start(&world, "digits");
        honest_expect_progress(honest, 20);
        honest_stop(honest);
        world_stop(&world);
        world_free(&world);
}

Test(compilers, bad_models_that_come_later_leave_those_that_serve_alone, .timeout = 60)
{
        struct honest *honest;
        struct world world;
        struct footprint before;

        world_init(&world);
        world_start(&world);
        honest = honest_start(&world, "digits");
        honest_expect_progress(honest, 1);
        before = world_footprint(&world);
        add_bad_models(&world);
        kill(world.pid, SIGHUP);
        expect_one_line_each(&world);
        honest_expect_progress(honest, 20);
        world_expect_footprint(&world, &before);
        honest_stop(honest);
        world_stop(&world);
        world_free(&world);
}

/* Of the model's folder. */
static const char *path_in(const struct world *world, const char *model, const char *name, char path[256])
{
        snprintf(path, 256, "%s/%s/1/%s", world->repository, model, name);
        return path;
}

static void add_weights(const char *path)
{
        static const float weights[16] = {1, 2, 3, 4};
        FILE *file = fopen(path, "wb");

        cr_assert_not_null(file, "%s", path);
        cr_assert_eq(fwrite(weights, sizeof(weights), 1, file), 1);
        fclose(file);
}

static void add_good_external(const struct world *world)
{
        char path[256];

        add_external(world, "outer-good", "deep/weights.bin");
        cr_assert_eq(mkdir(path_in(world, "outer-good", "deep", path), 0755), 0);
        add_weights(path_in(world, "outer-good", "deep/weights.bin", path));
}

/* What is there is as good as what the model above has, but for how it is reached. A device can be made by root alone. */
static void add_bad_externals(const struct world *world)
{
        char path[256], target[256];

        add_external(world, "outer-above", "../../outer-good/1/deep/weights.bin");
        add_external(world, "outer-absolute", path_in(world, "outer-good", "deep/weights.bin", path));
        add_external(world, "outer-link", "weights.bin");
        path_in(world, "outer-good", "deep/weights.bin", target);
        cr_assert_eq(symlink(target, path_in(world, "outer-link", "weights.bin", path)), 0);
        add_external(world, "outer-linked-folder", "deep/weights.bin");
        path_in(world, "outer-good", "deep", target);
        cr_assert_eq(symlink(target, path_in(world, "outer-linked-folder", "deep", path)), 0);
        add_external(world, "outer-fifo", "weights.bin");
        cr_assert_eq(mkfifo(path_in(world, "outer-fifo", "weights.bin", path), 0600), 0);
        add_external(world, "outer-folder", "weights.bin");
        cr_assert_eq(mkdir(path_in(world, "outer-folder", "weights.bin", path), 0755), 0);
        add_external(world, "outer-missing", "weights.bin");
        add_external(world, "outer-device", "weights.bin");
        if (mknod(path_in(world, "outer-device", "weights.bin", path), S_IFCHR | 0600, makedev(1, 5)) < 0)
                mkfifo(path, 0600);
}

/* One line that names model and file, and says why. */
static void expect_refusal(struct world *world, const char *model, const char *location, const char *cause)
{
        char head[128], line[1024];
        const char *at;

        snprintf(head, sizeof(head), "event=model-failed model=%s version=1 ", model);
        cr_assert_eq(world_count_log(world, head), 1, "%s: %s", model, world_log(world));
        at = strstr(world_log(world), head);
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
        cr_expect_not_null(strstr(line, location), "%s", line);
        cr_expect_not_null(strstr(line, cause), "%s", line);
}

Test(surroundings, external_data_are_read_from_files_in_the_models_folder_alone, .timeout = 60)
{
        static const char outside[] = "leads outside the model's folder or over a link";
        struct world world;

        world_init(&world);
        add_good_external(&world);
        add_bad_externals(&world);
        world_configure(&world,
                "models: [outer-good, outer-above, outer-absolute, outer-link, outer-linked-folder, outer-fifo, outer-folder,"
                " outer-missing, outer-device]\n");
        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=model-ready model=outer-good"), 1, "%s", world_log(&world));
        cr_expect_not_null(strstr(world_log(&world), "event=ready failed_models=8"), "%s", world_log(&world));
        expect_refusal(&world, "outer-above", "../../outer-good/1/deep/weights.bin", outside);
        expect_refusal(&world, "outer-absolute", "/outer-good/1/deep/weights.bin", outside);
        expect_refusal(&world, "outer-link", "weights.bin", outside);
        expect_refusal(&world, "outer-linked-folder", "deep/weights.bin", outside);
        expect_refusal(&world, "outer-fifo", "weights.bin", "is no regular file");
        expect_refusal(&world, "outer-folder", "weights.bin", "is no regular file");
        expect_refusal(&world, "outer-device", "weights.bin", "is no regular file");
        expect_refusal(&world, "outer-missing", "weights.bin", "No such file");
        world_stop(&world);
        world_free(&world);
}

Test(compilers, a_compiler_without_memory_costs_one_line, .timeout = 60)
{
        struct world world;

        if (WORLD_SLOW)
                cr_skip_test("sanitizers take the whole address space: the compiler's is not limited then");
        world_init(&world);
        world_configure(&world, "models: [densenet]\ncompile: {memory_bytes: 32 MiB}\n");
        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=model-failed model=densenet"), 1, "%s", world_log(&world));
        world_stop(&world);
        world_free(&world);
}

/* A copy is made beside the serving; a plan without its final name is none. */
static void expect_plans(const char *folder, uint32_t n)
{
        char pattern[4200];
        glob_t found;

        snprintf(pattern, sizeof(pattern), "%s/*.plan", folder);
        for (int tries = 0; tries < 1000; tries++) {
                bool enough = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc >= n;

                globfree(&found);
                if (enough)
                        return;
                world_pause_us(10000);
        }
        cr_assert_fail("no %u plans in %s", n, folder);
}

Test(compilers, a_second_start_uses_the_plans_of_the_first_and_damage_costs_one_line, .timeout = 60)
{
        char folder[4096], yaml[4200], command[4300];
        struct world world;

        world_init(&world);
        snprintf(folder, sizeof(folder), "%.3000s/plans", world.folder);
        snprintf(yaml, sizeof(yaml), "models: [lenet]\nlog_level: debug\ncache: {directory: %s}\n", folder);
        world_configure(&world, yaml);
        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=cache-used"), 0, "%s", world_log(&world));
        expect_plans(folder, 1);
        world_stop(&world);
        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=cache-used model=lenet"), 1, "%s", world_log(&world));
        world_stop(&world);
        snprintf(command, sizeof(command), "for f in %s/*.plan; do truncate -s 5000 $f; done", folder);
        cr_assert_eq(system(command), 0);
        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=cache-used"), 0, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "event=cache-ignored model=lenet"), 1, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "event=model-ready model=lenet"), 1, "%s", world_log(&world));
        world_stop(&world);
        world_free(&world);
}

/* A child of the runtime: its compiler. Return: 0 when there is none now. */
static pid_t find_compiler(const struct world *world)
{
        char path[64], text[32] = "";

        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", world->pid, world->pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return 0;
        (void)!read(fd, text, sizeof(text) - 1);
        close(fd);
        return (pid_t)strtol(text, NULL, 10);
}

/* Return: false when it was done before it could be killed. */
static bool kill_compiler(struct world *world, uint32_t round)
{
        char yaml[64];

        snprintf(yaml, sizeof(yaml), "batch_max: %u\n", 1 + round % 32);
        world_add_model_config(world, "mlp", yaml);
        kill(world->pid, SIGHUP);
        for (uint64_t until = starling_clock_ns() + 1000000000ull; starling_clock_ns() < until;) {
                pid_t pid = find_compiler(world);

                if (pid > 0)
                        return kill(pid, SIGKILL) == 0;
        }
        return false;
}

/* A model whose compiler dies is not replaced, and what it was serves on. */
Test(compilers, a_compiler_that_is_killed_costs_one_line_and_no_request, .timeout = 60)
{
        struct footprint before;
        struct honest *honest;
        struct world world;
        uint32_t killed = 0;
        char command[512];

        world_init(&world);
        world_remove_model(&world, "mlp");
        snprintf(command, sizeof(command), "cp -rL " DIGITS "/models/mlp %s/", world.repository);
        cr_assert_eq(system(command), 0);
        world_configure(&world, "models: [lenet, mlp]\n");
        world_start(&world);
        honest = honest_start(&world, "mlp");
        honest_expect_progress(honest, 1);
        before = world_footprint(&world);
        for (uint32_t round = 0; killed < 5 && round < 100; round++)
                killed += kill_compiler(&world, round);
        if (killed == 0)
                cr_skip_test("compilers are too fast to be caught here, or /proc does not list children");
        world_expect_log(&world, "event=model-not-replaced model=mlp version=1 cause=");
        honest_expect_progress(honest, 20);
        world_expect_footprint(&world, &before);
        honest_stop(honest);
        world_stop(&world);
        world_free(&world);
}

/* ---- configuration ---- */

static void expect_usage_error(const char *yaml, const char *text)
{
        struct world world;

        world_init(&world);
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

static void fill_shared_memory(void *context)
{
        (void)context;
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k") < 0)
                _exit(125);
}

Test(surroundings, a_full_shared_memory_ends_the_start_with_one_error, .timeout = 60)
{
        struct world world;

        if (geteuid() != 0)
                cr_skip_test("only root can mount a small /dev/shm");
        world_init(&world);
        world_configure(&world, "models: [lenet]\n");
        world.before_exec = fill_shared_memory;
        world_launch(&world);
        int status = world_wait(&world);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 125) {
                world_free(&world);
                cr_skip_test("mount namespaces are denied here");
        }
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1, "wait status %#x: %s", status, world_log(&world));
        cr_expect_not_null(strstr(world_log(&world), "/dev/shm/starling."), "%s", world_log(&world));
        cr_expect_not_null(strstr(world_log(&world), "No space left"), "%s", world_log(&world));
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

        world_init(&world);
        world_configure(&world, "models: [lenet]\n");
        world.before_exec = limit_fds;
        world_start(&world);
        honest = honest_start(&world, "lenet");
        honest_expect_progress(honest, 1);
        before = world_footprint(&world);
        struct starling_options options = {.runtime = world.socket_path};
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

        world_init(&world);
        world_configure(&world, "models: [lenet, mlp]\ncache: {bytes: 0}\n");
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

        world_init(&world);
        world_configure(&world, "models: [lenet]\ncache: {bytes: 0}\n");
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
                cr_log_warn("this kernel has no Landlock, which is not tried alone");
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

        world_init(&world);
        world.before_exec = deny_uring;
        live_on_epoll(&world);
}

Test(surroundings, epoll_can_be_asked_for, .timeout = 60)
{
        struct world world;

        world_init(&world);
        world_configure(&world, "wait: epoll\n");
        live_on_epoll(&world);
}

Test(surroundings, io_uring_that_is_asked_for_and_denied_is_an_error, .timeout = 60)
{
        struct world world;

        world_init(&world);
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

        world_init(&world);
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

/* ---- signals ---- */

Test(surroundings, a_hangup_signal_replaces_what_changed_under_those_who_use_it, .timeout = 60)
{
        struct honest *honest;
        struct world world;

        world_init(&world);
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
                for (int tries = 0; tries < 3000 && world_count_log(&world, "event=model-replaced model=lenet") < i; tries++)
                        world_pause_us(10000);
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

        world_init(&world);
        world_launch(&world);
        world_expect_log(&world, "event=placed");
        world_stop(&world);
        world_free(&world);
}
