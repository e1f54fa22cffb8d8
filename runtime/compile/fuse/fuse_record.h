/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What came of merging the models of a block, kept in the cache of plans beside the merged plan, or in its place: the key stands
 * for the models in their order, options, the program and the processor. Any thread.
 */
#pragma once

#include "base/error.h"
#include "base/processor.h"
#include "compile.h"
#include "fuse_table.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_plan_cache;
struct sl_plan_cache_key;

struct sl_fuse_record {
        uint64_t magic;
        int32_t status;     /* 0: merged, and the table holds; -ENODATA: it is not worth it, `cause` says why */
        uint32_t batch_max; /* that was asked for when it was measured */
        char processor[SL_PROCESSOR_BYTES];
        struct sl_fuse_table table;
        struct sl_compile_notes notes;
        char cause[SL_ERROR_TEXT_BYTES];
        uint64_t checksum;
};

/* False: there is none, or none that holds on this processor and for this batch. */
bool sl_fuse_record_read(
        struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, uint32_t batch_max, struct sl_fuse_record *ret_record);

/* Sets magic, processor and checksum. */
void sl_fuse_record_write(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, struct sl_fuse_record *record);
