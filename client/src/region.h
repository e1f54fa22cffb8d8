/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena of a client: up to SL_REGIONS_MAX regions of shared memory. Memory is named by a pointer here and by region and offset
 * on the wire; sl_region_locate() is the one place where the first becomes the second.
 */
#pragma once

#include "client.h"

/* Takes @fd over (closed on failure) as the next region. Under the lock, or before the client is shared. */
int sl_region_add(struct starling_client *client, int fd, uint64_t bytes, struct sl_error *error);

/* Unmaps and closes all. */
void sl_regions_free(struct starling_client *client);

/* Finds [data, data + bytes) inside one region. Any thread. */
static inline bool sl_region_locate(
        const struct starling_client *client, const void *data, uint64_t bytes, uint16_t *ret_region, uint64_t *ret_offset)
{
        uint32_t n = atomic_load_explicit(&client->n_regions, memory_order_acquire);

        for (uint32_t i = 0; i < n; i++) {
                const struct sl_mapping *mapping = &client->regions[i].mapping;
                uint64_t offset = (uint64_t)((uintptr_t)data - (uintptr_t)mapping->base);

                if (!sl_range_inside(offset, bytes, mapping->bytes))
                        continue;
                *ret_region = (uint16_t)i;
                *ret_offset = offset;
                return true;
        }
        return false;
}
