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
        int32_t status;     /* 0: merged; else `cause` says why not: -ENODATA it is not worth it, -EBADMSG its outputs differ,
                               -ETIME measuring takes longer than the budget */
        uint32_t batch_max; /* that was asked for when it was measured */
        uint64_t budget_ns; /* that measuring had */
        char processor[SL_PROCESSOR_BYTES];
        struct sl_fuse_table table;
        struct sl_compile_notes notes;
        char cause[SL_ERROR_TEXT_BYTES];
        uint64_t checksum;
};

/* False: there is none, or none of this processor. Whether it was measured for what is wanted now is for the caller to say. */
bool sl_fuse_record_read(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, struct sl_fuse_record *ret_record);

/* Sets magic, processor and checksum. */
void sl_fuse_record_write(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, struct sl_fuse_record *record);
