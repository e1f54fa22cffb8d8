/* SPDX-License-Identifier: Apache-2.0 */
#include "live.h"

#include "base/bytes.h"
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACED_BYTES (16 << 10) /* smaller ones fill the places of larger ones */

struct sl_pool_block {
        void *place;
        uint64_t bytes;
        uint32_t holders;
};

static int run_short(struct sl_pool *pool, enum sl_pool_shortage shortage, uint64_t wanted)
{
        pool->shortage = shortage;
        pool->wanted_bytes = wanted;
        return -ENOMEM;
}

static bool is_granted(const struct sl_pool *pool, uint64_t wanted)
{
        struct sl_pool_grant *grant = pool->grant;

        return !grant || wanted <= grant->bytes || grant->more(grant, wanted);
}

/*
 * Sizes of requests differ by little, and what lies behind a block may be kept for long: the kernel of a size. Its place is then of
 * use to a later block only if that is no larger. So places come in eighths of a power of two; of what a block does not reach
 * nothing is touched. They are of malloc(), as glibc's aligned_alloc() wants more than it hands out: not even the next one of the
 * same size would fit there.
 */
static uint64_t place_bytes(uint64_t bytes)
{
        uint64_t step = bytes < PLACED_BYTES ? SL_LINE_BYTES : 1ull << (63 - __builtin_clzll(bytes) - 3);

        return sl_align_up(bytes, step);
}

static int take(struct sl_pool *pool, uint64_t n_bytes, struct sl_pool_block **ret_block)
{
        struct sl_pool_block *block;
        uint64_t bytes, wanted;
        void *place;

        if (n_bytes > pool->limit_bytes)
                return run_short(pool, SL_POOL_OVER_LIMIT, n_bytes);
        bytes = sl_align_up(n_bytes, SL_LINE_BYTES) + SL_LINE_BYTES;
        wanted = pool->used_bytes + bytes;
        if (bytes > pool->limit_bytes - pool->used_bytes)
                return run_short(pool, SL_POOL_OVER_LIMIT, wanted);
        if (!is_granted(pool, wanted))
                return run_short(pool, SL_POOL_NOT_GRANTED, wanted);
        place = malloc(place_bytes(bytes + SL_LINE_BYTES));
        if (!place)
                return run_short(pool, SL_POOL_NO_MEMORY, wanted);
        block = (struct sl_pool_block *)sl_align_up((uintptr_t)place, SL_LINE_BYTES);
        *block = (struct sl_pool_block){.place = place, .bytes = bytes, .holders = 1};
        pool->used_bytes = wanted;
        if (wanted > pool->peak_bytes)
                pool->peak_bytes = wanted;
        if (pool->grant && wanted > pool->grant->peak_bytes)
                pool->grant->peak_bytes = wanted;
        *ret_block = block;
        return 0;
}

int sl_pool_explain(const struct sl_pool *pool, const char *op, struct sl_error *error)
{
        unsigned long long wanted = pool->wanted_bytes;

        switch (pool->shortage) {
        case SL_POOL_NOT_GRANTED:
                return sl_error_set(error, ENOMEM,
                        "%s: wants %llu bytes of dynamic memory; %llu are promised to it, and of memory_max %llu there are %llu "
                        "left",
                        op, wanted, (unsigned long long)pool->grant->bytes, (unsigned long long)pool->grant->max_bytes,
                        (unsigned long long)pool->grant->left_bytes);
        case SL_POOL_NO_MEMORY:
                return sl_error_set(
                        error, ENOMEM, "%s: wants %llu bytes of dynamic memory, which the system does not have", op, wanted);
        default:
                return sl_error_set(error, ENOMEM, "%s: wants %llu bytes of dynamic memory, dynamic_bytes_max is %llu", op, wanted,
                        (unsigned long long)pool->limit_bytes);
        }
}

int sl_live_make(struct sl_pool *pool, const struct sl_tensor *tensor, struct sl_live *ret_live)
{
        struct sl_pool_block *block;
        int r = take(pool, sl_tensor_bytes(tensor), &block);

        if (r < 0)
                return r;
        *ret_live = (struct sl_live){.tensor = *tensor, .data = (uint8_t *)block + SL_LINE_BYTES, .block = block};
        return 0;
}

struct sl_live sl_live_share(const struct sl_live *live)
{
        if (live->block)
                live->block->holders++;
        return *live;
}

int sl_live_own(struct sl_pool *pool, struct sl_live *live)
{
        struct sl_live own;
        int r;

        if (live->block || live->tensor.dtype == SL_DTYPE_NONE)
                return 0;
        r = sl_live_make(pool, &live->tensor, &own);
        if (r < 0)
                return r;
        if (sl_tensor_bytes(&live->tensor))
                memcpy(own.data, live->data, sl_tensor_bytes(&live->tensor));
        own.value = live->value;
        *live = own;
        return 0;
}

uint64_t sl_live_bytes(const struct sl_live *live)
{
        return live->block ? live->block->bytes : 0;
}

void sl_live_drop(struct sl_pool *pool, struct sl_live *live)
{
        struct sl_pool_block *block = live->block;

        *live = (struct sl_live){0};
        if (!block || --block->holders)
                return;
        pool->used_bytes -= block->bytes;
        free(block->place);
}
