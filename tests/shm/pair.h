/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One queue pair in one mapping for both of its threads: ThreadSanitizer misses races between two mappings of one memfd.
 */
#pragma once

#include "layout.h"

#include <stdlib.h>
#include <string.h>

struct pair {
        struct sl_queue_map map;
        void *request, *response;
};

static inline struct pair pair_new(uint32_t depth, uint32_t tensors)
{
        struct sl_channel_shape shape = {.n_queues = 1, .depth = depth, .tensors = tensors};
        struct sl_channel_offsets offsets;
        struct pair pair = {0};

        if (sl_channel_offsets(&shape, &offsets) < 0)
                abort();
        pair.request = aligned_alloc(SL_PAGE_BYTES, offsets.request_bytes);
        pair.response = aligned_alloc(SL_PAGE_BYTES, offsets.response_bytes);
        if (!pair.request || !pair.response)
                abort();
        memset(pair.request, 0, offsets.request_bytes);
        memset(pair.response, 0, offsets.response_bytes);
        sl_queue_map(&pair.map, &shape, &offsets, 0, pair.request, pair.response);
        return pair;
}

static inline void pair_free(struct pair *pair)
{
        free(pair->request);
        free(pair->response);
}

/* Starts all indices at @first, as if so many requests had passed. */
static inline void pair_start_at(struct pair *pair, uint32_t first)
{
        atomic_store(&pair->map.request->head, first);
        atomic_store(&pair->map.response->consumed, first);
        atomic_store(&pair->map.response->tail, first);
}
