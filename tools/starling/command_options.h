/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of every command: one table for each, from which come what getopt reads, `starling help COMMAND`, the man pages and
 * the completions of the shells. Constants only.
 *
 * A row: id, long name, letter or 0, what follows it or NULL, its help. What follows is a word in capitals, or the choices with "|"
 * between them. The help begins with a verb, uses that word with its unit, and ends with "(default: X)", or "(required)".
 */
#pragma once

#include <getopt.h>

#define SERVE_OPTIONS(X)                                                                                                           \
        X(CONFIG, "config", 0, "FILE",                                                                                             \
                "read the runtime's configuration from FILE, YAML as in starling-config(5) (default: none)")                       \
        X(NAME, "name", 0, "NAME", "call the runtime NAME, and so its socket and its stats page (default: starling)")              \
        X(WAIT, "wait", 0, "auto|io_uring|epoll", "let the control thread wait with io_uring or epoll (default: auto)")            \
        X(OPTION, "option", 'O', "KEY=VALUE",                                                                                      \
                "set KEY for each model whose config.yaml does not set it; repeatable (default: as listed for each KEY)")          \
        X(ALLOCATION, "allocation", 0, "FILE",                                                                                     \
                "place workers as FILE says; auto: as `starling optimize` found for this host; none: by each model's "             \
                "configuration (default: auto)")                                                                                   \
        X(FAKE, "fake", 0, NULL, "answer zeros without computing, to measure what the runtime itself takes")                       \
        X(HISTORY, "history", 0, "FILE",                                                                                           \
                "write what is wanted of models, what is there, and the steps that follow to FILE, and on from 16 MiB to a new "   \
                "one, the old one as FILE.old (default: none)")                                                                    \
        X(LOG_LEVEL, "log-level", 0, "error|warning|info|debug", "log events of this importance and above (default: info)")        \
        X(LOG_FORMAT, "log-format", 0, "text|json",                                                                                \
                "write each event as key=value text or as a JSON object with the same keys (default: text)")

#define MODELS_OPTIONS(X)                                                                                                          \
        X(NAME, "name", 0, "NAME", "ask the runtime NAME, or the one whose socket is the path NAME (default: starling)")           \
        X(JSON, "json", 0, NULL, "print an array of objects instead of text")                                                      \
        X(VERBOSE, "verbose", 0, NULL, "print what each worker takes as well")                                                     \
        X(WHY, "why", 0, "MODEL",                                                                                                  \
                "print what is wanted of MODEL, what serves and what it waits for; of a variant or a task also why "               \
                "it is loaded and chosen, or is not (default: list all)")

#define TASKS_OPTIONS(X)                                                                                                           \
        X(NAME, "name", 0, "NAME", "ask the runtime NAME, or the one whose socket is the path NAME (default: starling)")           \
        X(JSON, "json", 0, NULL, "print an array of objects instead of text")                                                      \
        X(EXPLAIN, "explain", 0, "WISH", "print why a query of WISH would choose each variant now, or would not: "                 \
                "accuracy=0.98,least=0.9,latency_ms=5,cost=3,samples=1,closest, or some of these (default: not said)")

#define ADMINISTER_OPTIONS(X)                                                                                                      \
        X(NAME, "name", 0, "NAME", "ask the runtime NAME, or the one whose socket is the path NAME (default: starling)")

#define APPLY_OPTIONS(X)                                                                                                           \
        X(NAME, "name", 0, "NAME", "ask the runtime NAME, or the one whose socket is the path NAME (default: starling)")           \
        X(CONFIGURED, "configured", 0, NULL, "apply what the runtime's configuration says, read again, instead of a file")

#define STATS_OPTIONS(X)                                                                                                           \
        X(NAME, "name", 0, "NAME", "read the stats page of the runtime NAME, as the argument does (default: starling)")            \
        X(JSON, "json", 0, NULL, "print one object instead of text; with --watch one on each line")                                \
        X(WATCH, "watch", 0, "[SECONDS]", "print a line of rates and percentiles every SECONDS seconds (default: 1)")              \
        X(COUNT, "count", 0, "N", "stop --watch after N lines (default: at an interrupt)")                                         \
        X(MODEL, "model", 0, "NAME", "show the model NAME alone, with --watch (default: all together)")

#define TRACE_OPTIONS(X)                                                                                                           \
        X(NAME, "name", 0, "NAME", "read the stats page of the runtime NAME, as the argument does (default: starling)")            \
        X(OUTPUT, "output", 'o', "FILE", "write the trace to FILE, or with - to standard output (default: -)")                     \
        X(SECONDS, "seconds", 0, "SECONDS", "stop after SECONDS seconds (default: 10)")                                            \
        X(REQUESTS, "requests", 0, "N", "stop after N requests (default: 100000)")

#define EXPORTER_OPTIONS(X)                                                                                                        \
        X(NAME, "name", 0, "NAME", "watch the runtime NAME, as an argument does; repeatable, up to 16 names (default: starling)")  \
        X(LISTEN, "listen", 0, "ADDRESS",                                                                                          \
                "listen at ADDRESS, numeric and with a port, to all who reach it (default: 127.0.0.1:9464)")                       \
        X(HOST, "host", 0, "NAME",                                                                                                 \
                "answer to the name NAME too, beside addresses, localhost and this host's own; repeatable, up to 16 (default: "    \
                "none)")

#define POSTMORTEM_OPTIONS(X)                                                                                                      \
        X(NAME, "name", 0, "NAME", "read the stats page of the runtime NAME, as the argument does (default: starling)")            \
        X(JSON, "json", 0, NULL, "print one object instead of text")                                                               \
        X(LAST, "last", 0, "N", "show the last N of the requests that have ended (default: 20)")                                   \
        X(LIVE, "live", 0, NULL, "show the runtime that serves now, although one of its name has crashed before")

#define TOP_OPTIONS(X)                                                                                                             \
        X(NAME, "name", 0, "NAME", "read the stats page of the runtime NAME, as the argument does (default: starling)")            \
        X(INTERVAL, "interval", 0, "SECONDS", "look every SECONDS seconds, and show figures of that interval (default: 1)")

#define CACHE_OPTIONS(X)                                                                                                           \
        X(CONFIG, "config", 0, "FILE",                                                                                             \
                "use the cache.directory of the configuration FILE (default: $XDG_CACHE_HOME/starling, else ~/.cache/starling)")   \
        X(JSON, "json", 0, NULL, "print one object instead of text")

#define ALLOCATION_OPTIONS(X)                                                                                                      \
        X(COSTS, "costs", 0, "FILE",                                                                                               \
                "read devices, models and what a batch of each costs on each from FILE, YAML (default: none)")                     \
        X(HEADROOM, "headroom", 0, "X", "keep the share X of each device's memory free, up to 0.95 (default: 0)")

#define LETS_OPTIONS(X)                                                                                                            \
        X(SCHEDULER, "scheduler", 0, "starling|ideal|elastic|self_tuning|sbp_halves|sbp",                                          \
                "choose lets as starling does, or as a baseline of a paper (default: starling)")                                   \
        X(INTERFERENCE, "interference", 0, NULL, "allow for what lets of one device take from each other, where the costs say it") \
        X(WORST, "worst", 0, "own|all",                                                                                            \
                "bound what a request takes by a cycle and its own batch, or by a cycle and all of its batches (default: own)")    \
        X(LATENCY_FACTOR, "latency-factor", 0, "X", "allow for X times each batch's time, X from 1 to 10 (default: 1)")            \
        X(SIMULATE, "simulate", 0, "SECONDS",                                                                                      \
                "let requests come at random for SECONDS seconds of virtual time, and print how many are late (default: none)")    \
        X(JSON, "json", 0, NULL, "print one object instead of text")

#define OPTIMIZE_OPTIONS(X)                                                                                                        \
        X(DEVICES, "devices", 0, "NAME*N,...",                                                                                     \
                "allow N devices of the costs file called NAME; of a folder, the cores and lets NAME (default: all in the costs "  \
                "file; each core)")                                                                                                \
        X(MODELS, "models", 0, "NAME,...",                                                                                         \
                "form the ensemble of the models NAME of the costs file (default: all in the costs file)")                         \
        X(OBJECTIVE, "objective", 0, "throughput|latency|memory|devices",                                                          \
                "optimize throughput, or for the samples a second of --load latency, memory or the number of devices (default: "   \
                "throughput)")                                                                                                     \
        X(LOAD, "load", 0, "N", "carry N samples a second; required by every objective but throughput (default: none)")            \
        X(HEADROOM, "headroom", 0, "X", "keep the share X of each device's memory free, up to 0.95 (default: 0)")                  \
        X(PIN, "pin", 0, "MODEL@DEVICE=BATCH",                                                                                     \
                "fix the batch size of MODEL's worker on DEVICE to BATCH samples, 0 for no worker; repeatable (default: none)")    \
        X(FORBID, "forbid", 0, "NAME,...", "leave the devices NAME without workers (default: none)")                               \
        X(SEED, "seed", 0, "N", "draw random numbers from seed N; the same seed finds the same allocation (default: 1)")           \
        X(STARTS, "starts", 0, "N", "begin the search at N points (default: 8)")                                                   \
        X(BENCHES, "benches", 0, "N", "try N allocations when annealing from each start (default: 20000)")                         \
        X(BATCHES, "batches", 0, "N,...", "profile workers of N samples a batch; of a folder (default: 1,8,32)")                   \
        X(SECONDS, "seconds", 0, "SECONDS",                                                                                        \
                "take at most SECONDS seconds for a profile, and a fifth of that, or more, for a turn of a measurement; of a "     \
                "folder (default: 5)")                                                                                             \
        X(CONFIRM, "confirm", 0, "N",                                                                                              \
                "measure the best N allocations, up to 64, those of WFD, BGO and BBS, and what is configured, in up to 24 turns "  \
                "by a runtime that serves them; 0 measures none; of a folder (default: 3)")                                        \
        X(AGAIN, "again", 0, NULL, "search although the cache has the answer; of a folder")                                        \
        X(OUTPUT, "output", 'o', "FILE",                                                                                           \
                "write the allocation to FILE, for `starling allocation` and `starling apply`; - is standard output, all else "    \
                "then goes to standard error (default: none)")                                                                     \
        X(EXPLAIN, "explain", 0, NULL, "print what limits the answer, and what one more device would bring")                       \
        X(DATA_FOLDER, "data-folder", 0, "FOLDER",                                                                                 \
                "let links of external data lead into FOLDER, an absolute path; repeatable (default: the model's folder)")

#define DOCTOR_OPTIONS(X)                                                                                                          \
        X(CONFIG, "config", 0, "FILE", "check the runtime's configuration FILE against this host (default: none)")                 \
        X(ONLY, "only", 0, "CHECK,...", "run the checks CHECK alone; repeatable (default: all)")                                   \
        X(JSON, "json", 0, NULL, "print one object instead of text")                                                               \
        X(QUICK, "quick", 0, NULL, "measure nothing")                                                                              \
        X(ROOT, "root", 0, "DIR", "read another host's files below DIR, with its /proc and /sys, and measure nothing (default: /)")

#define IMPORT_TRITON_OPTIONS(X)                                                                                                   \
        X(WRITE, "write", 0, NULL, "write config.yaml beside each config.pbtxt, never over a file, instead of to standard output")

#define FUSE_OPTIONS(X)                                                                                                            \
        X(EXPLAIN, "explain", 0, NULL, "print the seconds of each way by occupied lanes and batch, and what stays apart and why")  \
        X(LANES, "lanes", 0, "N", "merge N models, 2 to 64, into one plan (default: the number that gains most)")                  \
        X(BATCH, "batch", 0, "N", "measure batches of up to N samples (default: the plan's largest)")                              \
        X(SECONDS, "seconds", 0, "SECONDS",                                                                                        \
                "take SECONDS seconds for measuring a group, all numbers of lanes together (default: 3)")                          \
        X(CONFIG, "config", 0, "FILE", "use the cache.directory and model_defaults of the configuration FILE (default: none)")     \
        X(JSON, "json", 0, NULL, "print one object instead of text, always with the tables")                                       \
        X(OPTION, "option", 'O', "KEY=VALUE", "set the compiler's KEY; repeatable (default: as listed for each KEY)")

#define INSPECT_OPTIONS(X)                                                                                                         \
        X(JSON, "json", 0, NULL, "print one object instead of text")                                                               \
        X(BACKEND, "backend", 0, "cpu|ref", "compile for this backend, as --option backend=NAME does (default: cpu)")              \
        X(BATCH_MAX, "batch-max", 0, "N", "compile for batches of up to N samples, as --option batch_max=N does (default: 32)")    \
        X(OPTION, "option", 'O', "KEY=VALUE", "set the compiler's KEY; repeatable (default: as listed for each KEY)")              \
        X(PRINT, "print", 0, NULL, "print the graph as well, node by node")                                                        \
        X(DATA_FOLDER, "data-folder", 0, "FOLDER",                                                                                 \
                "let links of external data lead into FOLDER, an absolute path; repeatable (default: the model's folder)")

#define QUANTIZE_OPTIONS(X)                                                                                                        \
        X(CALIBRATION, "calibration", 0, "DATA",                                                                                   \
                "read samples from DATA: FILE.npy (or FILE.f32, bare float32), or a folder with INPUT.npy (or INPUT.f32) for "     \
                "each input; axis 0 counts samples, the other axes are the input's or one of all elements (required)")             \
        X(SAMPLES, "samples", 0, "N", "calibrate on the first N samples and measure accuracy on the others (default: half)")       \
        X(LABELS, "labels", 0, "FILE",                                                                                             \
                "measure top-1 accuracy by the class numbers in FILE: .npy of int64, int32 or uint8, or bare uint8 (default: "     \
                "none)")                                                                                                           \
        X(METHOD, "method", 0, "minmax|percentile|mse",                                                                            \
                "choose the range of a tensor by its extremes, a percentile, or the least squared error (default: mse)")           \
        X(PERCENTILE, "percentile", 0, "PERCENT",                                                                                  \
                "keep PERCENT % of all numbers inside of the range, with --method percentile (default: 99.99)")                    \
        X(MAX_LOSS, "max-loss", 0, "X",                                                                                            \
                "lose at most X of top-1 accuracy, or without labels of cosine similarity, and keep the worst products in "        \
                "float32 (default: 0.01)")                                                                                         \
        X(PRECISION, "precision", 0, "int8|bf16", "convert weights and activations to int8 or bfloat16 (default: int8)")           \
        X(WEIGHTS, "weights", 0, "f16|bf16",                                                                                       \
                "store constant weights as float16 or bfloat16, and compute in fp32 unless --precision is given (default: none)")  \
        X(OUTPUT, "output", 'o', "FILE", "write the variant to FILE as ONNX, with its accuracy for `starling inspect` (required)") \
        X(OPTION, "option", 'O', "KEY=VALUE", "set the compiler's KEY; repeatable (default: as listed for each KEY)")

#define REGISTER_OPTIONS(X)                                                                                                        \
        X(TASK, "task", 0, "NAME", "call the task NAME (required)")                                                                \
        X(VALIDATION, "validation", 0, "DATA",                                                                                     \
                "read samples from DATA, as --calibration of `starling quantize` does; axes are those of the first model "         \
                "(required)")                                                                                                      \
        X(LABELS, "labels", 0, "FILE",                                                                                             \
                "measure how often the class is that of FILE: .npy of int64, int32 or uint8, or bare uint8 (default: none, how "   \
                "often the class is the reference's)")                                                                             \
        X(REFERENCE, "reference", 0, "MODEL", "take the classes of MODEL in float32 for right, without --labels (default: the first)") \
        X(PUBLISHED, "published", 0, "MODEL=SHARE",                                                                                \
                "take SHARE times the measured agreement with MODEL in float32 for the accuracy of what is made of MODEL; "  \
                "repeatable (default: none)")                                                                                      \
        X(INTO, "into", 0, "REPOSITORY", "write models and task into REPOSITORY, made if it is missing (default: .)")              \
        X(BUDGET, "budget", 0, "SECONDS", "begin nothing more after SECONDS seconds (default: 3600)")                              \
        X(KINDS, "kinds", 0, "KIND,...",                                                                                           \
                "make each KIND of every model: fp32 (always made), int8, bf16, and f16 or bf16w, float32 with weights in halves " \
                "(default: fp32,int8,bf16,f16,bf16w)")                                                                             \
        X(SAMPLES, "samples", 0, "N", "calibrate int8 on the first N samples and measure on the others (default: a quarter, 256 at most)") \
        X(MAX_LOSS, "max-loss", 0, "X", "lose at most X by int8, as `starling quantize` does (default: 0.01)")                     \
        X(SCALE, "scale", 0, "MODEL=X,...", "give MODEL its input times X, or each channel times its own; repeatable (default: none)") \
        X(OFFSET, "offset", 0, "MODEL=X,...", "give MODEL its input plus X, behind --scale; repeatable (default: none)")          \
        X(BATCHES, "batches", 0, "N,...", "profile batches of N samples, powers of two, 1 first (default: 1,2,4,8,16,32,64)")      \
        X(THREADS, "threads", 0, "N,...", "profile teams of N cores (default: 1)")                                                 \
        X(SECONDS, "seconds", 0, "SECONDS", "profile each batch for SECONDS seconds at most (default: 1)")                         \
        X(STORE, "store", 0, "FILE",                                                                                               \
                "keep profiles in FILE (default: $XDG_DATA_HOME/starling/profiles.db, else below ~/.local/share)")

#define OFFLINE_OPTIONS(X)                                                                                                         \
        X(NAME, "name", 0, "NAME", "ask the runtime NAME, or the one whose socket is the path NAME (default: starling)")           \
        X(TASK, "task", 0, NULL, "take MODEL for the name of a task, and its most accurate variant unless --needs is given")       \
        X(NEEDS, "needs", 0, "NEEDS",                                                                                              \
                "take MODEL for the name of a task, and what each range of samples needs: "                                        \
                "accuracy=0.98,least=0.9,latency_ms=5,cost=3,closest, or some of these (default: none)")                           \
        X(RULE, "rule", 0, "starling|infaas|none",                                                                                 \
                "run the job as long as the p99 of requests stays within 1.05 x; or while cores are used to 40 % at most and "     \
                "requests are "                                                                                                    \
                "no slower than before; or always, behind them (default: starling)")                                               \
        X(REPLACE, "replace", 0, NULL, "write over an OUTPUT.npy that exists, when the job is done")                               \
        X(WAIT, "wait", 0, NULL, "run the job in this process, and end with it")                                                   \
        X(JSON, "json", 0, NULL, "list an array of objects instead of text")

#define PROFILE_OPTIONS(X)                                                                                                         \
        X(NODES, "nodes", 0, NULL, "print every step, the slowest first, instead of sums by operator")                             \
        X(BATCH, "batch", 0, "N", "run batches of N samples (default: 1)")                                                         \
        X(SECONDS, "seconds", 0, "SECONDS",                                                                                        \
                "run for SECONDS seconds; of workers, take at most as many for each combination (default: 2; of workers 5)")       \
        X(JSON, "json", 0, NULL, "print one object, of nodes always with the steps")                                               \
        X(TRACE, "trace", 0, "FILE", "write a trace for chrome://tracing to FILE (default: none)")                                 \
        X(DEVICES, "devices", 0, "DEVICE,...", "profile workers on each DEVICE: cpu, cpu:2, a let cpu:0-1+4 (default: cpu)")       \
        X(BATCHES, "batches", 0, "N,...", "profile workers with batches of N samples, powers of two (default: 1)")                 \
        X(THREADS, "threads", 0, "N,...",                                                                                          \
                "profile workers of N threads, each on a core of its own; N..N is a range; with --nodes, predict teams of these "  \
                "sizes (default: 1)")                                                                                              \
        X(PRECISIONS, "precisions", 0, "PRECISION,...",                                                                            \
                "profile workers in each PRECISION: fp32, bf16, int8 (default: the model's option)")                               \
        X(CORUN, "corun", 0, NULL, "profile pairs of workers that compute at the same time as well")                               \
        X(BESIDE, "beside", 0, "N",                                                                                                \
                "profile combinations of 2 to N workers, up to 32, at the same time (default: 1; with --corun 2)")                 \
        X(ELASTIC, "elastic", 0, NULL,                                                                                             \
                "find which workers of batches of 1 to 32 compute best beside each other at loads of 4 to 32 samples, and write "  \
                "batching_rows of e_ebird for config.yaml; after three turns SECONDS for each load (default: 5)")                  \
        X(MIXED, "mixed", 0, NULL, "profile combinations of different batch sizes as well")                                        \
        X(WIDTH, "width", 0, "PERCENT", "repeat until the 95 % interval of the median is at most PERCENT % of it (default: 5)")    \
        X(AGAIN, "again", 0, NULL, "measure what is stored as well")                                                               \
        X(DISTURBED, "disturbed", 0, NULL, "measure again what is stored with a wider interval than was asked for")                \
        X(STORE, "store", 0, "FILE",                                                                                               \
                "keep profiles in FILE (default: $XDG_DATA_HOME/starling/profiles.db, else below ~/.local/share)")                 \
        X(OUTPUT, "output", 'o', "FILE",                                                                                           \
                "write what export prints to FILE, JSON if it ends with .json, costs with .yaml, else CSV, or what --elastic "     \
                "finds; - is standard output (default: -)")                                                                        \
        X(OPTION, "option", 'O', "KEY=VALUE", "set the compiler's KEY; repeatable (default: as listed for each KEY)")              \
        X(DATA_FOLDER, "data-folder", 0, "FOLDER",                                                                                 \
                "let links of external data lead into FOLDER, an absolute path; repeatable (default: the model's folder)")

#define COMPILE_OPTIONS(X)                                                                                                         \
        X(OUTPUT, "output", 'o', "PLAN", "write the plan file to PLAN (required)")                                                 \
        X(BASE, "base", 'b', "PLAN", "share the weights of PLAN, a plan of the same model (default: none)")                        \
        X(OPTION, "option", 'O', "KEY=VALUE", "set the compiler's KEY; repeatable (default: as listed for each KEY)")              \
        X(DATA_FOLDER, "data-folder", 0, "FOLDER",                                                                                 \
                "let links of external data lead into FOLDER, an absolute path; repeatable (default: the model's folder)")

#define VERSION_OPTIONS(X)                                                                                                         \
        X(HOST, "host", 0, NULL, "print what it runs on as well")                                                                  \
        X(CONFIG, "config", 0, "FILE",                                                                                             \
                "take the host's figures from the cache.directory of the configuration FILE (default: $XDG_CACHE_HOME/starling, "  \
                "else ~/.cache/starling)")                                                                                         \
        X(JSON, "json", 0, NULL, "print one object instead of text")

#define NO_OPTIONS(X)

/* OPTION_CONFIG and so on, beyond every letter. An option with a letter is known by that. */
enum { OPTIONS_BEGIN = 255 };

/* Rows of an enum, and of what getopt_long() takes: enum { OPTIONS = OPTIONS_BEGIN, SERVE_OPTIONS(OPTION_ID) }; */
#define OPTION_ID(id, name, letter, argument, text) OPTION_##id,
#define OPTION_GETOPT(id, name, letter, argument, text)                                                                            \
        {name, (argument) ? required_argument : no_argument, NULL, (letter) ? (letter) : OPTION_##id},

/* getopt_long() with the letters of @options, which end with a row of zeros: its id or letter; '?' a wrong one; -1 no more. */
int next_option(int argc, char **argv, const struct option *options);
