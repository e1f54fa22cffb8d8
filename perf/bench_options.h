/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of every benchmark: one table for each, from which come what getopt reads, `starling bench NAME --help`, the man
 * pages and the completions of the shells. Constants only.
 *
 * A row: id, long name, what follows it or NULL, its help, as of a row in tools/starling/command_options.h.
 */
#pragma once

#include <getopt.h>

#define JSON_OPTION(X) X(JSON, "json", NULL, "print one object instead of a table")
#define CPUS_OPTION(X)                                                                                                             \
        X(CPUS, "cpus", "A,B", "run the client on CPU A and the other side on CPU B (default: the first two of this process)")

#define TURNS_OPTIONS(X) JSON_OPTION(X)

#define FLOOR_OPTIONS(X)                                                                                                           \
        CPUS_OPTION(X)                                                                                                             \
        JSON_OPTION(X)

#define NOOP_OPTIONS(X)                                                                                                            \
        CPUS_OPTION(X)                                                                                                             \
        X(ROUNDS, "rounds", "N", "send N requests that ask for nothing (default: 1000000)")                                        \
        X(QUICK, "quick", NULL, "measure little of everything, to see that it works")                                              \
        JSON_OPTION(X)

#define SMALL_OPTIONS(X)                                                                                                           \
        X(DIGITS, "digits", "REPOSITORY", "measure the ensemble of five digits networks in REPOSITORY as well (default: none)")    \
        X(WRITE_MODEL, "write-model", "REPOSITORY", "write the perceptron into REPOSITORY and do nothing else (default: none)")    \
        CPUS_OPTION(X)                                                                                                             \
        X(QUICK, "quick", NULL, "measure little of everything, to see that it works")                                              \
        JSON_OPTION(X)

#define MODEL_OPTIONS(X)                                                                                                           \
        X(NAME, "name", "NAME", "ask the runtime NAME, or the one whose socket is the path NAME (default: starling)")              \
        X(RUNTIME, "runtime", "NAME", "ask the runtime NAME, as --name does (default: starling)")                                  \
        X(BATCH, "batch", "N", "send N samples in each request (default: 1)")                                                      \
        X(CONCURRENCY, "concurrency", "N", "keep N requests in flight; with --rate, at most N (default: 1; with --rate 256)")      \
        X(RATE, "rate", "N", "send N requests a second at Poisson times (default: none, a closed loop)")                           \
        X(SECONDS, "seconds", "SECONDS", "measure for SECONDS seconds (default: 5)")                                               \
        X(WARM_UP, "warmup", "SECONDS", "warm up for SECONDS seconds (default: 1)")                                                \
        X(SHAPE, "shape", "INPUT=2x3x4",                                                                                           \
                "give INPUT, open beside the batch, this shape of one sample; repeatable (default: none)")                         \
        JSON_OPTION(X)

#define OVERLOAD_OPTIONS(X)                                                                                                        \
        X(CLIENTS, "clients", "N", "start N client processes (default: 20)")                                                       \
        X(DEADLINE, "deadline-ms", "MS", "give each request MS milliseconds from when it is due (default: 20)")                    \
        X(TIMES, "times", "X", "offer X times the capacity in the second load (default: 10)")                                      \
        X(DEPTH, "depth", "N", "make queue pairs of N entries, a power of two (default: 64)")                                      \
        X(CAPACITY, "capacity", "N", "take N requests a second as the capacity (default: measured)")                               \
        X(TICK, "tick-us", "US", "wake each client every US microseconds, 0 for each of its requests (default: 0)")                \
        X(SECONDS, "seconds", "SECONDS", "measure each load for SECONDS seconds (default: 4)")                                     \
        X(TURNS, "turns", "N", "measure both loads N times (default: 3)")                                                          \
        X(SPIN, "spin", "N", "keep N clients from sleeping in the second load, against the runtime's advice (default: 0)")         \
        CPUS_OPTION(X)                                                                                                             \
        JSON_OPTION(X)

#define QUERY_OPTIONS(X)                                                                                                           \
        X(NAME, "name", "NAME", "ask the runtime NAME, or the one whose socket is the path NAME (default: starling)")              \
        X(RUNTIME, "runtime", "NAME", "ask the runtime NAME, as --name does (default: starling)")                                  \
        X(WISH, "wish", "WISH",                                                                                                    \
                "give a share of the requests this wish: accuracy=X,least=X,latency_ms=MS,cost=X,samples=N,closest; repeatable "   \
                "(default: the most accurate)")                                                                                    \
        X(RATE, "rate", "N,...", "send N requests a second at Poisson times; each N is a step of the load (default: 100)")         \
        X(CONCURRENCY, "concurrency", "N",                                                                                         \
                "ask in a closed loop, N requests in flight, by the first wish (default: none, --rate)")                           \
        X(CHOICE, "choice", "N", "time a choice among N variants by itself, with no runtime and no task (default: none)")          \
        X(SECONDS, "seconds", "SECONDS", "let each step, loop or turn of --choice last SECONDS seconds (default: 5)")              \
        X(WAYS, "ways", "WAY,...",                                                                                                 \
                "ask in these ways, in turns: choice, accurate, cheapest, or a variant (default: choice,accurate,cheapest)")       \
        X(TURNS, "turns", "N", "ask in each way N times (default: 3)")                                                             \
        X(IN_FLIGHT, "in-flight", "N", "keep at most N requests in flight (default: 256)")                                         \
        X(DEADLINE, "deadlines", NULL, "make the latency of a wish the deadline of its requests, too")                             \
        X(SEED, "seed", "N", "draw times and wishes from seed N; the same seed asks for the same (default: 1)")                    \
        JSON_OPTION(X)

#define LOAD_OPTIONS(X)                                                                                                            \
        X(NAME, "name", "NAME", "ask the runtime NAME, or the one whose socket is the path NAME (default: starling)")              \
        X(RUNTIME, "runtime", "NAME", "ask the runtime NAME, as --name does (default: starling)")                                  \
        X(SERVE, "serve", "REPOSITORY", "start a runtime with default settings and the models of REPOSITORY (default: none)")      \
        X(RATE, "rate", "N,...", "send N requests a second in an open loop; each N is a point (default: none, a closed loop)")     \
        X(IN_FLIGHT, "in-flight", "N,...",                                                                                         \
                "keep N requests in flight, each N a point; in an open loop, at most N (default: 1; open loop: 256 a thread)")     \
        X(ARRIVALS, "arrivals", "poisson|constant|bursts|diurnal|spikes",                                                          \
                "send the requests of an open loop at these times (default: poisson)")                                             \
        X(BURST, "burst", "N", "send bursts of N requests (default: 16)")                                                          \
        X(PERIOD, "period", "SECONDS", "repeat diurnal and spikes every SECONDS seconds (default: 10)")                            \
        X(SWING, "swing", "X", "swing the rate of diurnal from 1 - X to 1 + X times its mean (default: 0.8)")                      \
        X(SPIKE_TIMES, "spike-times", "X", "raise the rate of spikes to X times the usual one (default: 10)")                      \
        X(SPIKE, "spike", "SECONDS", "let each of spikes last SECONDS seconds (default: 0.5)")                                     \
        X(ZIPF, "zipf", "X", "ask for the k-th model in proportion to 1/k^X (default: none, the models' weights)")                 \
        X(TRACE, "trace", "FILE", "replay the trace FILE, which names the models (default: none)")                                 \
        X(SPEED, "speed", "X", "replay the trace X times as fast (default: 1)")                                                    \
        X(SAVE_TRACE, "save-trace", "FILE",                                                                                        \
                "write what the first repeat would ask for to FILE as a trace, and send nothing (default: none)")                  \
        X(BATCH, "batch", "N", "send N samples in each request (default: 1; multi-stream 8; offline 32)")                          \
        X(SHAPE, "shape", "INPUT=2x3x4",                                                                                           \
                "give INPUT, open beside the batch, this shape of one sample; repeatable (default: none)")                         \
        X(THREADS, "threads", "N", "start N client threads, each with a connection and a queue pair (default: 1)")                 \
        X(CPUS, "cpus", "A,B,...",                                                                                                 \
                "bind the threads to CPUs A, B, ... in turn, and a runtime of --serve to the others (default: none)")              \
        X(SPIN, "spin", NULL, "keep the threads from sleeping; each wants a core that nothing else uses")                          \
        X(SECONDS, "seconds", "SECONDS", "measure each repeat for SECONDS seconds (default: 5)")                                   \
        X(WARM_UP, "warmup", "SECONDS", "warm up for SECONDS seconds before each repeat (default: 1)")                             \
        X(REPEATS, "repeats", "N", "repeat every point N times; intervals want at least 2 (default: 5; with --scenario 1)")        \
        X(SEED, "seed", "N", "draw arrivals and mix from seed N; the same seed asks for the same (default: 1)")                    \
        X(OBJECTIVE, "objective-ms", "MS", "count latencies above MS milliseconds as violations (default: none)")                  \
        X(PERCENTILE, "percentile", "PERCENT",                                                                                     \
                "hold this percentile of latencies, PERCENT %, against the objective (default: 99)")                               \
        X(DEADLINE, "deadline-ms", "MS",                                                                                           \
                "give each request MS milliseconds from when it is due, after which it is refused or ends (default: none)")        \
        X(SEARCH, "search", NULL, "find by bisection the highest rate at which the percentile keeps the objective")                \
        X(SCENARIO, "scenario", "single-stream|multi-stream|server|offline",                                                       \
                "follow the rules of a scenario of MLPerf (default: none)")                                                        \
        X(OUTPUT, "output", "FILE",                                                                                                \
                "write the result to FILE as JSON, beside the table; - is standard output, the table then goes to standard error " \
                "(default: none)")                                                                                                 \
        JSON_OPTION(X)

#define COMPARE_OPTIONS(X) JSON_OPTION(X)

/* OPTION_CPUS and so on; enum { OPTIONS = SL_BENCH_OPTIONS_BEGIN, NOOP_OPTIONS(SL_BENCH_OPTION_ID) }; */
#define SL_BENCH_OPTIONS_BEGIN                           255
#define SL_BENCH_OPTION_ID(id, name, argument, text)     OPTION_##id,
#define SL_BENCH_OPTION_GETOPT(id, name, argument, text) {name, (argument) ? required_argument : no_argument, NULL, OPTION_##id},

/* The table that getopt_long() takes, and the ids of its rows, in a file of one benchmark. */
#define SL_BENCH_OPTIONS(rows)                                                                                                     \
        enum { OPTIONS = SL_BENCH_OPTIONS_BEGIN, rows(SL_BENCH_OPTION_ID) };                                                       \
        static const struct option bench_options[] = {rows(SL_BENCH_OPTION_GETOPT){0}}
