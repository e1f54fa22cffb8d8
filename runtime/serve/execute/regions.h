/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that requests name: clients' arena regions and the staging, each with a number of its own as long as it is mapped.
 * Who computes gets numbers and offsets, and finds them at whatever addresses its own process has mapped them.
 *
 * Threads: added and removed by the control thread; looked up by any thread for as long as it has work that names the region.
 * What orders them is what hands the number on: R1 and R2 of dispatch/channel.h, then the job (mailbox.h, B1).
 */
#pragma once

#include <stdint.h>

struct sl_regions;

/* Where a tensor lies: that of its first sample, and how far the next one is. */
struct sl_place {
        uint64_t offset; /* in its region */
        uint64_t stride; /* 0: the tensor has no batch */
        uint32_t region;
        uint32_t reserved;
};

struct sl_mapped_region {
        unsigned char *base; /* NULL: the number is free */
        uint64_t bytes;
};

struct sl_regions {
        uint32_t n_max, n;           /* as many numbers as have ever been in use */
        uint32_t free;               /* list through `bytes` of those that are not, counted from 1 */
        struct sl_mapped_region *at; /* [n_max] */
};

/* @n_max: how many there are at most. Return: 0, -ENOMEM. */
int sl_regions_new(uint32_t n_max, struct sl_regions **ret_regions);
struct sl_regions *sl_regions_free(struct sl_regions *regions);

/* Return: its number; -E2BIG. */
int sl_regions_add(struct sl_regions *regions, void *base, uint64_t bytes);

/* Nothing that names it is in flight. The mapping is the caller's. */
void sl_regions_remove(struct sl_regions *regions, uint32_t region);

static inline void *sl_regions_at(const struct sl_regions *regions, const struct sl_place *place)
{
        return regions->at[place->region].base + place->offset;
}
