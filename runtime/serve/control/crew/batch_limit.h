/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The largest batch of a worker, and what it takes: a model's configuration says it, or it follows from bytes. Larger batches take
 * memory in proportion, in the workspace and in the pool: where nobody has asked for a size, it is the largest of the plan's ladder
 * of which workspace and pool stay within `batch_bytes_max`. Pure; any thread.
 */
#pragma once

#include "stats.h"

#include <stdint.h>

struct sl_plan;

struct sl_batch_limit {
        uint32_t batch_max; /* a size of the ladder */
        enum sl_batch_reason reason;
        uint64_t workspace_bytes, pool_bytes; /* of one worker */
};

/* @batch_max: sizes above are none of the worker's; @bytes_max 0: and all below are. Not of a signature. */
struct sl_batch_limit sl_batch_limit_choose(const struct sl_plan *plan, uint32_t batch_max, uint64_t bytes_max);
