/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a compilation takes of memory that cannot be dropped, the plan file aside: less than the weights. The limit is the kernel's
 * (RLIMIT_DATA), which counts private memory; pages of the model's file, which is mapped, and of the plan are none.
 */
#include "base/error.h"
#include "builder.h"
#include "compile.h"
#include "lower_options.h"
#include "sandbox.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIDE     1024 /* of a matrix of 4 MiB */
#define MATRICES 24
#define ALLOWED  (40ull << 20)
#define REFUSED  17

/* x times matrices, each at an address of its own kind, for their names differ in length. */
static void write_model(int fd)
{
        struct builder *b = builder_new_of_x(17, 2, (int64_t[]){-1, SIDE});
        char from[16] = "x", weights[40], inputs[64], to[16];
        uint8_t *bytes;
        size_t n;

        for (int i = 0; i < MATRICES; i++) {
                snprintf(weights, sizeof(weights), "w%d%.*s", i, i % 4, "----");
                snprintf(inputs, sizeof(inputs), "%s,%s", from, weights);
                snprintf(to, sizeof(to), "y%d", i);
                builder_random(b, weights, 2, (int64_t[]){SIDE, SIDE});
                builder_node(b, "MatMul", inputs, to);
                strcpy(from, to);
        }
        builder_output(b, from);
        bytes = builder_pack(b, &n);
        cr_assert_eq(write(fd, bytes, n), (ssize_t)n);
        builder_free(b);
}

/* Of private memory, as RLIMIT_DATA counts it. */
static uint64_t private_bytes(void)
{
        FILE *file = fopen("/proc/self/status", "r");
        unsigned long long kilobytes = 0;
        char line[128];

        while (file && fgets(line, sizeof(line), file))
                (void)sscanf(line, "VmData: %llu kB", &kilobytes);
        fclose(file);
        return kilobytes << 10;
}

/* Exit status: 0, or the error. */
static void compile_within(const char *path, uint64_t bytes, int plan_fd)
{
        const struct rlimit limit = {private_bytes() + bytes, RLIM_INFINITY};
        struct sl_lower_options options;
        struct sl_error error = {""};
        int r;

        sl_lower_options_init(&options);
        options.batch_max = 1;
        if (setrlimit(RLIMIT_DATA, &limit) < 0)
                _exit(REFUSED);
        r = sl_compile_here(path, &options, -1, plan_fd, &error);
        if (r < 0)
                fprintf(stderr, "%s\n", error.text);
        _exit(-r);
}

Test(private_memory, a_compilation_takes_less_than_half_of_the_weights)
{
        char path[] = "/tmp/starling-weights-XXXXXX";
        int fd, plan_fd = memfd_create("plan", MFD_CLOEXEC), status = -1;
        struct stat plan;
        pid_t pid;

        if (SL_SANITIZED)
                cr_skip_test("shadow memory is private memory");
        fd = mkstemp(path);
        cr_assert_geq(fd, 0);
        write_model(fd);
        close(fd);
        pid = fork();
        cr_assert_geq(pid, 0);
        if (pid == 0)
                compile_within(path, ALLOWED, plan_fd);
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        unlink(path);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", (unsigned)status);
        cr_assert_eq(fstat(plan_fd, &plan), 0);
        cr_assert_gt((uint64_t)plan.st_size, 2 * ALLOWED, "the plan has the weights");
        close(plan_fd);
}
