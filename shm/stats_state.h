/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's own state of a stats page, shared by its two files: stats.c (the file) and stats_slots.c (what is in it). Control
 * thread.
 */
#pragma once

#include "stats.h"

struct sl_stats {
        int fd;
        char *base; /* whole file; only reserved parts are touched */
        uint64_t bytes;
        struct sl_stats_extent sections[SL_STATS_SECTIONS_N];
        uint8_t *set_used;       /* [n histogram sets] */
        uint32_t *model_holders; /* [n models]: times that the slot's name was added and not removed */
        char directory[200];
        char file[SL_STATS_NAME_BYTES + 16];
        char path[200 + SL_STATS_NAME_BYTES + 16];
        bool has_replaced, has_served;
        int guarded; /* 0, -errno */

        /* Counts of those that found no slot; nobody reads them. */
        struct sl_client_stats spare_client;
        struct sl_worker_stats spare_worker;
        struct sl_queue_stats spare_queue;
        struct sl_let_stats spare_let;
        struct sl_memory_stats spare_memory;
};

static inline struct sl_stats_header *sl_stats_header_of(struct sl_stats *stats)
{
        return (struct sl_stats_header *)stats->base;
}

/* Takes memory for a part of the file. Return: 0, -ENOSPC, -errno with text. */
int sl_stats_reserve(struct sl_stats *stats, uint64_t offset, uint64_t bytes, struct sl_error *error);

/* Those that are in use from the start. */
void sl_stats_start_slots(struct sl_stats *stats);
