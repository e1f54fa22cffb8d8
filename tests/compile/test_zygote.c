/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compilers that a zygote forks. What holds for each compiler holds for them too: test_child.c is built a second time for that.
 */
#include "base/error.h"
#include "compile.h"
#include "compile_zygote.h"
#include "freeze.h"
#include "zygote.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MODEL        DIGITS "/models/lenet/1/model.onnx"
#define CHILDREN_MAX 8

static struct sl_compile_zygote *ready_zygote(void)
{
        struct sl_compile_zygote *zygote;

        cr_assert_eq(sl_compile_zygote_new(CHILD, &zygote), 0);
        cr_assert_eq(sl_zygote_await(sl_compile_zygote_of(zygote)), 0);
        return zygote;
}

#define LIMIT_MS 120000 /* of what must come */

/* Who is not answered in half a second loads without a zygote. Here it waits on, where others have the processors, but for one
 * test. */
static bool is_patient = true;

int __real_poll(struct pollfd *fds, nfds_t n, int limit_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int limit_ms);

int __wrap_poll(struct pollfd *fds, nfds_t n, int limit_ms)
{
        return __real_poll(fds, n, is_patient && limit_ms > 0 ? LIMIT_MS : limit_ms);
}

static pid_t pid_of(const struct sl_compile_zygote *zygote)
{
        return sl_zygote_pid(sl_compile_zygote_of(zygote));
}

static int compile(struct sl_compile_zygote *zygote, const char *model, int *ret_fd, struct sl_error *error)
{
        error->text[0] = 0;
        return sl_compile(&(struct sl_compile_options){.program = CHILD, .model_path = model, .zygote = zygote}, ret_fd, error);
}

static void expect_text(struct sl_compile_zygote *zygote, const char *model, const char *text)
{
        struct sl_error error;
        int fd;

        cr_assert_lt(compile(zygote, model, &fd, &error), 0);
        cr_assert_not_null(strstr(error.text, text), "%s", error.text);
}

static void *bytes_of(int fd, size_t *ret_n)
{
        struct stat status;
        void *bytes;

        cr_assert_eq(fstat(fd, &status), 0);
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
        cr_assert_neq(bytes, MAP_FAILED);
        *ret_n = (size_t)status.st_size;
        return bytes;
}

Test(zygote, its_children_make_the_plans_that_a_started_process_makes)
{
        struct sl_compile_zygote *zygote = ready_zygote();
        struct sl_error error;
        void *started, *forked;
        size_t n, m;
        int fd;

        cr_assert_eq(compile(NULL, MODEL, &fd, &error), 0, "%s", error.text);
        started = bytes_of(fd, &n);
        for (int i = 0; i < 3; i++) {
                cr_assert_eq(compile(zygote, MODEL, &fd, &error), 0, "%s", error.text);
                forked = bytes_of(fd, &m);
                cr_assert_eq(n, m);
                cr_assert_eq(memcmp(started, forked, n), 0);
                munmap(forked, m);
                close(fd);
        }
        sl_compile_zygote_free(zygote);
}

/* One of them is: a machine that stands still for as long as an answer may take has a process started instead. */
static bool is_forked(struct sl_compile_zygote *zygote)
{
        for (int i = 0; i < 10; i++) {
                struct sl_error error;
                int fd;

                cr_assert_eq(sl_zygote_await(sl_compile_zygote_of(zygote)), 0);
                cr_assert_lt(compile(zygote, "origin", &fd, &error), 0);
                if (strstr(error.text, "status 5"))
                        return true;
                cr_assert_not_null(strstr(error.text, "status 4"), "%s", error.text);
        }
        return false;
}

Test(zygote, forks_where_it_is_ready_and_is_not_waited_for)
{
        struct sl_compile_zygote *zygote;

        cr_assert_eq(sl_compile_zygote_new(CHILD, &zygote), 0);
        cr_assert_eq(pid_of(zygote), 0, "nothing is started before it is wanted");
        expect_text(NULL, "origin", "status 4");
        expect_text(zygote, "origin", "status");
        cr_assert(is_forked(zygote));
        sl_compile_zygote_free(zygote);
}

Test(zygote, a_child_has_the_descriptors_of_a_started_process)
{
        struct sl_compile_zygote *zygote = ready_zygote();

        expect_text(NULL, "descriptors", "012345");
        for (int i = 0; i < 3; i++) {
                struct sl_error error;
                int fd;

                cr_assert_lt(compile(zygote, "descriptors", &fd, &error), 0);
                cr_assert_str_eq(error.text, "012345");
        }
        sl_compile_zygote_free(zygote);
}

Test(zygote, one_that_was_killed_is_replaced_and_no_load_fails)
{
        struct sl_compile_zygote *zygote = ready_zygote();
        pid_t first = pid_of(zygote);

        cr_assert_eq(kill(first, SIGKILL), 0);
        for (int i = 0; i < 3; i++)
                expect_text(zygote, "origin", "status");
        cr_assert_eq(sl_zygote_await(sl_compile_zygote_of(zygote)), 0);
        cr_assert_neq(pid_of(zygote), first);
        expect_text(zygote, "origin", "status 5");
        sl_compile_zygote_free(zygote);
        cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "nobody is left, not even to be reaped");
}

Test(zygote, one_that_is_stopped_is_replaced_and_not_waited_for)
{
        struct sl_compile_zygote *zygote = ready_zygote();
        pid_t first = pid_of(zygote);

        cr_assert(freeze(first));
        expect_text(zygote, "origin", "status 5"); /* the child that has waited */
        is_patient = false;
        expect_text(zygote, "origin", "status 4");
        is_patient = true;
        cr_assert_neq(pid_of(zygote), first);
        cr_assert_eq(sl_zygote_await(sl_compile_zygote_of(zygote)), 0);
        expect_text(zygote, "origin", "status 5");
        sl_compile_zygote_free(zygote);
        cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "nobody is left, not even to be reaped");
}

Test(zygote, a_crash_is_one_line_and_the_next_child_is_of_another)
{
        struct sl_compile_zygote *zygote = ready_zygote();
        pid_t first = pid_of(zygote);

        expect_text(zygote, "silent", "status 3");
        cr_assert_eq(pid_of(zygote), first, "an end with a status is no crash");
        expect_text(zygote, "crash", "killed by signal 11");
        cr_assert_neq(pid_of(zygote), first);
        cr_assert_eq(sl_zygote_await(sl_compile_zygote_of(zygote)), 0);
        expect_text(zygote, "origin", "status 5");
        sl_compile_zygote_free(zygote);
}

Test(zygote, a_child_that_is_cancelled_leaves_nothing)
{
        struct sl_compile_zygote *zygote = ready_zygote();
        struct sl_compile_options options = {.program = CHILD, .model_path = "sleep", .zygote = zygote};
        struct sl_compilation *compilation;

        cr_assert_eq(sl_compile_start(&options, &compilation, NULL), 0);
        sl_compile_cancel(compilation);
        sl_compile_zygote_free(zygote);
        cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
}

/* On one processor the owner goes on as soon as a child has answered, which may be before that has told the zygote. */
Test(zygote, outlives_children_that_are_cancelled_at_once)
{
        struct sl_compile_zygote *zygote;
        cpu_set_t all, one;
        pid_t before;

        cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
        CPU_ZERO(&one);
        for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
                if (CPU_ISSET(cpu, &all))
                        CPU_SET(cpu, &one);
        cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
        zygote = ready_zygote();
        before = pid_of(zygote);
        for (uint32_t i = 0; i < 100; i++) {
                struct sl_compile_options options = {.program = CHILD, .model_path = "sleep", .zygote = zygote};
                struct sl_compilation *compilation;

                cr_assert_eq(sl_compile_start(&options, &compilation, NULL), 0);
                sl_compile_cancel(compilation);
                cr_assert_eq(sl_zygote_await(sl_compile_zygote_of(zygote)), 0, "compilation %u", i);
                cr_assert_eq(pid_of(zygote), before, "compilation %u", i);
        }
        sl_compile_zygote_free(zygote);
}

/* Processes of this thread beside the zygote. */
static uint32_t list_children(const struct sl_compile_zygote *zygote, pid_t ret_pids[CHILDREN_MAX])
{
        uint32_t n = 0;
        char path[64];
        FILE *list;
        int next;

        snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
        list = fopen(path, "r");
        while (list && n < CHILDREN_MAX && fscanf(list, "%d", &next) == 1)
                if (next != pid_of(zygote))
                        ret_pids[n++] = next;
        if (list)
                fclose(list);
        return n;
}

static bool one_runs_on(const struct sl_compile_zygote *zygote, const cpu_set_t *cpus)
{
        pid_t pids[CHILDREN_MAX];
        bool found = false;

        for (uint32_t i = list_children(zygote, pids); i-- > 0 && !found;) {
                cpu_set_t there;

                found = sched_getaffinity(pids[i], sizeof(there), &there) == 0 && CPU_EQUAL(&there, cpus);
        }
        return found;
}

Test(zygote, a_child_runs_where_its_owner_may)
{
        struct sl_compile_zygote *zygote = ready_zygote();
        struct sl_compile_options options = {.program = CHILD, .model_path = "sleep", .zygote = zygote};
        struct sl_compilation *compilation;
        cpu_set_t before, one;

        cr_assert_eq(sched_getaffinity(0, sizeof(before), &before), 0);
        if (CPU_COUNT(&before) < 2)
                cr_skip_test("there is one processor");
        CPU_ZERO(&one);
        for (int cpu = CPU_SETSIZE - 1; CPU_COUNT(&one) == 0; cpu--)
                if (CPU_ISSET(cpu, &before))
                        CPU_SET(cpu, &one);
        cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
        cr_assert_not(one_runs_on(zygote, &one));
        cr_assert_eq(sl_compile_start(&options, &compilation, NULL), 0);
        for (int tries = 0; tries < 60000 && !one_runs_on(zygote, &one); tries++)
                usleep(1000);
        cr_assert(one_runs_on(zygote, &one));
        sl_compile_cancel(compilation);
        sl_compile_zygote_free(zygote);
}

Test(zygote, a_child_waits_before_it_is_wanted_and_each_serves_once)
{
        struct sl_compile_zygote *zygote = ready_zygote();
        pid_t before[CHILDREN_MAX], after[CHILDREN_MAX];

        cr_assert_eq(list_children(zygote, before), 1);
        expect_text(zygote, "origin", "status 5");
        cr_assert_eq(sl_zygote_await(sl_compile_zygote_of(zygote)), 0);
        cr_assert_eq(list_children(zygote, after), 1);
        cr_assert_neq(after[0], before[0]);
        sl_compile_zygote_free(zygote);
        cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "nobody is left, not even to be reaped");
}

Test(zygote, a_child_that_dies_before_it_is_wanted_costs_no_load)
{
        struct sl_compile_zygote *zygote = ready_zygote();
        pid_t waiting[CHILDREN_MAX];

        cr_assert_eq(list_children(zygote, waiting), 1);
        cr_assert_eq(kill(waiting[0], SIGKILL), 0);
        for (int i = 0; i < 3; i++)
                expect_text(zygote, "origin", "status");
        cr_assert_eq(sl_zygote_await(sl_compile_zygote_of(zygote)), 0);
        expect_text(zygote, "origin", "status 5");
        sl_compile_zygote_free(zygote);
        cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "nobody is left, not even to be reaped");
}

/* It has an order as soon as it leaves the zygote's group, and may be killed before it has said so. */
Test(zygote, a_child_that_dies_between_its_order_and_its_answer_is_reaped)
{
        struct sl_compile_zygote *zygote = ready_zygote();
        pid_t waiting[CHILDREN_MAX];

        cr_assert_eq(list_children(zygote, waiting), 1);
        cr_assert_eq(setpgid(waiting[0], getpgrp()), 0);
        cr_assert_eq(kill(waiting[0], SIGKILL), 0);
        for (int i = 0; i < 3; i++)
                expect_text(zygote, "origin", "status");
        sl_compile_zygote_free(zygote);
        cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "nobody is left, not even to be reaped");
}

Test(zygote, a_child_that_has_waited_for_long_makes_the_same_plan)
{
        struct sl_compile_zygote *zygote = ready_zygote();
        struct sl_error error;
        void *at_once, *later;
        size_t n, m;
        int fd;

        cr_assert_eq(compile(zygote, MODEL, &fd, &error), 0, "%s", error.text);
        at_once = bytes_of(fd, &n);
        cr_assert_eq(sl_zygote_await(sl_compile_zygote_of(zygote)), 0);
        usleep(200000); /* it has got ready */
        cr_assert_eq(compile(zygote, MODEL, &fd, &error), 0, "%s", error.text);
        later = bytes_of(fd, &m);
        cr_assert_eq(n, m);
        cr_assert_eq(memcmp(at_once, later, n), 0);
        munmap(later, m);
        munmap(at_once, n);
        sl_compile_zygote_free(zygote);
}

/* Pages that are the process's own. */
static long resident_pages(pid_t pid)
{
        long all = 0, resident = 0, shared = 0;
        char path[64];
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/statm", pid);
        file = fopen(path, "r");
        cr_assert_not_null(file);
        cr_assert_eq(fscanf(file, "%ld %ld %ld", &all, &resident, &shared), 3);
        fclose(file);
        return resident - shared;
}

/* Getting ready is 16 MiB of heap that is touched. */
Test(zygote, a_child_gets_ready_when_the_one_before_has_ended)
{
        const long ready_pages = (8l << 20) / sysconf(_SC_PAGESIZE);
        struct sl_compile_zygote *zygote = ready_zygote();
        struct sl_compile_options options = {.program = CHILD, .model_path = "sleep", .zygote = zygote};
        struct sl_compilation *compilation;
        pid_t pids[CHILDREN_MAX], works, waits;

        cr_assert_eq(list_children(zygote, pids), 1);
        works = pids[0];
        cr_assert_eq(sl_compile_start(&options, &compilation, NULL), 0);
        cr_assert_eq(sl_zygote_await(sl_compile_zygote_of(zygote)), 0);
        cr_assert_eq(list_children(zygote, pids), 2);
        waits = pids[pids[0] == works];
        long before = resident_pages(waits);
        usleep(200000);
        cr_expect_lt(resident_pages(waits) - before, ready_pages, "it takes the processor from the one that works");
        sl_compile_cancel(compilation);
        for (int tries = 0; tries < 60000 && resident_pages(waits) - before < ready_pages; tries++)
                usleep(1000);
        cr_expect_geq(resident_pages(waits) - before, ready_pages);
        sl_compile_zygote_free(zygote);
}

Test(zygote, it_and_its_children_die_with_their_owner)
{
        int pids[2], fds[2];
        struct pollfd ends[2];
        pid_t owner;

        cr_assert_eq(pipe(fds), 0);
        owner = fork();
        cr_assert_geq(owner, 0);
        if (owner == 0) {
                struct sl_compile_zygote *zygote = ready_zygote();
                struct sl_compile_options options = {.program = CHILD, .model_path = "spin", .zygote = zygote};
                struct sl_compilation *compilation;

                pids[0] = pid_of(zygote);
                pids[1] = sl_compile_start(&options, &compilation, NULL);
                (void)!write(fds[1], pids, sizeof(pids));
                pause();
        }
        cr_assert_eq(read(fds[0], pids, sizeof(pids)), (ssize_t)sizeof(pids));
        cr_assert_eq(pids[1], 0);
        ends[0] = (struct pollfd){.fd = (int)syscall(SYS_pidfd_open, pids[0], 0), .events = POLLIN};
        cr_assert_geq(ends[0].fd, 0);
        cr_assert_eq(kill(owner, SIGKILL), 0);
        cr_assert_eq(poll(ends, 1, 60000), 1);
        cr_assert_eq(waitpid(owner, NULL, 0), owner);
        close(ends[0].fd);
}
