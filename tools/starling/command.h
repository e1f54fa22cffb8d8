/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of `starling`. Each file runs one command (or a family of them); main.c finds it by its name.
 *
 * Exit status: STATUS_OK and its neighbours below; errors are one line on stderr. Threads: one, but in `serve`.
 */
#pragma once

#include <stdbool.h>

enum status {
        STATUS_OK = 0,
        STATUS_FAILED = 1,  /* the line on stderr says why */
        STATUS_USAGE = 2,   /* wrong options or arguments, or a wrong configuration file */
        STATUS_NOBODY = 3,  /* no runtime of that name is there */
        STATUS_REFUSED = 4, /* the runtime is there, and this user may not do that */

        /* The worst that `doctor` has found. */
        STATUS_COULD_BE_BETTER = 5,
        STATUS_WRONG = 6,
};

/* name, function, arguments, summary; in the order of the help */
#define COMMANDS(X)                                                                                                                \
        X("serve", command_serve, "[OPTIONS] [MODEL_REPOSITORY...]", "run a runtime that serves the models of the repositories")   \
        X("models", command_models, "[--name NAME] [--json] [--verbose | --why MODEL]", "list what a runtime serves, or why not")  \
        X("tasks", command_tasks, "[--name NAME] [--json] [--explain WISH] [TASK]",                                                \
                "list tasks, their variants, and how each stands")                                                                 \
        X("load", command_load, "[--name NAME] MODEL", "load a model of the repository, or an unloaded one again")                 \
        X("unload", command_unload, "[--name NAME] MODEL", "stop serving a model; requests in flight are finished")                \
        X("reload", command_reload, "[--name NAME] MODEL", "put the newest version of a model in the place of the served one")     \
        X("apply", command_apply, "[--name NAME] ALLOCATION.yaml | --configured",                                                  \
                "move the workers of models to where an allocation has them, while they serve")                                    \
        X("stats", command_stats, "[--json] [--watch [SECONDS]] [NAME]", "show what a runtime counts, also after its crash")       \
        X("trace", command_trace, "[-o FILE] [--seconds SECONDS] [--requests N] [NAME]",                                           \
                "write what a runtime does with the requests that it samples, for Perfetto or Chrome")                             \
        X("top", command_top, "[--interval SECONDS] [NAME]", "watch a runtime on the terminal: models, workers, queues, clients")  \
        X("postmortem", command_postmortem, "[--json] [--last N] [--live] [NAME|FILE]",                                            \
                "show what was in flight when a runtime crashed")                                                                  \
        X("exporter", command_exporter, "[--listen ADDRESS] [NAME...]", "answer Prometheus with the metrics of runtimes")          \
        X("doctor", command_doctor, "[OPTIONS]", "check this host, and a configuration against it, and say what to change")        \
        X("cache", command_cache, "list|clear [--config FILE] [--json]", "list or remove the compiled plans that are kept")        \
        X("allocation", command_allocation, "show|check FILE [--costs FILE]", "show where models run, or check that they can")     \
        X("lets", command_lets, "[OPTIONS] COSTS.yaml RATES.yaml",                                                                 \
                "place models on parts of devices, by their rates and objectives")                                                 \
        X("optimize", command_optimize, "[OPTIONS] FOLDER|COSTS.yaml",                                                             \
                "find where the models of an ensemble run best: of a repository's folder, measured, or from costs")                \
        X("import-triton", command_import_triton, "DIR [--write]",                                                                 \
                "translate Triton's config.pbtxt into config.yaml, of a model folder or a repository")                             \
        X("fuse", command_fuse, "[OPTIONS] FOLDER|MODEL.onnx...",                                                                  \
                "find models of one architecture, and measure what running them as one merged plan gains here")                    \
        X("inspect", command_inspect, "[OPTIONS] MODEL.onnx|FOLDER|PLAN",                                                          \
                "describe a model: operators, shapes, parameters, memory")                                                         \
        X("quantize", command_quantize, "[OPTIONS] MODEL.onnx --calibration DATA -o OUT.onnx",                                     \
                "write an int8 or bfloat16 variant of a model, with its measured accuracy")                                        \
        X("register", command_register, "[OPTIONS] MODEL.onnx... --task NAME --validation DATA",                                   \
                "make variants of models, measure their accuracy and time, and write them as a task to be served")                 \
        X("offline", command_offline, "[OPTIONS] submit MODEL INPUT OUTPUT.npy | list | pause|resume|cancel JOB",                  \
                "run files of samples through a model beside requests, in the idle time of a runtime")                             \
        X("bench", command_bench, "BENCHMARK [OPTIONS]", "run a benchmark; `starling bench` lists them")                           \
        X("profile", command_profile, "[OPTIONS] MODEL.onnx|FOLDER... | list|show|export|import|diff [ARGUMENTS]",                 \
                "time every node of a model, or what its workers cost, alone and beside others")                                   \
        X("compile", command_compile, "MODEL.onnx -o PLAN [--base PLAN] [OPTIONS]", "compile a model into a plan file")            \
        X("compiler", command_compiler, "...", "compile a model; started by the runtime")                                          \
        X("zygote", command_zygote, "...", "fork compilers' processes; started by the runtime")                                    \
        X("worker", command_worker, "...", "run a worker of a model; started by the runtime")                                      \
        X("gpu", command_gpu, "...", "drive a GPU; started by the runtime")                                                        \
        X("version", command_version, "[--host]", "print the version, and what it runs on")                                        \
        X("help", command_help, "[COMMAND]", "describe a command")

/* argv[0] is the command's name. Return: enum status. */
#define X(name, function, arguments, summary) int function(int argc, char **argv);
COMMANDS(X)
#undef X

/* What `--option` takes, one line for each row of lower_options.h. On stdout. */
void print_lower_options(void);

/* The checks of `doctor`, one line for each. On stdout. */
void print_checks(void);

/* Prints "starling COMMAND: text" on stderr; returns @status. */
int complain(int status, const char *command, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same of a file, STATUS_FAILED; @text may begin with its path already. */
int complain_of(const char *command, const char *path, const char *text);

/* Program @program of libexec in the place of this process. Return: STATUS_FAILED, after saying why. */
int become(const char *program, char **argv);

/* The line of usage on stderr; returns STATUS_USAGE. */
int complain_usage(const char *command);
