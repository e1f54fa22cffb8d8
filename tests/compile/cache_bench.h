/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of plans in a folder of its own, a file in the place of a model, and a plan that is kept for it. Paths that are returned
 * hold until the next call of the same function.
 */
#pragma once

#include "lower_options.h"
#include "plan_cache.h"

#include <limits.h>

#define MIB (1u << 20)

struct cache_bench {
        char folder[64], model[PATH_MAX];
        struct sl_plan_cache *cache; /* in the folder's "cache" */
        struct sl_lower_options options;
        int plan_fd;
};

extern struct cache_bench bench;

/* Before and after each test of a suite. */
void cache_bench_init(void);
void cache_bench_deinit(void);

void open_cache(uint64_t bytes);
void write_file(const char *path, const char *content);

/* The path of a file in the bench's folder; of a plan in the cache; of its record. */
const char *inside(const char *name);
const char *entry(const struct sl_plan_cache_key *key);
const char *record_of(const struct sl_plan_cache_key *key);

struct sl_plan_cache_key key_of(const char *path);

/* Keeps the plan under the model's key. */
struct sl_plan_cache_key keep(void);

/* What sl_plan_cache_find() returns. */
int find(const struct sl_plan_cache_key *key, struct sl_error *error);

/* Of one plan in the cache, with its record. */
uint64_t plan_bytes(void);

/* Two changes within one tick of the file system's clock look like one. */
void let_the_clock_tick(void);
