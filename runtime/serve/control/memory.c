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

static void publish_sum(const struct sl_memory *memory)
{
        sl_stats_set_memory(memory->stats, sl_memory_used(memory), memory->limit_bytes);
}

/* After a change of what is promised for @use. */
static void publish(const struct sl_memory *memory, enum sl_memory_use use)
{
        uint64_t bytes = memory->used[use];

        if (!memory->stats)
                return;
        sl_counter_set(&memory->shown[use]->bytes, bytes);
        if (bytes > sl_counter_read(&memory->shown[use]->most_bytes))
                sl_counter_set(&memory->shown[use]->most_bytes, bytes);
        publish_sum(memory);
}

void sl_memory_init(struct sl_memory *memory, uint64_t limit_bytes, struct sl_stats *stats)
{
        *memory = (struct sl_memory){.limit_bytes = limit_bytes, .stats = stats};
        if (!stats)
                return;
        for (int use = 0; use < SL_MEMORY_USE_COUNT; use++)
                sl_stats_memory_add(stats, use_names[use], &memory->shown[use]);
        publish_sum(memory);
}

uint64_t sl_memory_used(const struct sl_memory *memory)
{
        uint64_t bytes = 0;

        for (int use = 0; use < SL_MEMORY_USE_COUNT; use++)
                bytes += memory->used[use];
        return bytes - memory->used[SL_MEMORY_DEPARTED];
}

uint64_t sl_memory_left(const struct sl_memory *memory)
{
        return memory->limit_bytes - sl_memory_used(memory);
}

/* An operator who reads the refusal wants to know who has the rest. */
static void print_uses(const struct sl_memory *memory, char *text, size_t bytes)
{
        size_t length = 0;

        text[0] = 0;
        for (int use = 0; use < SL_MEMORY_USE_COUNT && length < bytes; use++)
                if (memory->used[use])
                        length += (size_t)snprintf(text + length, bytes - length, "%s%s %llu", length ? ", " : "", use_names[use],
                                (unsigned long long)memory->used[use]);
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
        memory->used[use] += bytes;
        publish(memory, use);
        return 0;
}

void sl_memory_give(struct sl_memory *memory, enum sl_memory_use use, uint64_t bytes)
{
        assert(bytes <= memory->used[use]);
        memory->used[use] -= bytes;
        publish(memory, use);
}

static void plan_ended(void *context, const struct sl_plan *plan)
{
        sl_memory_give(context, SL_MEMORY_PLANS, sl_plan_bytes(plan));
}

int sl_memory_take_plan(struct sl_memory *memory, struct sl_plan *plan, struct sl_error *error)
{
        int r = sl_plan_is_watched(plan) ? 0 : sl_memory_take(memory, SL_MEMORY_PLANS, sl_plan_bytes(plan), error);

        if (r == 0)
                sl_plan_watch_end(plan, plan_ended, memory);
        return r;
}
