/* SPDX-License-Identifier: Apache-2.0 */
#include "live.h"

#include "base/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sl_pool_block {
        uint64_t bytes;
        uint32_t holders;
};

static int take(struct sl_pool *pool, uint64_t n_bytes, struct sl_pool_block **ret_block)
{
        struct sl_pool_block *block;
        uint64_t bytes;

        if (n_bytes > pool->limit_bytes)
                return -ENOMEM;
        bytes = sl_align_up(n_bytes, SL_LINE_BYTES) + SL_LINE_BYTES;
        if (bytes > pool->limit_bytes - pool->used_bytes)
                return -ENOMEM;
        block = aligned_alloc(SL_LINE_BYTES, bytes);
        if (!block)
                return -ENOMEM;
        *block = (struct sl_pool_block){.bytes = bytes, .holders = 1};
        pool->used_bytes += bytes;
        if (pool->used_bytes > pool->peak_bytes)
                pool->peak_bytes = pool->used_bytes;
        *ret_block = block;
        return 0;
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
        *live = own;
        return 0;
}

void sl_live_drop(struct sl_pool *pool, struct sl_live *live)
{
        struct sl_pool_block *block = live->block;

        *live = (struct sl_live){0};
        if (!block || --block->holders)
                return;
        pool->used_bytes -= block->bytes;
        free(block);
}
