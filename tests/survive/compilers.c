/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models that are broken or lead out of their folder, plans that are damaged, and compilers that die or have no memory: each costs
 * one line that says why, and no request.
 */
#include "builder.h"
#include "cgroup.h"
#include "honest.h"
#include "world.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* A model whose weights are in a file of their own: 4 in each of @rows; 4 rows fit its input. */
static void add_external(const struct world *world, const char *name, const char *location, int64_t rows)
{
        struct builder *b = builder_new(13);
        Onnx__TensorProto *weights;
        Onnx__StringStringEntryProto *entry = builder_alloc(b, sizeof(*entry));
        size_t bytes;

        builder_input(b, "x", 1, DIMS(-1, 4));
        weights = builder_random(b, "w", DIMS(4, 4));
        weights->dims[0] = rows;
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
        add_external(world, "bad-path", "../../../../../../etc/passwd", 4);
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

        world_init_compiling(&world);
        world_keep(&world, "mlp");
        add_bad_models(&world);
        world_start(&world);
        expect_one_line_each(&world);
        cr_expect_not_null(strstr(world_log(&world), "event=ready failed_models=6"), "%s", world_log(&world));
        honest = honest_start(&world, "mlp");
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

        world_init_compiling(&world);
        world_keep(&world, "mlp");
        world_start(&world);
        honest = honest_start(&world, "mlp");
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

        add_external(world, "outer-good", "deep/weights.bin", 4);
        cr_assert_eq(mkdir(path_in(world, "outer-good", "deep", path), 0755), 0);
        add_weights(path_in(world, "outer-good", "deep/weights.bin", path));
}

/* What is there is as good as what the model above has, but for how it is reached. A device can be made by root alone. */
static void add_bad_externals(const struct world *world)
{
        char path[256], target[256];

        add_external(world, "outer-above", "../../outer-good/1/deep/weights.bin", 4);
        add_external(world, "outer-absolute", path_in(world, "outer-good", "deep/weights.bin", path), 4);
        add_external(world, "outer-link", "weights.bin", 4);
        path_in(world, "outer-good", "deep/weights.bin", target);
        cr_assert_eq(symlink(target, path_in(world, "outer-link", "weights.bin", path)), 0);
        add_external(world, "outer-linked-folder", "deep/weights.bin", 4);
        path_in(world, "outer-good", "deep", target);
        cr_assert_eq(symlink(target, path_in(world, "outer-linked-folder", "deep", path)), 0);
        add_external(world, "outer-fifo", "weights.bin", 4);
        cr_assert_eq(mkfifo(path_in(world, "outer-fifo", "weights.bin", path), 0600), 0);
        add_external(world, "outer-folder", "weights.bin", 4);
        cr_assert_eq(mkdir(path_in(world, "outer-folder", "weights.bin", path), 0755), 0);
        add_external(world, "outer-missing", "weights.bin", 4);
        add_external(world, "outer-device", "weights.bin", 4);
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

Test(compilers, external_data_are_read_from_files_in_the_models_folder_alone, .timeout = 60)
{
        static const char outside[] = "leads outside the model's folder or over a link";
        struct world world;

        world_init_compiling(&world);
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

/* ---- a model that is looked at by hand ---- */

#define INHERITED_FD 200 /* that the command was started with, and the reader of a model has no use for */

/* A command of starling with what it writes, and a descriptor of another file. */
static pid_t start_command(char *const arguments[], int out, int err)
{
        pid_t pid = fork();

        cr_assert_geq(pid, 0);
        if (pid == 0) {
                dup2(out, STDOUT_FILENO);
                dup2(err, STDERR_FILENO);
                dup2(err, INHERITED_FD);
                execv(STARLING, arguments);
                _exit(127);
        }
        return pid;
}

/* The value of a line of /proc/PID/status, -1: there is none. */
static int read_status(pid_t pid, const char *key)
{
        char path[64], line[256], format[64];
        int value = -1;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/status", pid);
        snprintf(format, sizeof(format), "%s: %%d", key);
        file = fopen(path, "re");
        while (file && fgets(line, sizeof(line), file) && sscanf(line, format, &value) != 1)
                ;
        if (file)
                fclose(file);
        return value;
}

static pid_t first_child(pid_t parent)
{
        char text[256];

        world_read_children(parent, text, sizeof(text));
        return (pid_t)strtol(text, NULL, 10);
}

static bool has_fd(pid_t pid, int fd)
{
        char path[64], target[64];

        snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
        return readlink(path, target, sizeof(target)) >= 0;
}

/* False as well when the process has ended. */
static bool has_open(pid_t pid, const char *file)
{
        char path[64], target[512];
        bool found = false;
        DIR *folder;

        snprintf(path, sizeof(path), "/proc/%d/fd", pid);
        folder = opendir(path);
        for (const struct dirent *entry; folder && !found && (entry = readdir(folder));) {
                ssize_t n = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);

                target[n > 0 ? n : 0] = 0;
                found = strstr(target, file) != NULL;
        }
        if (folder)
                closedir(folder);
        return found;
}

/* As has_open(): a file that is mapped is not open any more. */
static bool has_mapped(pid_t pid, const char *path)
{
        char name[64], *line = NULL;
        size_t bytes = 0;
        bool found = false;
        FILE *file;

        snprintf(name, sizeof(name), "/proc/%d/maps", pid);
        file = fopen(name, "re");
        while (file && !found && getline(&line, &bytes, file) > 0)
                found = strstr(line, path) != NULL;
        free(line);
        if (file)
                fclose(file);
        return found;
}

/* Bytes that nobody has read yet. */
static int waiting_bytes(int fd)
{
        int bytes = 0;

        cr_assert_eq(ioctl(fd, FIONREAD, &bytes), 0);
        return bytes;
}

/*
 * It reads the model in a process without rights; when that is killed the command ends with one line. The command may have another
 * child before, which ends by itself: the reader is the one that there is when it has mapped @file, or where that is NULL printed.
 */
static void expect_confined_reader(char *const arguments[], const char *file)
{
        int out[2], err[2], status;
        char text[512];
        pid_t tool, reader;
        ssize_t n;

        cr_assert_eq(pipe(out), 0);
        cr_assert_eq(pipe(err), 0);
        cr_assert_geq(fcntl(out[1], F_SETPIPE_SZ, 4096), 0);
        tool = start_command(arguments, out[1], err[1]);
        close(out[1]);
        close(err[1]);
        WORLD_AWAIT(file ? (reader = first_child(tool)) > 0 && has_mapped(reader, file) : waiting_bytes(out[0]) > 0);
        reader = first_child(tool);
        cr_assert_gt(reader, 0, "no process of its own reads the model");
        cr_expect_eq(read_status(reader, "NoNewPrivs"), 1);
        cr_expect_eq(read_status(reader, "Seccomp"), 2, "it may make any system call");
        cr_expect(has_fd(tool, INHERITED_FD));
        cr_expect_not(has_fd(reader, INHERITED_FD), "it has descriptors that it has no use for");
        kill(reader, SIGKILL);
        cr_assert_eq(waitpid(tool, &status, 0), tool);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1, "wait status %#x", status);
        n = read(err[0], text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = 0;
        cr_expect_not_null(strstr(text, "the process that reads it: killed by signal 9"), "%s", text);
        cr_expect_eq(strchr(text, '\n'), text + strlen(text) - 1, "more than one line: %s", text);
        close(out[0]);
        close(err[0]);
}

#define DENSENET DIGITS "/models/densenet/1/model.onnx"

/* Nobody reads what it prints: it waits in the middle. */
Test(compilers, a_model_that_is_inspected_is_read_by_a_process_without_rights, .timeout = 60)
{
        char *arguments[] = {"starling", "inspect", "--json", DENSENET, NULL};

        expect_confined_reader(arguments, NULL);
}

/* Of more samples than it gets through meanwhile. */
Test(compilers, a_model_that_is_quantized_is_read_and_run_by_a_process_without_rights, .timeout = 60)
{
        char folder[] = "/tmp/starling-quantize-XXXXXX", samples[64], output[64];
        int fd;

        cr_assert_not_null(mkdtemp(folder));
        snprintf(samples, sizeof(samples), "%s/samples.f32", folder);
        snprintf(output, sizeof(output), "%s/out.onnx", folder);
        fd = open(samples, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        cr_assert(fd >= 0 && ftruncate(fd, 1000000ll * 28 * 28 * 4) == 0);
        close(fd);
        char *arguments[] = {"starling", "quantize", DENSENET, "--calibration", samples, "-o", output, NULL};
        expect_confined_reader(arguments, samples);
        cr_expect_eq(unlink(samples), 0);
        cr_expect_eq(rmdir(folder), 0, "it leaves something behind");
}

/* ---- files of terabytes without anything on the disk ---- */

#define SPARSE_BYTES (4ll << 40)

static void make_sparse(const struct world *world, const char *model, const char *name)
{
        char path[256];
        int fd = open(path_in(world, model, name, path), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        cr_assert_geq(fd, 0, "%s", path);
        if (ftruncate(fd, SPARSE_BYTES) < 0)
                cr_skip_test("this file system has no files of 4 TiB");
        close(fd);
}

static void configure_own_cache(struct world *world, const char *more)
{
        char yaml[256];

        snprintf(yaml, sizeof(yaml), "cache: {directory: %s/cache}\n%s", world->folder, more);
        world_configure(world, yaml);
}

Test(compilers, sizes_are_checked_before_anything_is_read, .timeout = 60)
{
        struct world world;

        world_init(&world);
        world_copy_model(&world, "mlp", "sparse-file", "");
        make_sparse(&world, "sparse-file", "model.onnx");
        add_external(&world, "sparse-tensor", "weights.bin", 1ll << 40);
        make_sparse(&world, "sparse-tensor", "weights.bin");
        add_external(&world, "sparse-rest", "weights.bin", 4);
        make_sparse(&world, "sparse-rest", "weights.bin");
        configure_own_cache(&world, "models: [sparse-file, sparse-tensor, sparse-rest, lenet]\ncompile: {seconds: 15}\n");
        world_start(&world);
        expect_refusal(&world, "sparse-file", "the file has 4398046511104 bytes, at most 2147483648", "model_bytes_max");
        expect_refusal(&world, "sparse-tensor", "17592186044416 bytes, at most 4294967296", "tensor_bytes_max");
        cr_expect_eq(world_count_log(&world, "event=model-ready model=sparse-rest"), 1, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "event=model-ready model=lenet"), 1, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, " error event="), 2, "%s", world_log(&world));
        world_stop(&world);
        world_free(&world);
}

/* All of its weights' file may be read for a digest. */
static void add_endless(const struct world *world)
{
        add_external(world, "a-sparse", "weights.bin", 4);
        make_sparse(world, "a-sparse", "weights.bin");
        world_add_model_config(world, "a-sparse", "model_bytes_max: 16 TiB\n");
}

/* The repository is looked at once more, for the @nth time. */
static void hang_up(struct world *world, uint32_t nth)
{
        kill(world->pid, SIGHUP);
        WORLD_AWAIT(world_count_log(world, "event=reload") >= nth);
        cr_assert_eq(world_count_log(world, "event=reload"), nth, "%s", world_log(world));
        starling_close(world_connect(world, STARLING_ROLE_CLIENT));
}

static void expect_open(const struct world *world, const char *file)
{
        WORLD_AWAIT(has_open(world->pid, file));
        cr_assert(has_open(world->pid, file), "%s is not being read", file);
}

Test(compilers, a_file_that_takes_days_to_read_delays_neither_other_loads_nor_its_own_end, .timeout = 60)
{
        static const char *const others[] = {"digits", "densenet", "resnet", "mobilenet"};
        struct starling_client *admin;
        struct world world;

        world_init(&world);
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
                world_remove_model(&world, others[i]);
        configure_own_cache(&world, "compile: {jobs: 1, seconds: 3600}\n");
        world_start(&world);
        add_endless(&world);
        world_copy_model(&world, "mlp", "late", "");
        kill(world.pid, SIGHUP);
        world_expect_log(&world, "event=model-ready model=late");
        cr_expect_eq(world_count_log(&world, "model=a-sparse"), 0, "%s", world_log(&world));
        world_remove_model(&world, "a-sparse");
        world_copy_model(&world, "mlp", "a-sparse", "");
        hang_up(&world, 2); /* another file: nobody wants the one that is read */
        world_expect_log(&world, "event=model-ready model=a-sparse");
        world_remove_model(&world, "a-sparse");
        add_endless(&world);
        hang_up(&world, 3);
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
        cr_expect_eq(starling_admin_unload(admin, "a-sparse", NULL), 0);
        world_remove_model(&world, "late");
        hang_up(&world, 4);
        expect_open(&world, "/a-sparse/1/weights.bin");
        world_remove_model(&world, "a-sparse");
        kill(world.pid, SIGHUP);
        world_expect_log(&world, "it is not in the repository any more");
        starling_close(admin);
        world_stop(&world);
        add_endless(&world);
        world_launch(&world);
        world_expect_log(&world, "event=model-ready model=lenet");
        world_stop(&world);
        world_free(&world);
}

Test(compilers, a_model_that_takes_too_long_to_read_is_compiled_without_the_cache, .timeout = 60)
{
        struct world world;

        world_init(&world);
        add_endless(&world);
        configure_own_cache(&world, "models: [a-sparse]\ncompile: {seconds: 1}\n");
        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=model-ready model=a-sparse"), 1, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "event=cache-ignored model=a-sparse"), 1, "%s", world_log(&world));
        cr_expect_not_null(strstr(world_log(&world), "takes too long"), "%s", world_log(&world));
        world_stop(&world);
        world_free(&world);
}

static void preload_stuck_read(void *context)
{
        (void)context;
        setenv("LD_PRELOAD", STUCK_READ, 1);
}

/* As of a file system whose server is gone. Later the thread is left to itself, and the model compiled without its digest. */
Test(compilers, a_read_that_never_returns_delays_neither_other_loads_nor_the_end, .timeout = 60)
{
        struct world world;

        if (!STUCK_READ[0])
                cr_skip_test("nothing can be loaded before a sanitizer");
        world_init(&world);
        world_copy_model(&world, "mlp", "a-stuck", "");
        configure_own_cache(&world, "models: [a-stuck, lenet]\n");
        world.before_exec = preload_stuck_read;
        world_launch(&world);
        world_expect_log(&world, "event=model-ready model=lenet");
        cr_expect_eq(world_count_log(&world, "model=a-stuck"), 0, "%s", world_log(&world));
        world_stop(&world);
        world_configure(&world, "compile: {seconds: 1}\n");
        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=model-ready model=a-stuck"), 1, "%s", world_log(&world));
        cr_expect_not_null(strstr(world_log(&world), "a read of it has not returned after 2 s"), "%s", world_log(&world));
        world_stop(&world);
        world_free(&world);
}

/* y [N, 2048] = x [N, 2048] . w: 16 MiB of weights. */
static void add_large(const struct world *world)
{
        struct builder *b = builder_new(13);
        size_t bytes;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 2048));
        builder_random(b, "w", DIMS(2048, 2048));
        builder_node(b, "MatMul", "x,w", "y");
        builder_output(b, "y");
        const uint8_t *file = builder_pack(b, &bytes);
        world_add_model(world, "large", file, bytes);
        builder_free(b);
}

Test(compilers, a_compiler_without_memory_costs_one_line, .timeout = 60)
{
        struct world world;

        if (WORLD_SLOW)
                cr_skip_test("sanitizers take the whole address space: the compiler's is not limited then");
        world_init_compiling(&world);
        add_large(&world);
        world_configure(&world, "models: [large]\ncompile: {memory_bytes: 32 MiB}\n");
        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=model-failed model=large"), 1, "%s", world_log(&world));
        cr_expect_not_null(strstr(world_log(&world),
                                   "compiling it takes about 89 MiB (its files have 17), and compile.memory_bytes is 32 MiB: "),
                "%s", world_log(&world));
        world_stop(&world);
        world_free(&world);
}

/* What a runtime with so little takes for itself is not written here: only that the numbers are there. */
Test(compilers, a_runtime_without_memory_for_a_compiler_names_the_key_the_need_and_what_is_left, .timeout = 60)
{
        unsigned need = 0, left = 0, used = 0;
        struct honest *honest;
        struct world world;
        const char *at;

        if (WORLD_SLOW)
                cr_skip_test("sanitizers take the whole address space: the compiler's is not limited then");
        world_init_compiling(&world);
        add_large(&world);
        world_configure(&world, "models: [large, mlp]\nlimits: {memory_max: 96 MiB}\n");
        world_start(&world);
        at = strstr(world_log(&world), "compiling it takes about ");
        cr_assert_not_null(at, "%s", world_log(&world));
        cr_assert_eq(sscanf(at,
                             "compiling it takes about %u MiB (its files have 17), and %u are left for that: of limits.memory_max, "
                             "which is 96 MiB, %u are in use: ",
                             &need, &left, &used),
                3, "%s", at);
        cr_expect_eq(need, 89);
        cr_expect_lt(left, need);
        cr_expect_leq(left + used, 96);
        honest = honest_start(&world, "mlp");
        honest_expect_progress(honest, 20);
        honest_stop(honest);
        world_stop(&world);
        world_free(&world);
}

/* With their ensemble; compiled at this start, one after the other. */
Test(compilers, the_digits_are_compiled_and_served_in_120_mib, .timeout = 60)
{
        struct cgroup group = {.folder = ""};
        struct honest *honest;
        struct world world;

        if (WORLD_SLOW)
                cr_skip_test("a sanitizer takes more for itself");
        world_init_compiling(&world);
        if (cgroup_make(&group, 120 << 20)) {
                world.before_exec = cgroup_join;
                world.context = &group;
        } else {
                world_configure(&world, "limits: {memory_max: 105 MiB}\n");
        }
        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=ready failed_models=0"), 1, "%s", world_log(&world));
        honest = honest_start(&world, "digits");
        honest_expect_progress(honest, 20);
        honest_stop(honest);
        if (group.folder[0])
                cr_expect_eq(cgroup_kills(&group), 0, "%s", world_log(&world));
        world_stop(&world);
        world_free(&world);
        cgroup_remove(&group);
}

/* A copy is made beside the serving; a plan without its final name is none. */
static uint32_t count_plans(const char *folder)
{
        char pattern[4200];
        uint32_t n = 0;
        glob_t found;

        snprintf(pattern, sizeof(pattern), "%s/*.plan", folder);
        if (glob(pattern, 0, NULL, &found) == 0)
                n = (uint32_t)found.gl_pathc;
        globfree(&found);
        return n;
}

static void expect_plans(const char *folder, uint32_t n)
{
        WORLD_AWAIT(count_plans(folder) >= n);
        cr_assert_geq(count_plans(folder), n, "no %u plans in %s", n, folder);
}

Test(compilers, a_second_start_uses_the_plans_of_the_first_and_damage_costs_one_line, .timeout = 60)
{
        char folder[4096], yaml[4200], command[4300];
        struct world world;

        world_init_compiling(&world);
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

static void read_text(const char *path, char *text, size_t bytes)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, text, bytes - 1);

        text[n > 0 ? n : 0] = 0;
        if (fd >= 0)
                close(fd);
}

/* The child of the runtime that has this name. Return: 0 when there is none now. */
static pid_t find_child(const struct world *world, const char *name)
{
        char path[64], text[256], found[32];

        world_read_children(world->pid, text, sizeof(text));
        for (char *next = text; *next; next += strspn(next, " ")) {
                pid_t pid = (pid_t)strtol(next, &next, 10);

                snprintf(path, sizeof(path), "/proc/%d/comm", pid);
                read_text(path, found, sizeof(found));
                found[strcspn(found, "\n")] = 0;
                if (strcmp(found, name) == 0)
                        return pid;
        }
        return 0;
}

static void kill_compiler(struct world *world, uint32_t round)
{
        char yaml[64];

        snprintf(yaml, sizeof(yaml), "batch_max: %u\n", 1 + round % 32);
        world_add_model_config(world, "mlp", yaml);
        kill(world->pid, SIGHUP);
        for (uint64_t until = starling_clock_ns() + 1000000000ull; starling_clock_ns() < until;) {
                pid_t pid = find_child(world, "sl-compiler");

                if (pid > 0) {
                        kill(pid, SIGKILL);
                        return;
                }
        }
}

/* A model whose compiler dies is not replaced, and what it was serves on. */
Test(compilers, a_compiler_that_is_killed_costs_one_line_and_no_request, .timeout = 60)
{
        struct footprint before;
        struct honest *honest;
        struct world world;
        uint32_t killed = 0;
        char command[512];

        world_init_compiling(&world);
        world_remove_model(&world, "mlp");
        snprintf(command, sizeof(command), "cp -rL " DIGITS "/models/mlp %s/", world.repository);
        cr_assert_eq(system(command), 0);
        world_configure(&world, "models: [lenet, mlp]\n");
        world_start(&world);
        honest = honest_start(&world, "mlp");
        honest_expect_progress(honest, 1);
        before = world_footprint(&world);
        /* One that is found may have ended by itself by the time it is killed. */
        for (uint32_t round = 0; killed < 3 && round < 100; round++) {
                kill_compiler(&world, round);
                killed = world_count_log(&world, "event=model-not-replaced model=mlp version=1 cause=");
        }
        if (killed > 0) {
                honest_expect_progress(honest, 20);
                world_expect_footprint(&world, &before);
        }
        honest_stop(honest);
        world_stop(&world);
        world_free(&world);
        if (killed == 0)
                cr_skip_test("compilers are too fast to be caught here, or /proc does not list children");
}

/* The model has been replaced so often. */
static void expect_replacements(struct world *world, uint32_t n)
{
        WORLD_AWAIT(world_count_log(world, "event=model-replaced model=mlp") >= n);
        cr_assert_geq(world_count_log(world, "event=model-replaced model=mlp"), n, "%s", world_log(world));
}

/* Children of the runtime, those that have ended among them. */
static uint32_t count_children(const struct world *world)
{
        char text[256];
        uint32_t n = 0;

        world_read_children(world->pid, text, sizeof(text));
        for (const char *at = text; (at = strchr(at, ' ')); at++)
                n++;
        return n;
}

/* Nothing is compiled any more. */
Test(compilers, a_zygote_that_is_killed_leaves_nothing, .timeout = 60)
{
        struct world world;
        pid_t zygote;

        if (access("/proc/thread-self/children", F_OK) < 0)
                cr_skip_test("/proc does not list children");
        world_init_compiling(&world);
        world_configure(&world, "models: [lenet, mlp]\n");
        world_start(&world);
        /* The compilers have ended; a zygote that was late was given up. */
        WORLD_AWAIT(count_children(&world) == 0 || (count_children(&world) == 2 && find_child(&world, "sl-zygote")));
        zygote = find_child(&world, "sl-zygote");
        if (!zygote)
                cr_skip_test("no zygote has waited");
        cr_assert_eq(count_children(&world), 2, "the zygote, and a child that waits");
        cr_assert_eq(kill(zygote, SIGKILL), 0);
        WORLD_AWAIT(!count_children(&world));
        cr_expect_eq(count_children(&world), 0);
        world_stop(&world);
        world_free(&world);
}

/* What forks the compilers may die or stand still at any time: models are loaded, and there is another. */
Test(compilers, a_zygote_that_is_killed_or_stopped_costs_no_load, .timeout = 60)
{
        struct world world;
        char command[512], yaml[64];

        world_init_compiling(&world);
        world_remove_model(&world, "mlp");
        snprintf(command, sizeof(command), "cp -rL " DIGITS "/models/mlp %s/", world.repository);
        cr_assert_eq(system(command), 0);
        world_configure(&world, "models: [lenet, mlp]\n");
        world_start(&world);
        for (uint32_t round = 0; round < 5; round++) {
                pid_t zygote = find_child(&world, "sl-zygote");

                if (zygote)
                        cr_assert_eq(kill(zygote, round % 2 ? SIGSTOP : SIGKILL), 0);
                snprintf(yaml, sizeof(yaml), "batch_max: %u\n", 1 + round);
                world_add_model_config(&world, "mlp", yaml);
                kill(world.pid, SIGHUP);
                expect_replacements(&world, round + 1);
        }
        cr_expect_eq(world_count_log(&world, "event=model-not-replaced"), 0, "%s", world_log(&world));
        world_stop(&world);
        world_free(&world);
}

/* Return: one of two that have got the signal, if one waits to be asked, with a child; 0 otherwise. */
static pid_t signal_zygotes(const struct world *world, int signal)
{
        char text[256], path[64], name[32];
        pid_t stopped = 0;
        uint32_t n = 0;

        world_read_children(world->pid, text, sizeof(text));
        for (char *next = text; *next; next += strspn(next, " ")) {
                pid_t pid = (pid_t)strtol(next, &next, 10);

                snprintf(path, sizeof(path), "/proc/%d/comm", pid);
                read_text(path, name, sizeof(name));
                if (strncmp(name, "sl-zygote", 9) == 0 && kill(pid, signal) == 0) {
                        stopped = pid;
                        n++;
                }
        }
        return n == 2 ? stopped : 0;
}

#define LOAD_STEP "event=step step=load model=mlp "

/* Lists models until @n replacements have come about. Return: how many lists were asked for when the load after @n_loads others had
 * begun, and answered before @zygote, which stands still, was given up. */
static uint32_t list_until(struct world *world, uint32_t n, uint32_t n_loads, pid_t zygote)
{
        uint32_t answered = 0;
        bool began;

        do {
                struct starling_model_entry entries[8];

                began = world_count_log(world, LOAD_STEP) > n_loads;
                struct starling_client *client = world_connect(world, STARLING_ROLE_READER);

                cr_assert_gt(starling_model_list(client, entries, 8), 0);
                starling_close(client);
                answered += began && kill(zygote, 0) == 0;
                world_pause_us(1000);
        } while (world_count_log(world, "event=model-replaced model=mlp") < n);
        return answered;
}

static void change_batch(const struct world *world, uint32_t batch_max)
{
        char yaml[64];

        snprintf(yaml, sizeof(yaml), "batch_max: %u\n", batch_max);
        world_add_model_config(world, "mlp", yaml);
        kill(world->pid, SIGHUP);
}

#define ANSWERED_LEAST 3u /* one may be answered before the fork is asked for, and one as it is given up */

/* A compiler that is to be forked by what stands still is waited for, but by nobody who asks something else: what is asked for
 * meanwhile would be answered when that is given up, each time. A machine that others use may let nobody ask meanwhile, but not
 * each time.
 */
Test(compilers, while_a_fork_is_waited_for_others_are_answered, .timeout = 120)
{
        struct world world;
        char command[512];
        uint32_t answered = 0, n_stopped = 0;

        if (access("/proc/thread-self/children", F_OK) < 0)
                cr_skip_test("/proc does not list children");
        world_init_compiling(&world);
        world_remove_model(&world, "mlp");
        snprintf(command, sizeof(command), "cp -rL " DIGITS "/models/mlp %s/", world.repository);
        cr_assert_eq(system(command), 0);
        world_configure(&world, "models: [lenet, mlp]\nlog_level: debug\n");
        world_start(&world);
        for (uint32_t round = 0; round < 20 && answered < ANSWERED_LEAST; round++) {
                /* One that waits with its child, or none: it was late, and the next load starts another. */
                WORLD_AWAIT(count_children(&world) == 0 || (count_children(&world) == 2 && signal_zygotes(&world, 0)));
                pid_t stopped = signal_zygotes(&world, SIGSTOP);
                uint32_t n_loads = world_count_log(&world, LOAD_STEP);

                n_stopped += stopped > 0;
                change_batch(&world, 1 + round);
                if (stopped)
                        answered = list_until(&world, 1 + round, n_loads, stopped);
                else
                        expect_replacements(&world, 1 + round);
        }
        if (!n_stopped)
                cr_skip_test("no zygote has waited");
        cr_expect_geq(answered, ANSWERED_LEAST, "each time lists have waited for a fork");
        world_stop(&world);
        world_free(&world);
}
