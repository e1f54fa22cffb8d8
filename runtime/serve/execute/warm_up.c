/* SPDX-License-Identifier: Apache-2.0 */
#include "warm_up.h"

#include "base/clock.h"
#include "batcher.h"
#include "stats.h"
#include "stop.h"

/* Faulted at a time: one huge page, which takes some tenths of a millisecond. */
#define PIECE_BYTES (2ull << 20)

/* A model that takes longer for one sample starts cold: nobody waits for it, nor for a shut-down. */
#define FIRST_NS_MAX SL_NS_PER_SECOND

static int run_size(struct sl_warm_up *warm_up, uint32_t samples, const struct sl_stop *stop)
{
        struct sl_batch batch;

        sl_batcher_pool(warm_up->batcher, samples, &batch);
        sl_instance_watch(warm_up->instance, stop);
        return sl_instance_run(warm_up->instance, samples, batch.inputs, batch.outputs);
}

int sl_warm_up_first(struct sl_warm_up *warm_up)
{
        uint64_t begun_ns = sl_clock_ns();
        int r = run_size(warm_up, warm_up->info->batches[0], &(struct sl_stop){.deadline_ns = begun_ns + FIRST_NS_MAX});

        warm_up->size = 1;
        warm_up->first_ns = sl_clock_ns() - begun_ns;
        sl_counter_add(&warm_up->stats->warmup_runs, 1);
        return warm_up->dynamic || r == -ETIME ? 0 : r;
}

void sl_warm_up_recall(struct sl_warm_up *warm_up, uint64_t first_ns)
{
        warm_up->size = 1;
        warm_up->first_ns = first_ns;
}

static bool may_run(const struct sl_warm_up *warm_up)
{
        return !atomic_load_explicit(warm_up->called, memory_order_relaxed) && sl_clock_ns() < warm_up->until_ns;
}

/* What cannot be had now is asked for again by the first run of that size. */
static bool fault(struct sl_warm_up *warm_up, uint32_t samples)
{
        return sl_instance_populate(warm_up->instance, samples, PIECE_BYTES) > 0 ||
               sl_batcher_populate(warm_up->batcher, PIECE_BYTES) > 0;
}

bool sl_warm_up_next(struct sl_warm_up *warm_up)
{
        const struct sl_plan_info *info = warm_up->info;

        if (warm_up->size >= info->n_batches || info->batches[warm_up->size] > warm_up->batch_max)
                return false;

        uint32_t samples = info->batches[warm_up->size];
        struct sl_stop stop = {.verdict = warm_up->called, .deadline_ns = warm_up->until_ns};

        if (fault(warm_up, samples))
                return true;
        if (may_run(warm_up) && run_size(warm_up, samples, &stop) == 0)
                sl_counter_add(&warm_up->stats->warmup_runs, 1);
        warm_up->size++;
        return true;
}
