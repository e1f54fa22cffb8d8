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
        uint64_t reserved;                                    /* bytes that have memory */
        int (*promise)(void *promise_context, uint64_t more); /* asked for each more; NULL: nobody counts them */
        void *promise_context;
        struct sl_stats_extent sections[SL_STATS_SECTIONS_N];
        uint32_t n_reserved[SL_STATS_SECTIONS_N]; /* of those that are given out: the first slots, which have memory */
        uint8_t *set_used;                        /* [n histogram sets] */
        struct sl_stats_model_use {
                uint32_t holders;   /* times that the slot's name was added and not removed; 0: the slot is unused */
                uint32_t recorders; /* of those, by who records in its histograms */
                uint32_t set;       /* of histograms; 0: it has none of its own */
                uint32_t hash;      /* of its name */
                uint64_t left;      /* in the order in which sets lost their last recorder */
        } * model_uses;             /* [n models] */
        uint64_t lefts;
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
        struct sl_step_stats spare_step;
};

static inline struct sl_stats_header *sl_stats_header_of(struct sl_stats *stats)
{
        return (struct sl_stats_header *)stats->base;
}

/* Takes memory for a part of the file. Return: 0, -ENOSPC, -errno with text. */
int sl_stats_reserve(struct sl_stats *stats, uint64_t offset, uint64_t bytes, struct sl_error *error);

/* Those that are in use from the start. Return: as above. */
int sl_stats_start_slots(struct sl_stats *stats, struct sl_error *error);
