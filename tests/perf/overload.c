/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling bench overload` accounts for every request that was due, and leaves nothing behind. How much is answered is not
 * asserted.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const ends[] = {"answered_in_time", "answered_late", "refused_deadline", "refused_busy", "refused_quota",
        "failed_otherwise", "refused_no_room"};

static bool has_two_cpus(void)
{
        cpu_set_t allowed;

        return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) >= 2;
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

/* Runs it with few clients and @folder as its TMPDIR. */
static json_t *run_bench(const char *folder, pid_t *ret_pid)
{
        json_error_t error;
        int fds[2], status;

        cr_assert_eq(pipe(fds), 0);
        *ret_pid = fork();
        cr_assert(*ret_pid >= 0);
        if (*ret_pid == 0) {
                dup2(fds[1], STDOUT_FILENO);
                close(fds[0]);
                setenv("TMPDIR", folder, 1);
                execl(STARLING_TOOL, "starling", "bench", "overload", "--clients", "4", "--turns", "1", "--seconds", "0.2",
                        "--json", (char *)NULL);
                _exit(127);
        }
        close(fds[1]);
        FILE *output = fdopen(fds[0], "r");
        cr_assert(output);
        json_t *root = json_loadf(output, 0, &error);
        fclose(output);
        cr_assert_eq(waitpid(*ret_pid, &status, 0), *ret_pid);
        cr_assert_eq(status, 0);
        cr_assert(root, "%s", error.text);
        return root;
}

static double figure(const json_t *root, const char *load, const char *name)
{
        char key[96];

        snprintf(key, sizeof(key), "%s_%s_per_second", load, name);
        const json_t *value = json_object_get(root, key);
        cr_assert(json_is_number(value), "%s is missing", key);
        return json_number_value(value);
}

/* Figures are rounded to whole requests per second at the most. */
static void expect_all_accounted(const json_t *root, const char *load)
{
        double due = figure(root, load, "offered"), sum = 0;

        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
                sum += figure(root, load, ends[i]);
        cr_expect_gt(due, 0);
        cr_expect(fabs(due - sum) <= (double)(sizeof(ends) / sizeof(ends[0])), "%s: %g were due, %g ended", load, due, sum);
        cr_expect_eq(figure(root, load, "failed_otherwise"), 0);
}

Test(overload, each_request_that_was_due_ends_once_and_nothing_is_left)
{
        char folder[] = "/tmp/sl-perf-XXXXXX", page[64];
        pid_t pid;

        if (!has_two_cpus())
                cr_skip_test("it needs two CPUs");
        cr_assert(mkdtemp(folder));
        json_t *root = run_bench(folder, &pid);

        expect_all_accounted(root, "once");
        expect_all_accounted(root, "overload");
        snprintf(page, sizeof(page), "/dev/shm/starling.bench-%d", pid);
        cr_expect_neq(access(page, F_OK), 0, "its stats page is left");
        cr_expect_eq(entries(folder, ""), 0, "something is left in %s", folder);
        rmdir(folder);
        json_decref(root);
}
