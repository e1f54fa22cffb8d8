/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which allocations of the cache (allocation_cache.h) this process uses. Whatever is wrong with one is a line in the log and no
 * reason not to serve: one that is damaged or for other cores is not used, and one under which a model did not load is given up
 * until the process ends, or the model changes.
 *
 * Threads: one at a time.
 */
#pragma once

#include "base/processor.h"
#include "cache_folder.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_log;
struct sl_model_spec;

struct sl_cached_allocation {
        char name[SL_CACHE_NAME_BYTES];
        bool given_up;
};

/* All zero but the log in the beginning. */
struct sl_cached_allocations {
        const struct sl_log *log;
        struct sl_cached_allocation *items;
        uint32_t n;
        bool told;                          /* that there was none */
        char processor[SL_PROCESSOR_BYTES]; /* whose allocations these are; "": not read yet, which takes longer than to look for
                                               one */
};

/*
 * Gives @specs the workers that allocations in @directory (NULL: the user's default) say, ensembles first: a model that is a member
 * of one, and was optimized by itself as well, is where the ensemble wants it. @worker_cores: empty: any. That there is none is
 * said once, with the folder.
 */
void sl_cached_allocations_place(struct sl_cached_allocations *cached, const char *directory, const cpu_set_t *worker_cores,
        struct sl_model_spec *specs, uint32_t n);

/* Gives up what was used for @specs and has a model that @has_failed. Return: how many these are. */
uint32_t sl_cached_allocations_give_up(struct sl_cached_allocations *cached, const struct sl_model_spec *specs, uint32_t n,
        bool (*has_failed)(void *context, const char *model), void *context);

/* Whether one of @specs has failed whose allocation was given up: without it, it may yet load. */
bool sl_cached_allocations_misses(const struct sl_cached_allocations *cached, const struct sl_model_spec *specs, uint32_t n,
        bool (*has_failed)(void *context, const char *model), void *context);

void sl_cached_allocations_deinit(struct sl_cached_allocations *cached);
