/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of every command: one table for each, from which come what getopt reads, `starling help COMMAND`, the man pages and
 * the completions of the shells. Constants only.
 *
 * A row: id, long name, letter or 0, what follows it or NULL, one sentence. What follows is a word in capitals, or the choices with
 * "|" between them.
 */
#pragma once

#include <getopt.h>

#define SERVE_OPTIONS(X)                                                                                                           \
        X(CONFIG, "config", 0, "FILE", "YAML, see starling-config(5); every option has a default")                                 \
        X(NAME, "name", 0, "NAME", "of the socket and of the stats page [starling]")                                               \
        X(WAIT, "wait", 0, "auto|io_uring|epoll", "what the control thread waits with [auto]")                                     \
        X(OPTION, "option", 'O', "KEY=VALUE", "of models without another value of their own")                                      \
        X(ALLOCATION, "allocation", 0, "FILE", "where workers run, and in which batch sizes; or auto, as was optimized on this host, or none [auto]") \
        X(FAKE, "fake", 0, NULL, "predictions are zeros that nobody computes, all else is real: what the system itself takes")      \
        X(LOG_LEVEL, "log-level", 0, "error|warning|info|debug", "the least important that is logged [info]")                      \
        X(LOG_FORMAT, "log-format", 0, "text|json", "of the log: key=value, or an object in each line with the same keys [text]")

#define MODELS_OPTIONS(X)                                                                                                          \
        X(NAME, "name", 0, "NAME", "of the runtime, or the path of its socket [starling]")                                         \
        X(JSON, "json", 0, NULL, "an array of objects instead of text")                                                            \
        X(VERBOSE, "verbose", 0, NULL, "what each worker takes, too")

#define ADMINISTER_OPTIONS(X) X(NAME, "name", 0, "NAME", "of the runtime, or the path of its socket [starling]")

#define APPLY_OPTIONS(X)                                                                                                           \
        X(NAME, "name", 0, "NAME", "of the runtime, or the path of its socket [starling]")                                         \
        X(CONFIGURED, "configured", 0, NULL, "instead of a file: what the configuration of the runtime says, read again")

#define STATS_OPTIONS(X)                                                                                                           \
        X(NAME, "name", 0, "NAME", "of the runtime, as the argument [starling]")                                                   \
        X(JSON, "json", 0, NULL, "one object instead of text; with --watch one for each line")                                     \
        X(WATCH, "watch", 0, "[SECONDS]", "rates and percentiles of each interval of so many seconds, a line each [1]")            \
        X(COUNT, "count", 0, "N", "lines of --watch; without it until it is interrupted")                                          \
        X(MODEL, "model", 0, "NAME", "of this model alone, with --watch")

#define TRACE_OPTIONS(X)                                                                                                           \
        X(NAME, "name", 0, "NAME", "of the runtime, as the argument [starling]")                                                   \
        X(OUTPUT, "output", 'o', "FILE", "where the trace goes; - is standard output [-]")                                         \
        X(SECONDS, "seconds", 0, "N", "how long, at most [10]")                                                                    \
        X(REQUESTS, "requests", 0, "N", "how many, at most [100000]")

#define EXPORTER_OPTIONS(X)                                                                                                        \
        X(NAME, "name", 0, "NAME", "of a runtime, as an argument; may be given again [starling]")                                  \
        X(LISTEN, "listen", 0, "ADDRESS", "numeric, with a port; whoever reaches it may read [127.0.0.1:9464]")

#define POSTMORTEM_OPTIONS(X)                                                                                                      \
        X(NAME, "name", 0, "NAME", "of the runtime, as the argument [starling]")                                                   \
        X(JSON, "json", 0, NULL, "one object instead of text")                                                                     \
        X(LAST, "last", 0, "N", "of the requests that have ended, the last ones [20]")                                             \
        X(LIVE, "live", 0, NULL, "the runtime that lives, although one of that name crashed before")

#define TOP_OPTIONS(X)                                                                                                             \
        X(NAME, "name", 0, "NAME", "of the runtime, as the argument [starling]")                                                   \
        X(INTERVAL, "interval", 0, "S", "seconds between two looks, and of what is shown [1]")

#define CACHE_OPTIONS(X)                                                                                                           \
        X(CONFIG, "config", 0, "FILE", "whose cache.directory it is [$XDG_CACHE_HOME/starling, ~/.cache/starling]")                \
        X(JSON, "json", 0, NULL, "one object instead of text")

#define ALLOCATION_OPTIONS(X)                                                                                                      \
        X(COSTS, "costs", 0, "FILE", "YAML: devices, models, and what a batch of each costs on each")                              \
        X(HEADROOM, "headroom", 0, "X", "the share of the memory of each device that stays free [0]")

#define OPTIMIZE_OPTIONS(X)                                                                                                        \
        X(DEVICES, "devices", 0, "NAME*N,...", "rows, each so many times [all of the costs, once]")                                \
        X(MODELS, "models", 0, "NAME,...", "columns: the ensemble [all of the costs]")                                             \
        X(OBJECTIVE, "objective", 0, "throughput|latency|memory|devices", "what is to be best [throughput]")                       \
        X(LOAD, "load", 0, "N", "samples a second: where the latency is asked for, and what must be carried by few devices")       \
        X(HEADROOM, "headroom", 0, "X", "the share of the memory of each device that stays free [0]")                              \
        X(PIN, "pin", 0, "MODEL@DEVICE=BATCH", "the entry of a cell, 0 for no worker; may be given again")                         \
        X(FORBID, "forbid", 0, "NAME,...", "devices without workers")                                                              \
        X(SEED, "seed", 0, "N", "of random draws; the same seed finds the same allocation [1]")                                    \
        X(STARTS, "starts", 0, "N", "of the search [8]")                                                                           \
        X(BENCHES, "benches", 0, "N", "of the annealing from each start [20000]")                                                  \
        X(BATCHES, "batches", 0, "N,...", "of a folder: batch sizes whose workers are profiled [1,8,32]")                          \
        X(SECONDS, "seconds", 0, "S", "of a folder: the most that a profile takes, and five times a round of a measurement [5]")   \
        X(CONFIRM, "confirm", 0, "K", "of a folder: the best so many are measured by a runtime that serves them, 0 to 64 [3]")     \
        X(BASELINES, "baselines", 0, NULL, "with --confirm: measure what WFD, BGO and BBS find, too")                               \
        X(AGAIN, "again", 0, NULL, "of a folder: search although the cache has the answer")                                        \
        X(OUTPUT, "output", 'o', "FILE", "the allocation, for `starling allocation` and `starling apply`")                         \
        X(EXPLAIN, "explain", 0, NULL, "what binds, and what one more device would bring")

#define DOCTOR_OPTIONS(X)                                                                                                          \
        X(CONFIG, "config", 0, "FILE", "a runtime's configuration, to be held against this host")                                  \
        X(ONLY, "only", 0, "CHECK,...", "these checks; may be given again [all]")                                                  \
        X(JSON, "json", 0, NULL, "one object instead of text")                                                                     \
        X(QUICK, "quick", 0, NULL, "nothing is measured")                                                                          \
        X(ROOT, "root", 0, "DIR", "files of another host, its /proc and /sys among them; nothing is asked or measured")

#define IMPORT_TRITON_OPTIONS(X) X(WRITE, "write", 0, NULL, "into config.yaml beside it, never over one; without it on stdout")

#define FUSE_OPTIONS(X)                                                                                                            \
        X(EXPLAIN, "explain", 0, NULL, "the table: seconds of each way by occupied lanes and batch; what stays apart, and why")    \
        X(LANES, "lanes", 0, "K", "of a merged plan, 2 to 64 [the number that gains most]")                                        \
        X(BATCH, "batch", 0, "N", "the largest that is measured [the plan's largest]")                                             \
        X(SECONDS, "seconds", 0, "S", "for measuring a group, all numbers of lanes together [3]")                                  \
        X(CONFIG, "config", 0, "FILE", "whose cache.directory it is, and whose values models have [none]")                         \
        X(JSON, "json", 0, NULL, "one object instead of text, always with the tables")                                             \
        X(OPTION, "option", 'O', "KEY=VALUE", "how models are compiled")

#define INSPECT_OPTIONS(X)                                                                                                         \
        X(JSON, "json", 0, NULL, "one object instead of text")                                                                     \
        X(BACKEND, "backend", 0, "cpu|ref", "short for --option backend=NAME")                                                     \
        X(BATCH_MAX, "batch-max", 0, "N", "short for --option batch_max=N")                                                        \
        X(OPTION, "option", 'O', "KEY=VALUE", "how it is compiled")                                                                \
        X(PRINT, "print", 0, NULL, "the graph as well, node by node")

#define QUANTIZE_OPTIONS(X)                                                                                                        \
        X(CALIBRATION, "calibration", 0, "DATA",                                                                                   \
                "a file of samples, FILE.npy (or FILE.f32, bare float32), or a folder with INPUT.npy (or INPUT.f32) for each "     \
                "input; axis 0 counts the samples, the others are the input's or one of all elements")                             \
        X(SAMPLES, "samples", 0, "N", "the first ones are calibrated on, accuracy is measured on the others [half]")               \
        X(LABELS, "labels", 0, "FILE", "class numbers: .npy of int64, int32 or uint8, or bare uint8; then top-1 is measured")      \
        X(METHOD, "method", 0, "minmax|percentile|mse", "how the range of a tensor is chosen [mse]")                               \
        X(PERCENTILE, "percentile", 0, "P", "of all numbers, those that stay inside [99.99]")                                      \
        X(MAX_LOSS, "max-loss", 0, "X", "of top-1, without labels of cosine similarity; the worst products stay float32 [0.01]")   \
        X(PRECISION, "precision", 0, "int8|bf16", "of weights and activations [int8]")                                             \
        X(WEIGHTS, "weights", 0, "f16|bf16", "of constant weights alone; the precision stays fp32 unless it is given")             \
        X(OUTPUT, "output", 'o', "FILE", "the variant, as ONNX; its accuracy lies in it, for `starling inspect`")                  \
        X(OPTION, "option", 'O', "KEY=VALUE", "how it is compiled")

#define PROFILE_OPTIONS(X)                                                                                                         \
        X(NODES, "nodes", 0, NULL, "every step, the slowest first; without it only sums by operator")                              \
        X(BATCH, "batch", 0, "N", "samples of a run [1]")                                                                          \
        X(SECONDS, "seconds", 0, "S", "how long it runs [2]; of workers, the most that each combination takes [5]")                \
        X(JSON, "json", 0, NULL, "one object, of nodes always with the steps")                                                     \
        X(TRACE, "trace", 0, "FILE", "for chrome://tracing")                                                                       \
        X(DEVICES, "devices", 0, "DEVICE,...", "profile workers on these: cpu, cpu:2, a let cpu:0-1+4 [cpu]")                      \
        X(BATCHES, "batches", 0, "N,...", "profile workers of these batch sizes, powers of two [1]")                               \
        X(THREADS, "threads", 0, "N,...", "profile workers of so many threads, each on a core of its own; N..N from N to N [1]; "    \
                "with --nodes: what teams of these sizes should take")                                                             \
        X(PRECISIONS, "precisions", 0, "PRECISION,...", "profile workers in these: fp32, bf16, int8 [the model's option]")         \
        X(CORUN, "corun", 0, NULL, "pairs of workers that compute at the same time, too")                                          \
        X(BESIDE, "beside", 0, "N", "combinations of 2 to N workers at the same time, at most 16 [2 with --corun]")                \
        X(MIXED, "mixed", 0, NULL, "combinations of different batch sizes, too")                                                   \
        X(WIDTH, "width", 0, "P", "percent of the median: repeat until its 95 % interval is as narrow [5]")                        \
        X(AGAIN, "again", 0, NULL, "measure what is stored, too")                                                                  \
        X(STORE, "store", 0, "FILE", "of profiles [$XDG_DATA_HOME/starling/profiles.db, below ~/.local/share without it]")         \
        X(OUTPUT, "output", 'o', "FILE", "of export: JSON where it ends with .json, costs with .yaml, else CSV; - is standard output [-]") \
        X(OPTION, "option", 'O', "KEY=VALUE", "how it is compiled")

#define COMPILE_OPTIONS(X)                                                                                                         \
        X(OUTPUT, "output", 'o', "PLAN", "where the plan file goes")                                                               \
        X(BASE, "base", 'b', "PLAN", "of the same model, whose weights are shared")                                                \
        X(OPTION, "option", 'O', "KEY=VALUE", "how it is compiled")

#define VERSION_OPTIONS(X)                                                                                                         \
        X(HOST, "host", 0, NULL, "what it runs on, too")                                                                           \
        X(CONFIG, "config", 0, "FILE", "in whose cache.directory the figures are [$XDG_CACHE_HOME/starling, ~/.cache/starling]")   \
        X(JSON, "json", 0, NULL, "one object instead of text")

#define NO_OPTIONS(X)

/* OPTION_CONFIG and so on, beyond every letter. An option with a letter is known by that. */
enum { OPTIONS_BEGIN = 255 };

/* Rows of an enum, and of what getopt_long() takes: enum { OPTIONS = OPTIONS_BEGIN, SERVE_OPTIONS(OPTION_ID) }; */
#define OPTION_ID(id, name, letter, argument, text) OPTION_##id,
#define OPTION_GETOPT(id, name, letter, argument, text)                                                                            \
        {name, (argument) ? required_argument : no_argument, NULL, (letter) ? (letter) : OPTION_##id},

/* getopt_long() with the letters of @options, which end with a row of zeros: its id or letter; '?' a wrong one; -1 no more. */
int next_option(int argc, char **argv, const struct option *options);
