/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include "cores.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
        const char *usage;
} benchmarks[] = {
        {"floor", sl_bench_floor, "[--cpus A,B] [--json]"},
        {"rings", sl_bench_rings, "[--cpus A,B] [--json]"},
        {"noop", sl_bench_noop, "[--cpus A,B] [--rounds N] [--quick] [--json]"},
        {"small", sl_bench_small, "[--digits REPOSITORY] [--write-model REPOSITORY] [--cpus A,B] [--quick] [--json]"},
        {"model", sl_bench_model,
                "NAME [--runtime NAME] [--batch N] [--concurrency K | --rate R] [--seconds S] [--warmup S] [--shape INPUT=2x3x4] "
                "[--json]"},
        {"overload", sl_bench_overload,
                "[--clients N] [--deadline-ms D] [--times K] [--depth N] [--capacity R] [--tick-us T] [--seconds S] [--turns N] "
                "[--cpus A,B] "
                "[--json]"},
        {"turns", sl_bench_turns, "[--json]"},
};

const char *sl_bench_name(size_t i)
{
        return i < sizeof(benchmarks) / sizeof(benchmarks[0]) ? benchmarks[i].name : NULL;
}

const char *sl_bench_usage(size_t i)
{
        return i < sizeof(benchmarks) / sizeof(benchmarks[0]) ? benchmarks[i].usage : NULL;
}

static int usage(FILE *to)
{
        fprintf(to, "usage:\n");
        for (size_t i = 0; i < sizeof(benchmarks) / sizeof(benchmarks[0]); i++)
                fprintf(to, "  starling bench %s %s\n", benchmarks[i].name, benchmarks[i].usage);
        return to == stdout ? 0 : 2;
}

static void ending_signals(sigset_t *ret_set)
{
        sigemptyset(ret_set);
        sigaddset(ret_set, SIGINT);
        sigaddset(ret_set, SIGTERM);
}

/* The signals are never taken from the queue of pending ones, which therefore remembers them: no global is needed. */
bool sl_bench_interrupted(void)
{
        sigset_t pending;

        if (sigpending(&pending) < 0)
                return false;
        return sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM);
}

int sl_bench_cpus(const char *text, int ret_cpus[2])
{
        int a, b, end = 0;

        if (sscanf(text, "%d,%d%n", &a, &b, &end) != 2 || text[end] || a < 0 || b < 0 || a == b) {
                fprintf(stderr, "starling bench: --cpus wants two different CPUs, as in 0,1; got \"%s\"\n", text);
                return -EINVAL;
        }
        if (!sl_cores_allowed(a) || !sl_cores_allowed(b)) {
                fprintf(stderr, "starling bench: --cpus %d,%d: this process may not run on CPU %d\n", a, b,
                        sl_cores_allowed(a) ? b : a);
                return -EINVAL;
        }
        ret_cpus[0] = a;
        ret_cpus[1] = b;
        return 0;
}

int sl_bench_main(int argc, char **argv)
{
        if (argc < 2)
                return usage(stderr);
        if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
                return usage(stdout);
        for (size_t i = 0; i < sizeof(benchmarks) / sizeof(benchmarks[0]); i++) {
                sigset_t set, before;

                if (strcmp(argv[1], benchmarks[i].name))
                        continue;
                ending_signals(&set);
                sigprocmask(SIG_BLOCK, &set, &before);
                optind = 1;
                int code = benchmarks[i].run(argc - 1, argv + 1);

                /* Whoever was asked to end says so in the usual way: the pending signal is delivered here. */
                fflush(stdout);
                sigprocmask(SIG_SETMASK, &before, NULL);
                return code;
        }
        fprintf(stderr, "starling bench: there is no benchmark \"%s\"\n", argv[1]);
        return usage(stderr);
}

int sl_bench_options(int argc, char **argv, int cpus[2], bool *ret_json)
{
        static const struct option options[] = {{"cpus", required_argument, NULL, 'c'}, {"json", no_argument, NULL, 'j'}, {0}};
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (option == 'j')
                        *ret_json = true;
                else if (option != 'c' || sl_bench_cpus(optarg, cpus) < 0)
                        return 2;
        }
        return 0;
}
