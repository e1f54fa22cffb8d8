/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that requests name: clients' arena regions and the staging, each with a number of its own as long as it is mapped.
 * Who computes gets numbers and offsets, and finds them at whatever addresses its own process has mapped them.
 *
 * A region keeps a descriptor that cannot be written to, for the processes that compute: each gets those that its jobs name, when
 * they do so for the first time. Numbers are used again, serials are not.
 *
 * Threads: added and removed by the control thread, which also watches; looked up by any thread for as long as it has work that
 * names the region. What orders them is what hands the number on: R1 and R2 of dispatch/channel.h, then the job (mailbox.h, B1).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_regions;

/* Of an input that its request leaves out. */
#define SL_NO_REGION UINT32_MAX

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
        uint32_t serial; /* 1 and more: of all that ever had a number */
        int fd;          /* read-only; -1: it is nothing that others map */
        bool writable;   /* in a worker's process: it may write there */
};

/* Who hears of regions that go. Owned by the watcher. */
struct sl_regions_watch {
        void (*removed)(struct sl_regions_watch *watch, uint32_t region);
        struct sl_regions_watch *next;
};

struct sl_regions {
        uint32_t n_max, n;           /* as many numbers as have ever been in use */
        uint32_t free;               /* list through `bytes` of those that are not, counted from 1 */
        uint32_t serials;            /* given out */
        uint32_t n_fds;              /* that are kept */
        struct sl_mapped_region *at; /* [n_max] */
        struct sl_regions_watch *watches;
};

/* @n_max: how many there are at most. Return: 0, -ENOMEM. */
int sl_regions_new(uint32_t n_max, struct sl_regions **ret_regions);
struct sl_regions *sl_regions_free(struct sl_regions *regions);

/* @fd: of the memory, whatever it can be used for, and the caller's; -1: only this process computes with it. Return: its number;
 * -E2BIG; -EMFILE, -ENFILE. */
int sl_regions_add(struct sl_regions *regions, void *base, uint64_t bytes, int fd);

/* Nothing that names it is in flight. The mapping is the caller's. */
void sl_regions_remove(struct sl_regions *regions, uint32_t region);

static inline void *sl_regions_at(const struct sl_regions *regions, const struct sl_place *place)
{
        return regions->at[place->region].base + place->offset;
}

void sl_regions_watch(struct sl_regions *regions, struct sl_regions_watch *watch);
void sl_regions_unwatch(struct sl_regions *regions, struct sl_regions_watch *watch);
