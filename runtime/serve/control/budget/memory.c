/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include "base/error.h"
#include "plan.h"
#include "stats.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

static const char *const use_names[SL_MEMORY_USE_COUNT] = {
#define X(id, name) [SL_MEMORY_##id] = name,
        SL_MEMORY_USES(X)
#undef X
};

/* After a change of what is promised for @use; what can be taken back is not in the sum. */
static void publish(const struct sl_memory *memory, enum sl_memory_use use, uint64_t added)
{
        uint64_t bytes = memory->used[use];

        if (!memory->stats)
                return;
        sl_counter_set(&memory->shown[use]->bytes, bytes);
        if (bytes > sl_counter_read(&memory->shown[use]->most_bytes))
                sl_counter_set(&memory->shown[use]->most_bytes, bytes);
        if (use != SL_MEMORY_DEPARTED)
                sl_stats_add_memory(memory->stats, added);
}

void sl_memory_init(struct sl_memory *memory, uint64_t limit_bytes, struct sl_stats *stats)
{
        *memory = (struct sl_memory){.limit_bytes = limit_bytes, .stats = stats};
        for (int use = 0; use < SL_MEMORY_USE_COUNT && stats; use++)
                sl_stats_memory_add(stats, use_names[use], &memory->shown[use]);
        sl_growth_init(&memory->growth, limit_bytes, stats);
        if (stats)
                sl_stats_set_memory(stats, 0, limit_bytes);
}

uint64_t sl_memory_used(const struct sl_memory *memory)
{
        return memory->limit_bytes - sl_memory_left(memory);
}

uint64_t sl_memory_left(const struct sl_memory *memory)
{
        return atomic_load_explicit(&memory->growth.left, memory_order_relaxed) + memory->used[SL_MEMORY_DEPARTED];
}

static size_t print_use(char *text, size_t bytes, size_t length, const char *name, uint64_t used)
{
        if (!used || length >= bytes)
                return length;
        return length +
               (size_t)snprintf(text + length, bytes - length, "%s%s %llu", length ? ", " : "", name, (unsigned long long)used);
}

/* An operator who reads the refusal wants to know who has the rest. */
static void print_uses(const struct sl_memory *memory, char *text, size_t bytes)
{
        size_t length = 0;

        text[0] = 0;
        for (int use = 0; use < SL_MEMORY_USE_COUNT; use++)
                length = print_use(text, bytes, length, use_names[use], memory->used[use]);
        for (int use = 0; use < SL_GROWTH_USE_COUNT; use++)
                length = print_use(text, bytes, length, sl_growth_use_name(use), sl_growth_used(&memory->growth, use));
}

int sl_memory_check(const struct sl_memory *memory, uint64_t bytes, struct sl_error *error)
{
        char uses[256];

        if (bytes <= sl_memory_left(memory))
                return 0;
        print_uses(memory, uses, sizeof(uses));
        return sl_error_set(error, ENOMEM, "%llu bytes are wanted, %llu of memory_max %llu are in use (%s)",
                (unsigned long long)bytes, (unsigned long long)sl_memory_used(memory), (unsigned long long)memory->limit_bytes,
                uses);
}

int sl_memory_take(struct sl_memory *memory, enum sl_memory_use use, uint64_t bytes, struct sl_error *error)
{
        int r = sl_memory_check(memory, bytes, error);

        if (r < 0)
                return r;
        uint64_t free_bytes = sl_memory_left(memory) - memory->used[SL_MEMORY_DEPARTED];
        if (bytes > free_bytes)
                memory->reclaim(memory->reclaim_context, bytes - free_bytes);
        if (!sl_growth_take(&memory->growth, bytes)) /* a worker came first */
                return sl_memory_check(memory, bytes, error) < 0 ? -ENOMEM : sl_memory_take(memory, use, bytes, error);
        memory->used[use] += bytes;
        publish(memory, use, bytes);
        return 0;
}

void sl_memory_give(struct sl_memory *memory, enum sl_memory_use use, uint64_t bytes)
{
        assert(bytes <= memory->used[use]);
        memory->used[use] -= bytes;
        sl_growth_give(&memory->growth, bytes);
        publish(memory, use, -bytes);
}

void sl_memory_move(struct sl_memory *memory, enum sl_memory_use from, enum sl_memory_use to, uint64_t bytes)
{
        assert(bytes <= memory->used[from]);
        memory->used[from] -= bytes;
        memory->used[to] += bytes;
        publish(memory, from, -bytes);
        publish(memory, to, bytes);
}

static void plan_ended(void *context, const struct sl_plan *plan)
{
        sl_memory_give(context, SL_MEMORY_PLANS, sl_plan_bytes(plan));
}

int sl_memory_take_plan(struct sl_memory *memory, struct sl_plan *plan, struct sl_error *error)
{
        const struct sl_packed_lender lender = sl_growth_packed_lender(&memory->growth);
        int r;

        if (sl_plan_is_watched(plan))
                return 0;
        r = sl_memory_take(memory, SL_MEMORY_PLANS, sl_plan_bytes(plan), error);
        if (r < 0)
                return r;
        sl_plan_watch_end(plan, plan_ended, memory);
        sl_plan_lend_packed(plan, &lender);
        return 0;
}
