/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs every registered test in a child process of its own, see criterion/criterion.h. A test passes when no assertion of it
 * failed, in whatever thread or process, and its process ended as it should: a crash, a leak, a sanitizer's report and a time-out
 * fail it.
 *
 *     fork -> suite's init -> test's init -> test -> test's fini -> suite's fini -> exit()
 *
 * An assertion that ends the test, and a skip, go on with the fini functions.
 */
#include "hung.h"

#include <criterion/parameterized.h>
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS INT64_C(1000000000)

/* Time limits are written for a machine that does nothing else, in builds without a sanitizer, and are for hangs. */
#define SLOWER 5

static struct plain_test *tests, **last = &tests;

/* Of the test that runs. Processes that it forks write here as well; the runner reads when it has ended. */
struct outcome {
        atomic_uint failures;
        atomic_bool skipped;
};
static struct outcome no_test, *outcome = &no_test;
static const struct plain_test *running;
static pid_t runner;
static bool tidying;

void plain_register(struct plain_test *test)
{
        *last = test;
        last = &test->next;
}

static const struct plain_options *suite_options(const struct plain_test *test)
{
        static const struct plain_options none;

        for (const struct plain_test *suite = tests; suite; suite = suite->next)
                if (!suite->run && !suite->run_with && strcmp(suite->suite, test->suite) == 0)
                        return &suite->options;
        return &none;
}

static void tidy(const struct plain_test *test)
{
        tidying = true;
        if (test->options.fini)
                test->options.fini();
        if (suite_options(test)->fini)
                suite_options(test)->fini();
}

/* Only the test's own process and thread tidies, and only once. */
static _Noreturn void end_early(int status)
{
        if (running && !tidying && getppid() == runner && gettid() == getpid())
                tidy(running);
        fflush(NULL);
        _exit(status);
}

static void print(const char *format, va_list arguments)
{
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
}

static void fail(const char *what, const char *file, int line, const char *format, va_list arguments)
{
        atomic_fetch_add_explicit(&outcome->failures, 1, memory_order_relaxed); /* read after the process has ended */
        fprintf(stderr, "%s:%d: %s:", file, line, what);
        print(format, arguments);
}

void plain_expect(const char *what, const char *file, int line, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        fail(what, file, line, format, arguments);
        va_end(arguments);
}

void plain_assert(const char *what, const char *file, int line, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        fail(what, file, line, format, arguments);
        va_end(arguments);
        end_early(1);
}

void plain_log(const char *level, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        fprintf(stderr, "[%s]", level);
        print(format, arguments);
        va_end(arguments);
}

void plain_skip(const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        fprintf(stderr, "[SKIP] %s::%s:", running->suite, running->name);
        print(format, arguments);
        va_end(arguments);
        atomic_store_explicit(&outcome->skipped, true, memory_order_relaxed);
        end_early(0);
}

/* With exit(), at which the sanitizer looks for leaks. */
static void run(const struct plain_test *test, void *value)
{
        const struct plain_options *suite = suite_options(test);

        if (suite->init)
                suite->init();
        if (test->options.init)
                test->options.init();
        if (test->run)
                test->run();
        else
                test->run_with(value);
        tidy(test);
        exit(0);
}

static int64_t now_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* SIGCHLD is blocked. Return: what waitpid() does, 0: @child did not end within @limit_ns (0: no limit). */
static pid_t wait_within(pid_t child, int64_t limit_ns, int *ret_status)
{
        int64_t end_ns = now_ns() + limit_ns;
        sigset_t ends;
        pid_t ended;

        sigemptyset(&ends);
        sigaddset(&ends, SIGCHLD);
        while ((ended = waitpid(child, ret_status, WNOHANG)) == 0) {
                int64_t left_ns = end_ns - now_ns();
                if (limit_ns && left_ns <= 0)
                        break;
                struct timespec left = {.tv_sec = left_ns / SECOND_NS, .tv_nsec = left_ns % SECOND_NS};
                sigtimedwait(&ends, NULL, limit_ns ? &left : NULL);
        }
        return ended;
}

/* Return: whether @child ended within @limit_ns, 0 for no limit; else it is killed. */
static bool wait_for(pid_t child, int64_t limit_ns, int *ret_status)
{
        pid_t ended = wait_within(child, limit_ns, ret_status);

        if (ended)
                return ended == child;
        hung_describe(child);
        kill(child, SIGSEGV); /* of which a sanitizer prints the stack */
        if (wait_within(child, 10 * SECOND_NS, ret_status) == 0) {
                kill(child, SIGKILL);
                waitpid(child, ret_status, 0);
        }
        return false;
}

static int64_t limit_ns(const struct plain_test *test)
{
        double seconds = test->options.timeout > 0 ? test->options.timeout : suite_options(test)->timeout;

        return (int64_t)(seconds * SLOWER * SECOND_NS);
}

static bool ended_as_wanted(const struct plain_options *options, int status)
{
        if (atomic_load_explicit(&outcome->skipped, memory_order_relaxed))
                return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (options->signal)
                return WIFSIGNALED(status) && WTERMSIG(status) == options->signal;
        return WIFEXITED(status) && WEXITSTATUS(status) == options->exit_code;
}

static bool passes(const struct plain_test *test, void *value)
{
        sigset_t ends, before;
        int status = 0;

        *outcome = (struct outcome){0};
        running = test;
        fflush(NULL);
        sigemptyset(&ends);
        sigaddset(&ends, SIGCHLD);
        sigprocmask(SIG_BLOCK, &ends, &before);
        pid_t child = fork();
        if (child == 0) {
                sigprocmask(SIG_SETMASK, &before, NULL);
                run(test, value);
        }
        if (child < 0) {
                fprintf(stderr, "fork: %s\n", strerror(errno));
                return false;
        }

        bool in_time = wait_for(child, limit_ns(test), &status);
        bool passed = in_time && ended_as_wanted(&test->options, status) &&
                      atomic_load_explicit(&outcome->failures, memory_order_relaxed) == 0;
        if (!passed)
                fprintf(stderr, "[FAIL] %s::%s: %s %d%s\n", test->suite, test->name, WIFSIGNALED(status) ? "signal" : "exit status",
                        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), in_time ? "" : ", timed out");
        return passed;
}

/* As Criterion's --filter: SUITE/PATTERN. Nothing after the slash takes the whole suite. */
static bool is_wanted(const struct plain_test *test, const char *filter)
{
        size_t n = strlen(test->suite);

        if (!filter)
                return true;
        return strncmp(test->suite, filter, n) == 0 && filter[n] == '/' &&
               (!filter[n + 1] || fnmatch(filter + n + 1, test->name, 0) == 0);
}

static void run_all(const struct plain_test *test, unsigned int *n, unsigned int *failed)
{
        struct criterion_test_params values = {.length = 1};

        if (test->values)
                values = test->values();
        for (size_t i = 0; i < values.length; i++) {
                *failed += !passes(test, (char *)values.params + i * values.size);
                ++*n;
        }
}

/* Weak for programs with a main() of their own that link what tests share. */
__attribute__((weak)) int main(int argc, char **argv)
{
        const char *filter = argc == 3 && strcmp(argv[1], "--filter") == 0 ? argv[2] : NULL;
        unsigned int n = 0, failed = 0;

        if (argc > 1 && !filter) {
                fprintf(stderr, "usage: %s [--filter SUITE/PATTERN]\n", argv[0]);
                return 2;
        }
        runner = getpid();
        outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (outcome == MAP_FAILED) {
                fprintf(stderr, "mmap: %s\n", strerror(errno));
                return 1;
        }
        for (const struct plain_test *test = tests; test; test = test->next)
                if ((test->run || test->run_with) && is_wanted(test, filter))
                        run_all(test, &n, &failed);
        printf("%u tests, %u failed\n", n, failed);
        fflush(NULL);
        _exit(n == 0 || failed > 0); /* nothing of the runner's own is worth a search for leaks */
}
