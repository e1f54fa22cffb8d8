/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of every benchmark: one table for each, from which come what getopt reads, `starling bench NAME --help`, the man
 * pages and the completions of the shells. Constants only.
 *
 * A row: id, long name, what follows it or NULL, one sentence. What follows is a word in capitals, or the choices with "|" between.
 */
#pragma once

#include <getopt.h>

#define JSON_OPTION(X) X(JSON, "json", NULL, "one object instead of a table")
#define CPUS_OPTION(X)                                                                                                             \
        X(CPUS, "cpus", "A,B", "where the client and the other side are bound [the first two that this process may use]")

#define TURNS_OPTIONS(X) JSON_OPTION(X)

#define FLOOR_OPTIONS(X)                                                                                                           \
        CPUS_OPTION(X)                                                                                                             \
        JSON_OPTION(X)

#define NOOP_OPTIONS(X)                                                                                                            \
        CPUS_OPTION(X)                                                                                                             \
        X(ROUNDS, "rounds", "N", "round trips of a request that asks for nothing [1000000]")                                       \
        X(QUICK, "quick", NULL, "little of everything, to see that it works")                                                      \
        JSON_OPTION(X)

#define SMALL_OPTIONS(X)                                                                                                           \
        X(DIGITS, "digits", "REPOSITORY", "with the ensemble of five digits networks, whose folder this is")                       \
        X(WRITE_MODEL, "write-model", "REPOSITORY", "writes the perceptron there, and does nothing else")                          \
        CPUS_OPTION(X)                                                                                                             \
        X(QUICK, "quick", NULL, "little of everything, to see that it works")                                                      \
        JSON_OPTION(X)

#define MODEL_OPTIONS(X)                                                                                                           \
        X(NAME, "name", "NAME", "of the runtime, or the path of its socket [starling]")                                            \
        X(RUNTIME, "runtime", "NAME", "the same as --name")                                                                        \
        X(BATCH, "batch", "N", "samples of a request [1]")                                                                         \
        X(CONCURRENCY, "concurrency", "K", "requests in flight: always in a closed loop, at most in an open one [1, 256]")         \
        X(RATE, "rate", "R", "requests due per second, at Poisson times; without it the loop is closed")                           \
        X(SECONDS, "seconds", "S", "that are measured [5]")                                                                        \
        X(WARM_UP, "warmup", "S", "before them [1]")                                                                               \
        X(SHAPE, "shape", "INPUT=2x3x4", "of an input that is open beside the batch; may be given again")                          \
        JSON_OPTION(X)

#define OVERLOAD_OPTIONS(X)                                                                                                        \
        X(CLIENTS, "clients", "N", "processes that ask [20]")                                                                      \
        X(DEADLINE, "deadline-ms", "D", "of a request, from when it is due [20]")                                                  \
        X(TIMES, "times", "K", "the capacity that is offered in the second load [10]")                                             \
        X(DEPTH, "depth", "N", "of a queue pair, a power of two [64]")                                                             \
        X(CAPACITY, "capacity", "R", "requests per second, instead of measuring it")                                               \
        X(TICK, "tick-us", "T", "a client wakes so often; 0: for each of its requests [0]")                                        \
        X(SECONDS, "seconds", "S", "of each load [4]")                                                                             \
        X(TURNS, "turns", "N", "of both loads [3]")                                                                                \
        X(SPIN, "spin", "N", "clients that never sleep in the second load, whatever the runtime advises [0]")                      \
        CPUS_OPTION(X)                                                                                                             \
        JSON_OPTION(X)

#define LOAD_OPTIONS(X)                                                                                                            \
        X(NAME, "name", "NAME", "of the runtime that is asked, or the path of its socket [starling]")                              \
        X(RUNTIME, "runtime", "NAME", "the same as --name")                                                                        \
        X(SERVE, "serve", "REPOSITORY", "a runtime of its own, as it starts by default, with the models of this repository")       \
        X(RATE, "rate", "R,...", "requests due per second, an open loop; each rate is a point. Without it the loop is closed")     \
        X(IN_FLIGHT, "in-flight", "N,...", "closed loop: kept in flight, each a point [1]; open loop: at most [256 a thread]")     \
        X(ARRIVALS, "arrivals", "poisson|constant|bursts|diurnal|spikes", "when requests of an open loop are due [poisson]")       \
        X(BURST, "burst", "N", "requests of a burst [16]")                                                                         \
        X(PERIOD, "period", "S", "of diurnal and spikes [10]")                                                                     \
        X(SWING, "swing", "X", "diurnal: the rate goes from 1 - X to 1 + X times its mean [0.8]")                                  \
        X(SPIKE_TIMES, "spike-times", "X", "spikes: how many times the usual rate [10]")                                           \
        X(SPIKE, "spike", "S", "spikes: how long [0.5]")                                                                           \
        X(ZIPF, "zipf", "X", "the k-th model is asked for as often as 1/k^X says, instead of weights")                             \
        X(TRACE, "trace", "FILE", "is replayed; it names the models")                                                              \
        X(SPEED, "speed", "X", "of the trace: 2 takes half its time [1]")                                                          \
        X(SAVE_TRACE, "save-trace", "FILE", "writes what the first repeat asks for as a trace, and does nothing else")             \
        X(BATCH, "batch", "N", "samples of a request [1]")                                                                         \
        X(SHAPE, "shape", "INPUT=2x3x4", "of an input that is open beside the batch; may be given again")                          \
        X(THREADS, "threads", "N", "client threads, each with a connection and a queue pair [1]")                                  \
        X(CPUS, "cpus", "A,B,...", "that the threads are bound to, in turn; a runtime of its own gets the others [none]")          \
        X(SPIN, "spin", NULL, "threads never sleep: each wants a core that nobody else uses")                                      \
        X(SECONDS, "seconds", "S", "that a repeat is measured for [5]")                                                            \
        X(WARM_UP, "warmup", "S", "before each repeat [1]")                                                                        \
        X(REPEATS, "repeats", "N", "of every point; intervals want at least 2 [5, with --scenario 1]")                             \
        X(SEED, "seed", "N", "of arrivals and mix: the same seed asks for the same [1]")                                           \
        X(OBJECTIVE, "objective-ms", "MS", "what a latency should not exceed; violations are counted")                             \
        X(PERCENTILE, "percentile", "P", "of the latencies that is to keep the objective [99]")                                    \
        X(DEADLINE, "deadline-ms", "MS", "after a request was due; what is late is refused or ends then")                          \
        X(SEARCH, "search", NULL, "the highest rate at which the percentile keeps the objective, by bisection")                    \
        X(SCENARIO, "scenario", "single-stream|multi-stream|server|offline", "one of MLPerf's, with its rules")                    \
        X(OUTPUT, "output", "FILE", "the result as JSON, beside the table")                                                        \
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
