/* SPDX-License-Identifier: Apache-2.0 */
#include "growth.h"

#include "base/bytes.h"
#include "stats.h"

/* Shares grow by no less, so that one whose runs become larger little by little does not ask each time. */
#define STEP_BYTES (64ull << 10)

static const char *const use_names[SL_GROWTH_USE_COUNT] = {
#define X(id, name) [SL_GROWTH_##id] = name,
        SL_GROWTH_USES(X)
#undef X
};

void sl_growth_init(struct sl_growth *growth, uint64_t max_bytes, struct sl_stats *stats)
{
        *growth = (struct sl_growth){.max_bytes = max_bytes, .stats = stats};
        atomic_init(&growth->left, max_bytes);
        for (int use = 0; use < SL_GROWTH_USE_COUNT && stats; use++)
                sl_stats_memory_add(stats, use_names[use], &growth->shown[use]);
}

const char *sl_growth_use_name(enum sl_growth_use use)
{
        return use_names[use];
}

uint64_t sl_growth_used(const struct sl_growth *growth, enum sl_growth_use use)
{
        return atomic_load_explicit(&growth->used[use], memory_order_relaxed);
}

bool sl_growth_take(struct sl_growth *growth, uint64_t bytes)
{
        uint64_t left = atomic_load_explicit(&growth->left, memory_order_relaxed);

        do
                if (bytes > left)
                        return false;
        while (!atomic_compare_exchange_weak_explicit(
                &growth->left, &left, left - bytes, memory_order_relaxed, memory_order_relaxed));
        return true;
}

void sl_growth_give(struct sl_growth *growth, uint64_t bytes)
{
        atomic_fetch_add_explicit(&growth->left, bytes, memory_order_relaxed);
}

/* Several workers may do so at once: the page has what all of them have had granted once they are done. */
static void publish(struct sl_growth *growth, enum sl_growth_use use, uint64_t added)
{
        uint64_t now = atomic_fetch_add_explicit(&growth->used[use], added, memory_order_relaxed) + added, most;
        struct sl_memory_stats *shown = growth->shown[use];

        if (!shown)
                return;
        atomic_fetch_add_explicit(&shown->bytes, added, memory_order_relaxed);
        most = sl_counter_read(&shown->most_bytes);
        while (now > most &&
                !atomic_compare_exchange_weak_explicit(&shown->most_bytes, &most, now, memory_order_relaxed, memory_order_relaxed))
                ;
        sl_stats_add_memory(growth->stats, added);
}

static bool take_packed(void *context, uint64_t bytes)
{
        if (!sl_growth_take(context, bytes))
                return false;
        publish(context, SL_GROWTH_PACKED, bytes);
        return true;
}

static void give_packed(void *context, uint64_t bytes)
{
        publish(context, SL_GROWTH_PACKED, -bytes);
        sl_growth_give(context, bytes);
}

struct sl_packed_lender sl_growth_packed_lender(struct sl_growth *growth)
{
        return (struct sl_packed_lender){.take = take_packed, .give = give_packed, .context = growth};
}

static bool more(struct sl_pool_grant *grant, uint64_t wanted)
{
        return sl_growth_share_more((struct sl_growth_share *)grant, wanted);
}

void sl_growth_share_init(struct sl_growth_share *share, struct sl_growth *growth, struct sl_worker_stats *stats)
{
        *share = (struct sl_growth_share){.grant = {.more = more}, .growth = growth, .stats = stats};
}

bool sl_growth_share_more(struct sl_growth_share *share, uint64_t wanted)
{
        struct sl_pool_grant *grant = &share->grant;
        uint64_t added = wanted - grant->bytes, step = sl_align_up(wanted, STEP_BYTES) - grant->bytes;

        if (sl_growth_take(share->growth, step)) {
                added = step;
        } else if (!sl_growth_take(share->growth, added)) {
                grant->left_bytes = atomic_load_explicit(&share->growth->left, memory_order_relaxed);
                grant->max_bytes = share->growth->max_bytes;
                return false;
        }
        grant->bytes += added;
        publish(share->growth, SL_GROWTH_DYNAMIC, added);
        return true;
}

void sl_growth_share_show(const struct sl_growth_share *share)
{
        if (!share->stats)
                return;
        sl_counter_set(&share->stats->dynamic_bytes, share->grant.bytes);
        sl_counter_set(&share->stats->dynamic_used_bytes, share->grant.peak_bytes);
}

void sl_growth_share_end(struct sl_growth_share *share)
{
        uint64_t bytes = share->grant.bytes;

        if (!bytes || !share->growth)
                return;
        share->grant.bytes = 0;
        publish(share->growth, SL_GROWTH_DYNAMIC, -bytes);
        sl_growth_give(share->growth, bytes);
}
