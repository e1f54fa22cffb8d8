/* SPDX-License-Identifier: Apache-2.0 */
#include "growth.h"

#include "base/bytes.h"
#include "stats.h"

/* Shares grow by no less, so that one whose runs become larger little by little does not ask each time. */
#define STEP_BYTES (64ull << 10)

void sl_growth_init(struct sl_growth *growth, uint64_t max_bytes)
{
        growth->max_bytes = max_bytes;
        atomic_init(&growth->left, max_bytes);
        atomic_init(&growth->bytes, 0);
        growth->stats = NULL;
        growth->shown = NULL;
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
static void publish(struct sl_growth *growth, uint64_t added)
{
        uint64_t now = atomic_fetch_add_explicit(&growth->bytes, added, memory_order_relaxed) + added, most;

        if (!growth->shown)
                return;
        atomic_fetch_add_explicit(&growth->shown->bytes, added, memory_order_relaxed);
        most = sl_counter_read(&growth->shown->most_bytes);
        while (now > most && !atomic_compare_exchange_weak_explicit(
                                     &growth->shown->most_bytes, &most, now, memory_order_relaxed, memory_order_relaxed))
                ;
        sl_stats_add_memory(growth->stats, added);
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
        publish(share->growth, added);
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
        publish(share->growth, -bytes);
        sl_growth_give(share->growth, bytes);
}
