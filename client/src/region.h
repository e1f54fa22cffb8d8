/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena of a client: up to SL_REGIONS_MAX regions of shared memory. Memory is named by a pointer here and by region and offset
 * on the wire; sl_region_locate() is the one place where the first becomes the second.
 *
 * A region in which nothing is allocated is given back to the runtime when a block finds no room elsewhere, and its index may then
 * have another one. Regions come and go under the client's lock, while other threads take, give and look for addresses without it:
 *
 *     (C1) take, give: fetch-add-acquire users, and out again where the flag is not set; the arena and the mapping stay until
 *     (C2) the same: fetch-sub-release users.
 *     (C3) publish, reopen: all is filled, then fetch-or-release both flags.                             pairs with C1
 *     (C4) retire: fetch-and-acq-rel clears TAKES, then load-acquire users until nobody is inside.       pairs with C2
 *          Nobody takes any more, so that a region of which no byte is in use stays so; a block in use may still be given.
 *          When none is, compare-exchange clears GIVES while nobody is inside: whoever comes now holds a stale pointer.
 *     (V1) publish: store-release base and bytes, then store-release version odd.  Drop: store-relaxed version even, before them.
 *     (V2) locate: load-acquire version, base and bytes, then version again.                             pairs with V1
 *          Who reads a base that came later sees the version that came before it, and that it has changed: memory that is in use
 *          cannot be in a region that changes.
 */
#pragma once

#include "client.h"

#define SL_REGION_TAKES (1u << 31) /* blocks may be taken */
#define SL_REGION_GIVES (1u << 30) /* blocks may be given */

/* What there is of the arena; a snapshot. */
struct sl_arena_sum {
        uint32_t regions;
        uint64_t bytes, used, largest;
};

/* Takes @fd over (closed on failure) as region 0 of a client that has none. Before the client is shared. */
int sl_region_add(struct starling_client *client, int fd, uint64_t bytes, struct sl_error *error);

/* The runtime has gone, nobody else is in a call: what was being given back is unmapped, and the others get indices from 0 on.
 * Return: how many. */
uint32_t sl_regions_settle(struct starling_client *client);

/* Unmaps and closes all. */
void sl_regions_free(struct starling_client *client);

/* @largest: free runs are looked at too, which walks over all pages. Any thread. */
struct sl_arena_sum sl_regions_sum(const struct starling_client *client, bool largest);

/* Finds [data, data + bytes) inside one region. Any thread. */
static inline bool sl_region_locate(
        const struct starling_client *client, const void *data, uint64_t bytes, uint16_t *ret_region, uint64_t *ret_offset)
{
        uint32_t n = atomic_load_explicit(&client->n_regions, memory_order_acquire);

        for (uint32_t i = 0; i < n; i++) {
                const struct sl_region *region = &client->regions[i];
                uint32_t version = atomic_load_explicit(&region->version, memory_order_acquire);
                uint64_t offset = (uint64_t)((uintptr_t)data - atomic_load_explicit(&region->base, memory_order_acquire));
                uint64_t limit = atomic_load_explicit(&region->bytes, memory_order_acquire);

                if (version % 2 == 0 || !sl_range_inside(offset, bytes, limit) ||
                        version != atomic_load_explicit(&region->version, memory_order_relaxed)) /* V2 */
                        continue;
                *ret_region = (uint16_t)i;
                *ret_offset = offset;
                return true;
        }
        return false;
}
