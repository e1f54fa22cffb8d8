/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every registered test in a child process of its own, see criterion/criterion.h. */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77

static struct plain_test *tests;

/* Of the test that runs in this process. */
static atomic_uint failures;
static const struct plain_options *running;

void plain_register(struct plain_test *test)
{
        test->next = tests;
        tests = test;
}

void plain_check(bool fatal, bool holds, const char *what, const char *file, int line, const char *format, ...)
{
        va_list arguments;

        if (holds)
                return;
        fprintf(stderr, "%s:%d: %s:", file, line, what);
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fputc('\n', stderr);
        atomic_fetch_add(&failures, 1);
        if (fatal)
                _exit(1);
}

void plain_skip(const char *format, ...)
{
        va_list arguments;

        fputs("[SKIP]", stderr);
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fputc('\n', stderr);
        if (running->fini)
                running->fini();
        _exit(SKIPPED);
}

static const struct plain_options *options_of(const struct plain_test *test)
{
        for (const struct plain_test *suite = tests; suite; suite = suite->next)
                if (!suite->run && strcmp(suite->suite, test->suite) == 0 && !test->options.init)
                        return &suite->options;
        return &test->options;
}

/* The child ends with exit() so that the sanitizer can still report. */
static void run(const struct plain_test *test)
{
        const struct plain_options *options = options_of(test);

        running = options;
        if (options->init)
                options->init();
        test->run();
        if (options->fini)
                options->fini();
        exit(atomic_load(&failures) ? 1 : 0);
}

static bool passes(const struct plain_test *test)
{
        int status;

        fflush(NULL);
        pid_t child = fork();
        if (child == 0)
                run(test);
        if (child < 0 || waitpid(child, &status, 0) != child)
                return false;
        if (test->options.signal)
                return WIFSIGNALED(status) && WTERMSIG(status) == test->options.signal;
        return WIFEXITED(status) && (WEXITSTATUS(status) == test->options.exit_code || WEXITSTATUS(status) == SKIPPED);
}

/* "SUITE/" and the rest of a pattern, as Criterion's --filter; NULL takes all. */
static bool is_wanted(const struct plain_test *test, const char *filter)
{
        size_t n = strlen(test->suite);

        return !filter || (strncmp(test->suite, filter, n) == 0 && filter[n] == '/');
}

int main(int argc, char **argv)
{
        const char *filter = argc == 3 && strcmp(argv[1], "--filter") == 0 ? argv[2] : NULL;
        int n = 0, failed = 0;

        for (const struct plain_test *test = tests; test; test = test->next) {
                if (!test->run || test->options.disabled || !is_wanted(test, filter))
                        continue;
                bool passed = passes(test);
                if (!passed)
                        fprintf(stderr, "FAIL %s::%s\n", test->suite, test->name);
                n++;
                failed += !passed;
        }
        printf("%d tests, %d failed\n", n, failed);
        return failed > 0;
}
