/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of everything in a stats page, ready to be printed. Slots of one model (one per counting thread) are added up. One thread.
 */
#pragma once

#include "stats.h"

struct sl_error;

struct model_counts {
        struct sl_model_stats counters;
        struct sl_histogram_set *histograms; /* the sum; owned */
};

struct counts {
        struct sl_stats_header header;
        bool live;
        uint32_t n_dispatchers, n_models, n_clients, n_workers;
        struct sl_dispatcher_stats *dispatchers;
        struct model_counts *models;
        struct sl_client_stats *clients;
        struct sl_worker_stats *workers;
};

/* Return: 0; as sl_stats_open(); -ENOMEM. */
int counts_read(const char *name, struct counts *ret_counts, struct sl_error *error);
void counts_deinit(struct counts *counts);

void counts_print(const struct counts *counts);
void counts_print_json(const struct counts *counts);
