/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compiler whose load is cancelled is killed at once, and may be gone much later: as long as it is there, its memory and its
 * place among the loads are not given to another one. The test holds it at its end by ptrace(2).
 */
#include "builder.h"
#include "stats.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define ROUNDS    50u
#define DIMENSION 2048

/* y [N, 2048] = x [N, 2048] . w: 16 MiB of weights, whose compilation takes about 89. */
static void add_large(const struct world *world)
{
        struct builder *b = builder_new(13);
        size_t bytes;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, DIMENSION));
        builder_random(b, "w", DIMS(DIMENSION, DIMENSION));
        builder_node(b, "MatMul", "x,w", "y");
        builder_output(b, "y");
        const uint8_t *file = builder_pack(b, &bytes);
        world_add_model(world, "large", file, bytes);
        builder_free(b);
}

/* Whatever is under way for it is for something else than is wanted now. */
static void want_another(struct world *world, uint32_t round)
{
        char yaml[64];

        snprintf(yaml, sizeof(yaml), "batch_max: %u\n", 1 + round % 64);
        world_add_model_config(world, "large", yaml);
        cr_assert_eq(kill(world->pid, SIGHUP), 0);
}

/* A compiler of the runtime; 0: there is none. */
static pid_t find_compiler(const struct world *world)
{
        char path[64], text[256], name[32] = "";

        world_read_children(world->pid, text, sizeof(text));
        for (char *next = text; *next; next += strspn(next, " ")) {
                pid_t pid = (pid_t)strtol(next, &next, 10);
                FILE *file;

                snprintf(path, sizeof(path), "/proc/%d/comm", pid);
                file = fopen(path, "r");
                bool is_one = file && fgets(name, sizeof(name), file) && strcmp(name, "sl-compiler\n") == 0;
                if (file)
                        fclose(file);
                if (is_one)
                        return pid;
        }
        return 0;
}

/* What it is doing it goes on with no further. Return: false when it has ended meanwhile. */
static bool stop(pid_t pid)
{
        int status;

        if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACEEXIT) < 0) {
                if (errno == EPERM && kill(pid, 0) == 0)
                        cr_skip_test("compilers cannot be traced here");
                return false;
        }
        (void)ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
        if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
                return false;
        if (status >> 16 != PTRACE_EVENT_EXIT)
                return true;
        (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
        return false;
}

/* One that compiles, and stands still now. */
static pid_t catch_compiler(struct world *world, uint32_t *round)
{
        for (; *round < ROUNDS; ++*round) {
                want_another(world, *round);
                for (uint64_t until_ns = starling_clock_ns() + 1000000000ull; starling_clock_ns() < until_ns;) {
                        pid_t pid = find_compiler(world);

                        if (pid && stop(pid))
                                return pid;
                }
        }
        cr_skip_test("compilers are too fast to be caught here, or /proc does not list children");
        return 0;
}

/* It has been killed, and is let go no further than to its end. */
static void expect_at_its_end(pid_t pid)
{
        int status;

        do
                cr_assert_eq(waitpid(pid, &status, __WALL), pid);
        while (WIFSTOPPED(status) && status >> 16 != PTRACE_EVENT_EXIT && ptrace(PTRACE_CONT, pid, NULL, NULL) == 0);
        if (!WIFSTOPPED(status))
                cr_skip_test("the system lets nobody hold a process that was killed");
}

static uint64_t promised(const struct world *world)
{
        struct sl_memory_stats memory;
        struct sl_stats_view *view;
        uint64_t bytes = 0;

        cr_assert_eq(sl_stats_open(world->name, NULL, &view, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_MEMORY); i++)
                if (sl_stats_read_memory(view, i, &memory) == 0 && strcmp(memory.name, "compilers") == 0)
                        bytes = sl_counter_read(&memory.bytes);
        sl_stats_close(view);
        return bytes;
}

static bool awaits(const struct world *world, const char *text)
{
        struct sl_model_stats model;
        struct sl_stats_view *view;
        bool found = false;

        cr_assert_eq(sl_stats_open(world->name, NULL, &view, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_MODELS); i++)
                found |= sl_stats_read_model(view, i, &model) == 0 && strcmp(model.name, "large") == 0 &&
                         strcmp(model.awaits, text) == 0;
        sl_stats_close(view);
        return found;
}

static void expect_await(const struct world *world, const char *text)
{
        WORLD_AWAIT(awaits(world, text));
        cr_assert(awaits(world, text), "it does not wait for %s: %s", text, world_log((struct world *)world));
}

/* @yaml leaves no room for a second compiler beside the first: what follows a load that was cancelled waits for @text. */
static void expect_wait(const char *yaml, const char *text)
{
        struct world world;
        uint32_t round = 0;

        world_init_compiling(&world);
        add_large(&world);
        world_configure(&world, "models: [large]\n");
        world_configure(&world, yaml);
        world_start(&world);
        pid_t pid = catch_compiler(&world, &round);
        uint64_t bytes = promised(&world);
        cr_expect_gt(bytes, 0);
        want_another(&world, round + 1);
        expect_at_its_end(pid);
        world_expect_log(&world, "event=load-cancelled model=large");
        expect_await(&world, text);
        cr_expect_geq(promised(&world), bytes);
        uint32_t replaced = world_count_log(&world, "event=model-replaced model=large");
        cr_assert_eq(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
        WORLD_AWAIT(world_count_log(&world, "event=model-replaced model=large") > replaced && promised(&world) == 0);
        cr_expect_eq(world_count_log(&world, "event=model-replaced model=large"), replaced + 1, "%s", world_log(&world));
        cr_expect_eq(promised(&world), 0);
        cr_expect_eq(world_count_log(&world, "event=model-not-replaced"), 0, "%s", world_log(&world));
        world_stop(&world);
        world_free(&world);
}

Test(killed_compiler, its_place_among_the_loads_is_free_when_it_is_gone, .timeout = 120)
{
        expect_wait("compile: {jobs: 1}\n", "the end of other loads");
}

Test(killed_compiler, its_memory_is_free_when_it_is_gone, .timeout = 120)
{
        if (WORLD_SLOW)
                cr_skip_test("sanitizers take the whole address space: the compiler's is not limited then");
        expect_wait("compile: {jobs: 2}\nlimits: {memory_max: 200 MiB}\n", "the end of what leaves room for it");
}
