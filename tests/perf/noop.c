/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling bench noop` and `starling bench small` measure all that they promise, and leave nothing behind: no folder, no stats
 * page, no process. How long anything takes is not asserted.
 */
#include "base/clock.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIGURES_MAX 32

static const char *const of_noop[FIGURES_MAX] = {"floor_ns", "floor_after_ns", "ring_rtt_p50_ns", "rtt_p50_ns", "rtt_p99_ns",
        "rtt_p999_ns", "rtt_over_ring", "rtt_p999_over_p50", "rtt_32_clients_over_one", "rtt_over_floor", "requests_per_second",
        "sleeping_rtt_p50_ns", "futex_rtt_p50_ns", "idle_cpu_share", "attach_ns", "attach_large_arena_ns",
        "rtt_over_floor_32_clients", "rtt_p50_busy_ns", "idle_rss_bytes"};
static const char *const of_small[FIGURES_MAX] = {"floor_ns", "floor_after_ns", "noop_rtt_p50_ns", "noop_rtt_p999_ns",
        "mlp_rtt_p50_ns", "mlp_rtt_p99_ns", "mlp_rtt_p999_ns", "mlp_compute_ns", "mlp_infer_p50_ns", "mlp_infer_p999_ns",
        "mlp_per_second_32_in_flight", "mlp_rtt_p99_beside_heavy_ns", "digits_rtt_p50_ns", "digits_rtt_p999_ns",
        "digits_compute_ns", "digits_infer_p50_ns", "digits_per_second_32_in_flight"};

struct bench {
        char folder[64]; /* its TMPDIR */
        pid_t pid;
        FILE *output;
};

static int cpus(void)
{
        cpu_set_t allowed;

        return sched_getaffinity(0, sizeof(allowed), &allowed) < 0 ? 0 : CPU_COUNT(&allowed);
}

static void start(struct bench *bench, const char *name)
{
        int ends[2];

        strcpy(bench->folder, "/tmp/sl-perf-XXXXXX");
        cr_assert(mkdtemp(bench->folder));
        cr_assert_eq(pipe(ends), 0);
        bench->pid = fork();
        cr_assert(bench->pid >= 0);
        if (bench->pid == 0) {
                dup2(ends[1], STDOUT_FILENO);
                close(ends[0]);
                setenv("TMPDIR", bench->folder, 1);
                execl(STARLING_TOOL, "starling", "bench", name, "--quick", "--json", strcmp(name, "small") ? NULL : "--digits",
                        DIGITS, (char *)NULL);
                _exit(127);
        }
        close(ends[1]);
        bench->output = fdopen(ends[0], "r");
        cr_assert(bench->output);
}

static uint32_t entries(const char *folder, const char *prefix)
{
        DIR *open = opendir(folder);
        struct dirent *entry;
        uint32_t n = 0;

        cr_assert(open, "%s", folder);
        while ((entry = readdir(open)))
                n += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && !strncmp(entry->d_name, prefix, strlen(prefix));
        closedir(open);
        return n;
}

static int await_end(struct bench *bench)
{
        char page[64];
        int status;

        cr_assert_eq(waitpid(bench->pid, &status, 0), bench->pid);
        fclose(bench->output);
        snprintf(page, sizeof(page), "/dev/shm/starling.bench-%d", bench->pid);
        cr_assert_neq(access(page, F_OK), 0, "its stats page is left");
        cr_assert_eq(entries(bench->folder, ""), 0, "something is left in %s", bench->folder);
        rmdir(bench->folder);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Runs one benchmark to its end. Return: what it printed. */
static json_t *measure(const char *name, const char *const *figures)
{
        struct bench bench;
        json_error_t error;

        start(&bench, name);
        json_t *root = json_loadf(bench.output, 0, &error);

        cr_assert_eq(await_end(&bench), 0);
        cr_assert(root, "%s", error.text);
        for (; *figures; figures++) {
                const json_t *figure = json_object_get(root, *figures);

                cr_expect(json_is_number(figure), "%s is missing", *figures);
                cr_expect(json_number_value(figure) >= 0, "%s is %g", *figures, json_number_value(figure));
        }
        return root;
}

Test(noop, all_figures_are_measured_and_nothing_is_left)
{
        if (cpus() < 2)
                cr_skip_test("it needs two CPUs");
        json_t *root = measure("noop", of_noop);

        cr_expect(strstr(json_string_value(json_object_get(root, "busy_note")), "in the runtime's worker"), "%s",
                json_string_value(json_object_get(root, "busy_note")));
        json_decref(root);
}

Test(small, all_figures_are_measured_and_nothing_is_left)
{
        if (cpus() < 2)
                cr_skip_test("it needs two CPUs");
        json_decref(measure("small", of_small));
}

Test(noop, an_interrupted_run_leaves_nothing)
{
        struct bench bench;

        if (cpus() < 2)
                cr_skip_test("it needs two CPUs");
        start(&bench, "noop");
        while (entries(bench.folder, "starling-bench-") == 0)
                usleep(1000);
        cr_assert_eq(kill(bench.pid, SIGINT), 0);
        cr_assert_neq(await_end(&bench), 0);
}
