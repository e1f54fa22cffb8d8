/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "compile.h"
#include "lower_options.h"
#include "plan.h"
#include "starter.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_BYTES          64
#define LANDLOCK_OF_SIGNALS 6

static uint32_t count_fds(void)
{
        DIR *folder = opendir("/proc/self/fd");
        uint32_t n = 0;

        while (readdir(folder))
                n++;
        closedir(folder);
        return n;
}

/* The thread that opens external data ends by itself, soon after the child. */
static void expect_fds(uint32_t n)
{
        for (int tries = 0; tries < 60000 && count_fds() > n; tries++)
                usleep(1000);
        cr_assert_eq(count_fds(), n);
}

static int compile(const char *model, const struct sl_compile_options *limits, int *ret_fd, struct sl_error *error)
{
        struct sl_compile_options options = *limits;

        options.program = CHILD;
        options.model_path = model;
        options.zygote = starter_zygote(CHILD);
        return sl_compile(&options, ret_fd, error);
}

/* One line that says why, no plan, no child and no descriptor left. */
static void expect_failure(const char *model, const struct sl_compile_options *limits, int code, const char *text)
{
        uint32_t before = count_fds();
        struct sl_error error = {0};
        int fd = -1, r = compile(model, limits, &fd, &error);

        cr_assert_eq(r, -code, "%d: %s", r, error.text);
        cr_assert_not_null(strstr(error.text, text), "%s", error.text);
        cr_assert_null(strchr(error.text, '\n'));
        cr_assert_eq(fd, -1);
        starter_end();
        expect_fds(before);
        cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
}

Test(child, a_model_that_is_not_there_is_named)
{
        expect_failure("/nowhere/model.onnx", &(struct sl_compile_options){0}, ENOENT, "/nowhere/model.onnx");
}

Test(child, a_crash_is_one_line)
{
        expect_failure("crash", &(struct sl_compile_options){0}, ECHILD, "killed by signal 11");
}

Test(child, an_end_without_a_reason_is_one_line)
{
        expect_failure("silent", &(struct sl_compile_options){0}, ECHILD, "status 3");
}

/* ---- the sandbox: escape.c tries the ways out ---- */

static void make_victim(char path[PATH_BYTES])
{
        int fd;

        snprintf(path, PATH_BYTES, "/tmp/starling-victim-XXXXXX");
        fd = mkstemp(path);
        cr_assert_geq(fd, 0);
        cr_assert_eq(write(fd, "victim", 6), 6);
        cr_assert_eq(fchmod(fd, 0640), 0);
        close(fd);
}

static struct stat status_of(const char *path)
{
        struct stat status;

        cr_assert_eq(stat(path, &status), 0);
        return status;
}

/* 7 says that all are shut. */
static void expect_no_way(const char *mode)
{
        char path[PATH_BYTES], model[2 * PATH_BYTES];
        struct stat before, after;

        make_victim(path);
        before = status_of(path);
        snprintf(model, sizeof(model), "escape-%s:%s", mode, path);
        expect_failure(model, &(struct sl_compile_options){0}, ECHILD, "status 7");
        after = status_of(path);
        cr_expect_eq(after.st_ctim.tv_nsec, before.st_ctim.tv_nsec, "nobody has touched the victim");
        cr_expect_eq(after.st_mode, before.st_mode);
        cr_expect_eq(after.st_size, before.st_size);
        unlink(path);
}

Test(sandbox, no_way_leads_out)
{
        expect_no_way("ways");
}

/* Each layer holds by itself. */
Test(sandbox, no_way_leads_out_where_there_is_only_the_filter_of_system_calls)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        cr_skip_test("a sanitizer may open files, which Landlock keeps to /proc");
#else
        expect_no_way("filtered");
#endif
}

static bool has_landlock(void)
{
        return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) >= LANDLOCK_OF_SIGNALS;
}

Test(sandbox, no_way_to_files_and_processes_leads_out_where_there_is_only_landlock)
{
        if (!has_landlock())
                cr_skip_test("this kernel has no Landlock of version 6, which knows signals");
        expect_no_way("unfiltered");
}

/* Else trying them proves nothing. */
Test(sandbox, the_same_ways_lead_out_where_there_is_none)
{
        char path[PATH_BYTES], model[2 * PATH_BYTES];

        make_victim(path);
        snprintf(model, sizeof(model), "escape-free:%s", path);
        expect_failure(model, &(struct sl_compile_options){0}, ECHILD, "status 7");
        unlink(path);
}

Test(sandbox, what_is_not_on_the_list_of_calls_is_refused)
{
        expect_failure("escape-calls", &(struct sl_compile_options){0}, ECHILD, "status 7");
}

Test(sandbox, calls_of_another_table_end_the_process)
{
        expect_failure("escape-foreign-calls", &(struct sl_compile_options){0}, ECHILD, "killed by signal 31");
}

/* ---- external data: the child asks, the parent opens ---- */

static void make_file(const char *name)
{
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);

        cr_assert_geq(fd, 0);
        cr_assert_eq(write(fd, "inside", 6), 6);
        close(fd);
}

/* The folder of a model whose path has no folder is the one in which this process is. */
static void enter_folder(char path[PATH_BYTES])
{
        snprintf(path, PATH_BYTES, "/tmp/starling-folder-XXXXXX");
        cr_assert_not_null(mkdtemp(path));
        cr_assert_eq(chdir(path), 0);
        make_file("outside");
        cr_assert_eq(mkdir("inside", 0700), 0);
        cr_assert_eq(chdir("inside"), 0);
        make_file("data");
        cr_assert_eq(mkdir("folder", 0700), 0);
        cr_assert_eq(symlink("../outside", "link"), 0);
        cr_assert_eq(symlink(".", "folder-link"), 0);
        cr_assert_eq(mkfifo("fifo", 0600), 0);
}

static void leave_folder(const char *path)
{
        static const char *const names[] = {
                "inside/data", "inside/folder", "inside/link", "inside/folder-link", "inside/fifo", "inside", "outside"};

        cr_assert_eq(chdir(path), 0);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                cr_assert_eq(remove(names[i]), 0, "%s", names[i]);
        cr_assert_eq(rmdir(path), 0);
}

Test(external, no_name_leads_out_of_the_models_folder)
{
        char path[PATH_BYTES];

        enter_folder(path);
        expect_failure("escape-names", &(struct sl_compile_options){0}, ECHILD, "status 7");
        leave_folder(path);
}

Test(external, a_child_that_asks_without_listening_leaves_nothing)
{
        char path[PATH_BYTES];

        enter_folder(path);
        expect_failure("escape-asks-deaf", &(struct sl_compile_options){0}, ECHILD, "status 7");
        leave_folder(path);
}

Test(external, asking_has_an_end)
{
        expect_failure("escape-asks-often", &(struct sl_compile_options){0}, ECHILD, "status 7");
}

/* ---- limits ---- */

static void lower(int resource, rlim_t value)
{
        struct rlimit limit = {.rlim_cur = value, .rlim_max = value};

        cr_assert_eq(setrlimit(resource, &limit), 0, "%s", strerror(errno));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void expect_limits(const char *text)
{
        struct sl_error error = {0};
        int fd = -1;

        cr_assert_eq(compile("escape-limits", &(struct sl_compile_options){0}, &fd, &error), -EPERM, "%s", error.text);
        cr_assert_str_eq(error.text, text);
}

Test(sandbox, has_limits_of_its_own)
{
        expect_limits("1073741824 357913941 10 64 0 0");
}

Test(sandbox, a_lower_limit_that_is_there_already_stays)
{
        lower(RLIMIT_AS, 1 << 29);
        lower(RLIMIT_FSIZE, 1 << 28);
        lower(RLIMIT_CPU, 6);
        lower(RLIMIT_NOFILE, 40);
        expect_limits("536870912 268435456 5 40 0 0");
}
#endif

Test(sandbox, few_descriptors_are_enough_to_compile)
{
        struct sl_error error = {0};
        int fd;

        lower(RLIMIT_NOFILE, 32);
        cr_assert_eq(
                compile(DIGITS "/models/lenet/1/model.onnx", &(struct sl_compile_options){0}, &fd, &error), 0, "%s", error.text);
        cr_expect(!has_landlock() || !error.text[0], "%s", error.text);
        close(fd);
}

Test(child, a_child_over_its_wall_time_is_killed)
{
        expect_failure("sleep", &(struct sl_compile_options){.seconds = 1}, ETIME, "over its time limit of 2 s");
}

/* The limit of wall time is long enough for the limit of processor time to come first. */
Test(child, a_child_over_its_processor_time_says_so)
{
        expect_failure("spin", &(struct sl_compile_options){.seconds = 120}, ETIME, "over its time limit of 120 s");
}

Test(child, a_program_that_cannot_be_started_is_named)
{
        struct sl_compile_options options = {.program = "/nowhere/program", .model_path = "model"};
        struct sl_compilation *compilation;
        uint32_t before = count_fds();
        struct sl_error error = {0};

        cr_assert_eq(sl_compile_start(&options, &compilation, &error), -ENOENT);
        cr_assert_not_null(strstr(error.text, "/nowhere/program"));
        expect_fds(before);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
Test(child, a_child_over_its_memory_says_so)
{
        struct sl_compile_options options = {.memory_bytes = 8 << 20};

        expect_failure(DIGITS "/models/resnet/1/model.onnx", &options, ENOMEM, "over its memory limit of 8388608 bytes");
}
#endif

Test(child, an_option_reaches_the_compiler_and_its_limit_is_named)
{
        struct sl_lower_options lowering;
        struct sl_compile_options options = {.lowering = &lowering};

        sl_lower_options_init(&lowering);
        lowering.plan_bytes_max = 4096;
        expect_failure(DIGITS "/models/mlp/1/model.onnx", &options, E2BIG, "plan_bytes_max is 4096");
        sl_lower_options_init(&lowering);
        lowering.workspace_bytes_max = 64;
        expect_failure(DIGITS "/models/lenet/1/model.onnx", &options, E2BIG, "workspace_bytes_max is 64");
        sl_lower_options_init(&lowering);
        lowering.nodes_max = 2;
        expect_failure(DIGITS "/models/lenet/1/model.onnx", &options, E2BIG, "2");
}

Test(child, a_cancelled_compilation_leaves_nothing)
{
        struct sl_compile_options options = {.program = CHILD, .model_path = "sleep"};
        struct sl_compilation *compilation;
        uint32_t before = count_fds();

        cr_assert_eq(sl_compile_start(&options, &compilation, NULL), 0);
        cr_assert_null(sl_compile_cancel(compilation));
        cr_assert_null(sl_compile_cancel(NULL));
        expect_fds(before);
        cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
}

Test(child, its_fd_becomes_readable_when_it_has_ended)
{
        struct sl_compile_options options = {.program = CHILD, .model_path = "silent"};
        struct sl_compilation *compilation;
        struct pollfd wait = {.events = POLLIN};
        int fd;

        cr_assert_eq(sl_compile_start(&options, &compilation, NULL), 0);
        wait.fd = sl_compile_fd(compilation);
        cr_assert_eq(poll(&wait, 1, 60000), 1);
        cr_assert_eq(sl_compile_finish(compilation, &fd, NULL), -ECHILD);
}

static int read_number(const char *path)
{
        char text[32] = "";
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return 0;
        (void)!read(fd, text, sizeof(text) - 1);
        close(fd);
        return atoi(text);
}

/* So that it ends before who started it when memory runs out. It tunes, to be there long enough to be looked at. */
Test(child, is_what_the_kernel_ends_first)
{
        struct sl_lower_options lowering;
        struct sl_compile_options options = {
                .program = CHILD, .model_path = DIGITS "/models/resnet/1/model.onnx", .lowering = &lowering};
        struct sl_compilation *compilation;
        struct pollfd wait = {.events = POLLIN};
        char children[64], path[64];
        int score = 0;

        sl_lower_options_init(&lowering);
        cr_assert_eq(sl_lower_options_parse(&lowering, "tune=full", NULL), 0);
        snprintf(children, sizeof(children), "/proc/self/task/%d/children", getpid());
        if (access(children, R_OK) < 0)
                cr_skip_test("this kernel does not list children");
        cr_assert_eq(sl_compile_start(&options, &compilation, NULL), 0);
        snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", read_number(children));
        wait.fd = sl_compile_fd(compilation);
        while (score != 1000 && poll(&wait, 1, 1) == 0)
                score = read_number(path);
        cr_expect_eq(score, 1000);
        sl_compile_cancel(compilation);
}

Test(child, a_plan_is_sealed)
{
        uint8_t byte = 0;
        int fd, seals;

        cr_assert_eq(compile(DIGITS "/models/mlp/1/model.onnx", &(struct sl_compile_options){0}, &fd, NULL), 0);
        seals = fcntl(fd, F_GET_SEALS);
        cr_assert_eq(seals, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
        cr_assert_eq(pwrite(fd, &byte, 1, 0), -1);
        close(fd);
}

static float *read_floats(const char *path, uint64_t *ret_n)
{
        FILE *stream = fopen(path, "rb");
        struct stat status;
        float *floats;

        cr_assert_not_null(stream, "%s", path);
        cr_assert_eq(fstat(fileno(stream), &status), 0);
        floats = aligned_alloc(64, ((size_t)status.st_size + 63) & ~63ull);
        *ret_n = fread(floats, sizeof(float), (size_t)status.st_size / sizeof(float), stream);
        fclose(stream);
        return floats;
}

/* All test images, in the steps that the instance gives. */
static double worst_error(struct sl_instance *instance, const float *images, const float *expected, uint32_t n_samples)
{
        double worst = 0;

        for (uint32_t done = 0, step; done < n_samples; done += step) {
                float probabilities[32 * 10];
                const void *input = images + (size_t)done * 64;
                void *output = probabilities;

                step = sl_instance_step(instance, n_samples - done);
                cr_assert_eq(sl_instance_run(instance, step, &input, &output), 0);
                for (uint32_t i = 0; i < step * 10; i++) {
                        double difference = fabs((double)probabilities[i] - expected[done * 10 + i]);

                        worst = fmax(worst, isnan(difference) ? INFINITY : difference);
                }
        }
        return worst;
}

/* The first @samples of them; 0: all. */
static void compare_digits(const char *name, const char *backend, uint64_t samples)
{
        struct sl_lower_options lowering;
        struct sl_compile_options options = {.lowering = &lowering};
        uint64_t n_images, n_expected;
        struct sl_instance *instance;
        struct sl_error error = {0};
        float *images, *expected;
        struct sl_plan *plan;
        char path[4096];
        int fd;

        sl_lower_options_init(&lowering);
        lowering.backend = !strcmp(backend, "ref");
        snprintf(path, sizeof(path), "%s/models/%s/1/model.onnx", DIGITS, name);
        cr_assert_eq(compile(path, &options, &fd, &error), 0, "%s", error.text);
        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        close(fd);
        cr_assert_eq(sl_plan_info(plan)->batchable, 1);
        cr_assert_eq(sl_plan_info(plan)->n_batches, 6);
        cr_assert_eq(sl_instance_new(plan, 32, &instance, &error), 0, "%s", error.text);
        images = read_floats(DIGITS "/test-images.f32", &n_images);
        snprintf(path, sizeof(path), "%s/expected/%s.f32", DIGITS, name);
        expected = read_floats(path, &n_expected);
        cr_assert_eq(n_images / 64, n_expected / 10);
        if (!samples)
                samples = n_images / 64;
        cr_assert_leq(samples, n_images / 64);
        cr_assert_leq(worst_error(instance, images, expected, (uint32_t)samples), 1e-5, "%s on %s", name, backend);
        free(images);
        free(expected);
        sl_instance_free(instance);
        sl_plan_free(plan);
}

#define DIGITS_TEST(name)                                                                                                          \
        Test(digits, name##_gives_the_expected_probabilities)                                                                      \
        {                                                                                                                          \
                compare_digits(#name, "ref", 63); /* a batch of each size */                                                       \
                compare_digits(#name, "cpu", 0);                                                                                   \
        }

DIGITS_TEST(lenet)
DIGITS_TEST(resnet)
DIGITS_TEST(densenet)
DIGITS_TEST(mobilenet)
DIGITS_TEST(mlp)
