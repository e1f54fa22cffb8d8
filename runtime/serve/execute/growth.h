/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that workers take while they serve: what data-dependent steps make, and what they pack of a plan of any size. Nothing is
 * promised to a worker before it has asked. The first run that needs more than it was granted has it grow, out of what is left of
 * memory_max (control's memory.h, which takes from the same number). What it has been granted stays promised, since the next run
 * may need as much, until it leaves. What is packed is the plan's, and stays until that ends.
 *
 * `left` is the one word that all share:
 *   (G1) invariant: left + all that control has taken + all that is granted to workers + all that is packed = memory_max.
 *   (G2) who takes subtracts, as long as there is as much; who gives back adds. Nothing else orders anything by it.
 *
 * Threads: the books are anybody's. A share has one user at a time, that of its runner.
 */
#pragma once

#include "packed_store.h"
#include "ref/live.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_memory_stats;
struct sl_stats;
struct sl_worker_stats;

#define SL_GROWTH_USES(X)                                                                                                          \
        X(DYNAMIC, "dynamic") /* granted to workers */                                                                             \
        X(PACKED, "packed")   /* weights of plans of any size (packed_store.h) */

enum sl_growth_use {
#define X(id, name) SL_GROWTH_##id,
        SL_GROWTH_USES(X)
#undef X
                SL_GROWTH_USE_COUNT,
};

struct sl_growth {
        _Atomic uint64_t left; /* of max_bytes; see G1 */
        _Atomic uint64_t used[SL_GROWTH_USE_COUNT];
        uint64_t max_bytes;
        struct sl_stats *stats; /* where the sum is published; NULL: nowhere */
        struct sl_memory_stats *shown[SL_GROWTH_USE_COUNT];
};

/* What one worker has of it. */
struct sl_growth_share {
        struct sl_pool_grant grant; /* of its instance */
        struct sl_growth *growth;
        struct sl_worker_stats *stats; /* of the worker; NULL: it is not shown */
};

/* All of @max_bytes is left. @stats: NULL: it is shown nowhere. */
void sl_growth_init(struct sl_growth *growth, uint64_t max_bytes, struct sl_stats *stats);

const char *sl_growth_use_name(enum sl_growth_use use);
uint64_t sl_growth_used(const struct sl_growth *growth, enum sl_growth_use use);

/* Takes for plans, and gives back what they have packed. */
struct sl_packed_lender sl_growth_packed_lender(struct sl_growth *growth);

/* Of what is left. False: there is not as much, nothing is taken. */
bool sl_growth_take(struct sl_growth *growth, uint64_t bytes);
void sl_growth_give(struct sl_growth *growth, uint64_t bytes);

/* Nothing is granted yet. The share does not move afterwards. */
void sl_growth_share_init(struct sl_growth_share *share, struct sl_growth *growth, struct sl_worker_stats *stats);

/* Grants the share @wanted bytes in all, rounded up where there is as much. False: refused, the grant says how much is left. */
bool sl_growth_share_more(struct sl_growth_share *share, uint64_t wanted);

/* Shows in its statistics what it has been granted, and the most that it has used. The one writer of those. */
void sl_growth_share_show(const struct sl_growth_share *share);

/* It has all given back. */
void sl_growth_share_end(struct sl_growth_share *share);
