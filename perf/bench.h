/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling bench ...`: the one entry into the benchmarks. It prints; it is the only caller of the rest of this folder.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * @argv[0] is "bench", @argv[1] the benchmark. Blocks SIGINT and SIGTERM for its duration, so that what a benchmark has started
 * is always stopped. Return: an exit code: 0; 1 it failed or was interrupted; 2 wrong usage.
 */
int sl_bench_main(int argc, char **argv);

/* Name and usage of benchmark @i, in words; NULL after the last. */
const char *sl_bench_name(size_t i);
const char *sl_bench_usage(size_t i);

/* The benchmarks themselves, each with argv[0] its own name. */
int sl_bench_floor(int argc, char **argv);
int sl_bench_rings(int argc, char **argv);
int sl_bench_noop(int argc, char **argv);
int sl_bench_small(int argc, char **argv);
int sl_bench_model(int argc, char **argv);
int sl_bench_overload(int argc, char **argv);
int sl_bench_turns(int argc, char **argv);

/* True when SIGINT or SIGTERM has come since sl_bench_main() blocked them. It stays true. */
bool sl_bench_interrupted(void);

/* "--cpus 0,1": where this process and the other one run. Return: 0, -EINVAL. */
int sl_bench_cpus(const char *text, int ret_cpus[2]);

/* The options that floor and rings have: --cpus and --json. Return: 0; 2 wrong usage. */
int sl_bench_options(int argc, char **argv, int ret_cpus[2], bool *ret_json);
