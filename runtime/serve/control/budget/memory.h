/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger of memory: all that the runtime may take (memory_max), and what it has promised so far. Whatever grows at the word of
 * a client or of a model file is taken here before it is mapped, compiled or started, and given back when it has ended. What was
 * promised counts, not what is touched: a client can punch holes into its arena and have the runtime fill them again.
 *
 * Control thread only, but for `growth`: from that workers take by themselves what their data-dependent steps need, and what they
 * pack (growth.h). Invariant: the sum of `used`, and what workers have taken, is at most limit_bytes. What can be taken back is in
 * the sum, and counts as left: control gets it when it wants it. A worker does not, which waits for nobody.
 */
#pragma once

#include <stdint.h>

#include "growth.h"

struct sl_error;
struct sl_memory_stats;
struct sl_plan;
struct sl_stats;

#define SL_MEMORY_USES(X)                                                                                                          \
        X(STAGING, "staging")     /* of predictions that wait to be combined; from the start to the end */                         \
        X(STATS, "stats page")    /* 18 MiB, and more as more slots have been used */                                              \
        X(CATALOGUE, "catalogue") /* of models: 4 MiB, and more as they need more */                                               \
        X(CHANNELS, "channels")   /* rings, descriptors and request records of the clients */                                      \
        X(ARENAS, "arenas")       /* all regions, touched or not */                                                                \
        X(DEPARTED, "departed")   /* regions of clients that have left, which can be taken back (departed.h) */                    \
        X(PLANS, "plans")         /* plan files, weights included; a base counts once for all that share it */                     \
        X(WORKERS, "workers")     /* workspace and pool of each instance */                                                        \
        X(COMPILERS, "compilers") /* what running compilations may take, plan file included */

enum sl_memory_use {
#define X(id, name) SL_MEMORY_##id,
        SL_MEMORY_USES(X)
#undef X
                SL_MEMORY_USE_COUNT,
};

struct sl_memory {
        uint64_t limit_bytes;    /* UINT64_MAX: no limit */
        struct sl_growth growth; /* what is left, and what workers have taken of it */
        uint64_t used[SL_MEMORY_USE_COUNT];
        struct sl_stats *stats; /* where it is published; NULL: nowhere */
        struct sl_memory_stats *shown[SL_MEMORY_USE_COUNT];
        void (*reclaim)(void *context, uint64_t bytes); /* takes back as much; NULL: nothing can be */
        void *reclaim_context;
};

void sl_memory_init(struct sl_memory *memory, uint64_t limit_bytes, struct sl_stats *stats);

/* Return: 0: @bytes more of @use are promised; -ENOMEM they would pass the limit: nothing is taken, the text has the numbers. */
int sl_memory_take(struct sl_memory *memory, enum sl_memory_use use, uint64_t bytes, struct sl_error *error);

/* The same without taking. */
int sl_memory_check(const struct sl_memory *memory, uint64_t bytes, struct sl_error *error);

/* What was taken for @from is for @to from now on; no worker can come between. */
void sl_memory_move(struct sl_memory *memory, enum sl_memory_use from, enum sl_memory_use to, uint64_t bytes);

/* Gives back what was taken. */
void sl_memory_give(struct sl_memory *memory, enum sl_memory_use use, uint64_t bytes);

/*
 * Takes the file of a plan, once however often it is called, and gives it back by itself when the last holder frees the plan, which
 * is the control thread. What its instances pack is taken as they do. The ledger outlives the plan. Return: as sl_memory_take().
 */
int sl_memory_take_plan(struct sl_memory *memory, struct sl_plan *plan, struct sl_error *error);

/* Promised, and neither ended nor to be taken back; the rest up to the limit. */
uint64_t sl_memory_used(const struct sl_memory *memory);
uint64_t sl_memory_left(const struct sl_memory *memory);
