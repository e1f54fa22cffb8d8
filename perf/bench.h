/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling bench ...`: the one entry into the benchmarks. It prints; it is the only caller of the rest of this folder.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * @argv[0] is "bench", @argv[1] the benchmark. Blocks SIGINT and SIGTERM for its duration, so that what a benchmark has started
 * is always stopped. Return: an exit code: 0; 1 it failed or was interrupted; 2 wrong usage; 3, 4 of sl_bench_reach().
 */
int sl_bench_main(int argc, char **argv);

/* A benchmark in words, for help, man pages and completions. Constants. */
struct sl_bench_option {
        const char *name, *argument, *text; /* name NULL after the last; argument NULL: none */
};

struct sl_bench_description {
        const char *name, *arguments, *summary;
        const char *text; /* whole sentences; an empty line parts paragraphs, a line that begins with a blank stands as it is */
        const struct sl_bench_option *options;
};

/* Of benchmark @i; NULL after the last. */
const struct sl_bench_description *sl_bench_describe(size_t i);
const struct sl_bench_description *sl_bench_describe_named(const char *name);

/* The benchmarks themselves, each with argv[0] its own name. */
int sl_bench_floor(int argc, char **argv);
int sl_bench_rings(int argc, char **argv);
int sl_bench_core(int argc, char **argv);
int sl_bench_bandwidth(int argc, char **argv);
int sl_bench_noop(int argc, char **argv);
int sl_bench_small(int argc, char **argv);
int sl_bench_model(int argc, char **argv);
int sl_bench_overload(int argc, char **argv);
int sl_bench_query(int argc, char **argv);
int sl_bench_turns(int argc, char **argv);
int sl_bench_load(int argc, char **argv);
int sl_bench_compare(int argc, char **argv);

/* True when SIGINT or SIGTERM has come since sl_bench_main() blocked them. It stays true. */
bool sl_bench_interrupted(void);

/* Whether runtime @name (NULL: the default) is there; if not, why is said on stderr. Return: as sl_exit_status_of(). */
int sl_bench_reach(const char *benchmark, const char *name);

/* "--cpus 0,1": where this process and the other one run. Return: 0, -EINVAL. */
int sl_bench_cpus(const char *text, int ret_cpus[2]);

/* A number from @least to @most; what is none is named on stderr. Return: 0, -EINVAL. */
int sl_bench_number(const char *benchmark, const char *option, const char *text, double least, double most, double *ret_value);

/* The options that floor and rings have: --cpus and --json; with @ret_cpus NULL --json alone. Return: 0; 2 wrong usage. */
int sl_bench_options(int argc, char **argv, int ret_cpus[2], bool *ret_json);
