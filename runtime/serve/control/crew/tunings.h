/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processes of GPUs have found out about the plans of their workers (gpu_choices.h): handed to a worker when it starts,
 * checked and kept in the cache of plans when it hands it over. A process that ended while it timed candidates of a plan does not
 * time them again in this runtime, so that a candidate which ends it costs one load.
 *
 * Control thread only.
 */
#pragma once

#include "gpu_choices.h"
#include "gpu_tuning.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_executor;
struct sl_plan_cache;
struct sl_plan_choices_key;
struct sl_process_executor_options;

#define SL_TUNINGS_ABANDONED_MAX 64u

struct sl_tunings {
        struct sl_plan_cache *cache; /* NULL: nothing is kept */
        uint32_t n_abandoned;        /* ever */
        struct {
                uint64_t plan[2];
                uint32_t gpu;
        } abandoned[SL_TUNINGS_ABANDONED_MAX]; /* the last ones */
};

/* Fills gpu_tuning, as far as it may be what it is, and choices_fd, which is the caller's to close. */
void sl_tunings_begin(struct sl_tunings *tunings, struct sl_process_executor_options *options);

/*
 * What such a worker has handed over, which is not trusted. The descriptor stays the caller's. Return: 0, it is being kept where
 * there is a cache; -EBADMSG it is none, or of another plan; -errno; with text.
 */
int sl_tunings_keep(struct sl_tunings *tunings, const struct sl_process_executor_options *options, int fd,
        struct sl_gpu_choices_facts *ret_facts, struct sl_error *error);

/* Its process has ended while it timed. */
void sl_tunings_abandon(struct sl_tunings *tunings, const struct sl_process_executor_options *options);
