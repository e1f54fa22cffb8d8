/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stats page in a folder of its own.
 */
#pragma once

#include "stats.h"

#define KIB 1024u
#define MIB (1024u * KIB)

extern char stats_folder[64];

/* Before and after each test of a suite. */
void stats_bench_init(void);
void stats_bench_deinit(void);

/* A skipped test is not torn down. */
void stats_skip(const char *what);

/* Of the runtime "demo". */
const char *stats_path(void);
struct sl_stats_options stats_options(void);
struct sl_stats *stats_create(void);

/* "model7"; valid until the next call. */
const char *stats_name(int n);
struct sl_stats_view *stats_view(void);

/* Of a set's stage, as a reader gets it. */
struct sl_histogram stats_histogram(const struct sl_stats_view *view, uint32_t set, enum sl_stage stage);
