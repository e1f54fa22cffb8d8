/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include "base/clock.h"
#include "base/exit_status.h"
#include "base/nearest.h"
#include "bench_options.h"
#include "cores.h"
#include "starling.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW(id, name, argument, text) {name, argument, text},
#define BENCH_OPTIONS(bench, rows)    static const struct sl_bench_option bench##_options[] = {rows(ROW){NULL, NULL, NULL}}

BENCH_OPTIONS(floor, FLOOR_OPTIONS);
BENCH_OPTIONS(rings, FLOOR_OPTIONS);
BENCH_OPTIONS(core, FLOOR_OPTIONS);
BENCH_OPTIONS(bandwidth, FLOOR_OPTIONS);
BENCH_OPTIONS(noop, NOOP_OPTIONS);
BENCH_OPTIONS(small, SMALL_OPTIONS);
BENCH_OPTIONS(model, MODEL_OPTIONS);
BENCH_OPTIONS(turns, TURNS_OPTIONS);
BENCH_OPTIONS(overload, OVERLOAD_OPTIONS);
BENCH_OPTIONS(query, QUERY_OPTIONS);
BENCH_OPTIONS(load, LOAD_OPTIONS);
BENCH_OPTIONS(compare, COMPARE_OPTIONS);

static const char floor_text[] = "Two processes write one cache line in turn. No message between the two CPUs can be faster.";

static const char rings_text[] = "Measures round trips and throughput of four kinds of ring between two processes.";

static const char core_text[] = "Measures on A the figures of a core by which algorithms are guessed, beside what the processor "
                                "can do at most. `starling version --host` prints those that the runtime works with.";

static const char bandwidth_text[] =
        "Times kernels that wait for their weights, which are products of few rows and recurrences, on A and "
        "by a team on A and B. Each is a share of a read of the same memory, in turns with it.";

static const char noop_text[] = "Starts a runtime of its own and measures requests that no model sees: the path itself, beside a "
                                "bare ring of the same run.";

static const char small_text[] =
        "Starts a runtime of its own and measures requests whose networks take microseconds, beside no-ops of the same run.";

static const char model_text[] =
        "Puts a load on one model of a runtime that runs already, and says what the runtime took beside the networks. "
        "`starling bench load` does the same with repeats, intervals and a verdict.";

static const char turns_text[] = "Starts a runtime of its own and measures how long others wait for a request that is long.";

static const char overload_text[] =
        "Starts a runtime of its own and many clients with deadlines, which ask for more than it can do.";

static const char query_text[] =
        "Sends queries with wishes to a task of a runtime that runs already, in an open loop, and says of each wish what "
        "became of its requests. A wish is written as for `starling tasks --explain`. All --ways ask for the same at the same "
        "times: choice is the choice of each query, accurate and cheapest are the one variant that is that, and any other name "
        "is that variant. A rate of several numbers is a load that goes up and down.\n"
        "\n"
        "Right is what comes in time and as accurate as wished, degraded what comes in time and at least as accurate as "
        "`least`, poor what comes in time and is less accurate. Core-seconds are what all workers of the runtime computed "
        "meanwhile.\n"
        "\n"
        "With --concurrency the requests are those of a closed loop, so that what a query adds to a request by name shows. "
        "With --choice no runtime is asked: a client's choice is timed among variants that all suit, whose page is rewritten every "
        "millisecond, beside one that compares each with each.\n"
        "\n"
        "    starling bench query read-digits --wish accuracy=0.98,latency_ms=5 --wish accuracy=0.99,least=0.9,latency_ms=2 "
        "\\\n"
        "        --rate 500,2000,500 --seconds 10";

static const char load_text[] =
        "Asks a runtime for what a load says, closed or open, from any number of threads, and says how long the answers take. A "
        "model is "
        "given as NAME, or NAME:WEIGHT where several are mixed; @noop is a request that no model sees.\n"
        "\n"
        "A latency counts from when a request was due, not from when it was sent: what waits because the runtime, or this process, "
        "is "
        "late waits in the figures, too. A run in which the generator itself was late, or the load was not what it was asked to "
        "be, is "
        "called not valid, with the reason, and the exit status is 1.\n"
        "\n"
        "    starling bench load digits --in-flight 1,8,64\n"
        "    starling bench load digits --rate 2000 --batch 4 --objective-ms 20 --output result.json\n"
        "    starling bench load resnet50:3 bert-base:1 --rate 20 --arrivals bursts\n"
        "    starling bench load digits --search --objective-ms 10 --percentile 99\n"
        "    starling bench load digits --scenario server --rate 500 --objective-ms 15 --seconds 600\n"
        "    starling bench load --serve client/examples/digits/models digits --threads 2 --in-flight 16\n"
        "\n"
        "Results are described by perf/results.schema.json; perf/report/report.py makes a page with plots of one or several.";

static const char compare_text[] =
        "Compares two results of `starling bench load`, point by point: ratios B over A with 95 % intervals, from the repeats of "
        "each. "
        "A difference whose interval holds 1 is called noise. What speaks against comparing the two at all is said first: another "
        "machine, a run that is not valid, a floor that moved.";

static const struct benchmark {
        struct sl_bench_description description;
        int (*run)(int argc, char **argv);
} benchmarks[] = {
#define BENCHMARK(bench, arguments, summary)                                                                                       \
        {                                                                                                                          \
                {#bench, arguments, summary, bench##_text, bench##_options}, sl_bench_##bench                                      \
        }
        BENCHMARK(floor, "[OPTIONS]", "pass one cache line from core to core and back"),
        BENCHMARK(rings, "[OPTIONS]", "compare four kinds of ring between two processes"),
        BENCHMARK(core, "[OPTIONS]", "measure what a core reaches, beside what it could"),
        BENCHMARK(bandwidth, "[OPTIONS]", "time kernels that wait for their weights, beside a read of the same memory"),
        BENCHMARK(noop, "[OPTIONS]", "time the path of a request that asks for nothing"),
        BENCHMARK(small, "[OPTIONS]", "time requests whose networks take microseconds"),
        BENCHMARK(model, "[OPTIONS] MODEL", "put a load on one model of a runtime that runs already"),
        BENCHMARK(turns, "[OPTIONS]", "measure how long others wait for a long request"),
        BENCHMARK(overload, "[OPTIONS]", "offer a runtime more than it can do, from many clients with deadlines"),
        BENCHMARK(query, "[OPTIONS] TASK", "ask a task with wishes, beside the same requests to one variant"),
        BENCHMARK(load, "[OPTIONS] MODEL[:WEIGHT]...", "put any load on any models, with intervals and a verdict"),
        BENCHMARK(compare, "[OPTIONS] A.json B.json", "tell differences between two results from noise"),
#undef BENCHMARK
};

#define N_BENCHMARKS (sizeof(benchmarks) / sizeof(benchmarks[0]))

const struct sl_bench_description *sl_bench_describe(size_t i)
{
        return i < N_BENCHMARKS ? &benchmarks[i].description : NULL;
}

const struct sl_bench_description *sl_bench_describe_named(const char *name)
{
        for (size_t i = 0; i < N_BENCHMARKS; i++)
                if (strcmp(name, benchmarks[i].description.name) == 0)
                        return &benchmarks[i].description;
        return NULL;
}

static const char *name_at(size_t i)
{
        return i < N_BENCHMARKS ? benchmarks[i].description.name : NULL;
}

static int complain_unknown(const char *word)
{
        const char *nearest = sl_nearest(word, name_at);

        fprintf(stderr, "starling bench: no benchmark \"%s\"%s%s%s `starling bench` lists all\n", word,
                nearest ? ", did you mean \"" : ";", nearest ? nearest : "", nearest ? "\"?" : "");
        return 2;
}

static int usage(FILE *to)
{
        fprintf(to, "usage: starling bench BENCHMARK [OPTIONS]\n\n");
        for (size_t i = 0; i < N_BENCHMARKS; i++)
                fprintf(to, "  %-10s %s\n", benchmarks[i].description.name, benchmarks[i].description.summary);
        fprintf(to, "\n`starling bench BENCHMARK --help` says more.\n");
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
        char title[64];

        if (argc < 2)
                return usage(stderr);
        if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
                return usage(stdout);
        for (size_t i = 0; i < N_BENCHMARKS; i++) {
                sigset_t set, before;

                if (strcmp(argv[1], benchmarks[i].description.name))
                        continue;
                ending_signals(&set);
                sigprocmask(SIG_BLOCK, &set, &before);
                optind = 1;
                snprintf(title, sizeof(title), "starling bench %s", argv[1]);
                argv[1] = title; /* getopt's own messages begin with it */
                int code = benchmarks[i].run(argc - 1, argv + 1);

                argv[1] = (char *)benchmarks[i].description.name;
                if (code == 2)
                        fprintf(stderr, "`starling bench %s --help` says more.\n", argv[1]);
                /* Whoever was asked to end says so in the usual way: the pending signal is delivered here. */
                fflush(stdout);
                sigprocmask(SIG_SETMASK, &before, NULL);
                return code;
        }
        return complain_unknown(argv[1]);
}

int sl_bench_reach(const char *benchmark, const char *name)
{
        const struct starling_options options = {
                .runtime = name, .role = STARLING_ROLE_READER, .label = "bench", .timeout_ns = SL_NS_PER_SECOND};
        struct starling_error error = {""};
        struct starling_client *client;
        int r = starling_connect(&options, &client, &error);

        if (r == 0)
                starling_close(client);
        else
                fprintf(stderr, "starling bench %s: %s\n", benchmark, error.text[0] ? error.text : starling_strerror(r));
        return sl_exit_status_of(r);
}

int sl_bench_number(const char *benchmark, const char *option, const char *text, double least, double most, double *ret_value)
{
        char *end;

        *ret_value = strtod(text, &end);
        if (end != text && !*end && *ret_value >= least && *ret_value <= most)
                return 0;
        fprintf(stderr, "starling bench %s: --%s wants %.10g to %.10g, got \"%s\"\n", benchmark, option, least, most, text);
        return -EINVAL;
}

SL_BENCH_OPTIONS(FLOOR_OPTIONS);

int sl_bench_options(int argc, char **argv, int ret_cpus[2], bool *ret_json)
{
        int option;

        while ((option = getopt_long(argc, argv, "", ret_cpus ? bench_options : &bench_options[1], NULL)) != -1) {
                if (option == OPTION_JSON)
                        *ret_json = true;
                else if (option != OPTION_CPUS || sl_bench_cpus(optarg, ret_cpus) < 0)
                        return 2;
        }
        return 0;
}
