/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of everything in a stats page at one moment, as good as it goes: slots are copied one after the other. Slots of one model
 * (one per counting thread) are added up, and so are queues of one name and kind. Whoever compares two of them (interval.h) finds a
 * slot by its index. One thread.
 */
#pragma once

#include "stats.h"

struct sl_error;

struct dispatcher_snapshot {
        uint32_t index;
        struct sl_dispatcher_stats slot;
};

#define SNAPSHOT_SUM(name, text) uint64_t name;

struct model_sums {
        SL_MODEL_SUMS(SNAPSHOT_SUM)
};

struct model_snapshot {
        uint32_t index; /* of the first */
        struct sl_model_stats slot;
        struct sl_histogram_set *histograms;
        bool has_sizes;               /* it is open, or was: */
        struct model_sums with_sizes; /* its own counters, those of its sizes, and of those that made room for others */
};

struct client_snapshot {
        uint32_t index;
        struct sl_client_stats slot;
};

struct worker_snapshot {
        uint32_t index;
        struct sl_worker_stats slot;
        struct sl_histogram_set *histograms; /* NULL: it has none */
};

struct queue_snapshot {
        uint32_t index; /* of the first */
        struct sl_queue_stats slot;
};

struct let_snapshot {
        uint32_t index;
        struct sl_let_stats slot;
};

struct memory_snapshot {
        uint32_t index;
        struct sl_memory_stats slot;
};

struct step_snapshot {
        uint32_t index;
        struct sl_step_stats slot;
};

struct snapshot {
        uint64_t taken_ns; /* CLOCK_MONOTONIC */
        bool live;         /* its runtime was */
        struct sl_stats_header header;
        uint32_t n_dispatchers, n_models, n_clients, n_workers, n_queues, n_lets, n_memory, n_steps;
        struct dispatcher_snapshot *dispatchers;
        struct model_snapshot *models;
        struct sl_histogram_set *no_histograms; /* zeros, of all models that have none */
        struct client_snapshot *clients;
        struct worker_snapshot *workers;
        struct queue_snapshot *queues;
        struct let_snapshot *lets;
        struct memory_snapshot *memory;
        struct step_snapshot *steps;
};

/* Return: 0; -ENOMEM; -EBADMSG the page was cut off meanwhile; with text. */
int snapshot_take(const struct sl_stats_view *view, struct snapshot **ret_snapshot, struct sl_error *error);

/* Of the runtime @name. Return: as sl_stats_open(), and as above. */
int snapshot_of(const char *name, struct snapshot **ret_snapshot, struct sl_error *error);

/* NULL is fine. Returns NULL. */
struct snapshot *snapshot_free(struct snapshot *snapshot);

/* "starting", "ready", "stopping", "stopped"; "dead": it ended without saying so. */
const char *snapshot_state(const struct snapshot *snapshot);

/* Where the worker runs; NULL: the page says nothing of it, as of what the dispatcher computes itself. */
const struct sl_let_stats *snapshot_let(const struct snapshot *snapshot, const struct sl_worker_stats *worker);

/* "gpu:1/50%": the part of a GPU on which the worker runs, terminated; NULL: it is on none. */
const char *snapshot_gpu(const struct snapshot *snapshot, const struct sl_worker_stats *worker);

/* NULL: there is none of that name; none in that slot. */
const struct model_snapshot *snapshot_model(const struct snapshot *snapshot, const char *name);
const struct model_snapshot *snapshot_model_at(const struct snapshot *snapshot, uint32_t index);

/* NULL: no such queue. */
const struct queue_snapshot *snapshot_queue(const struct snapshot *snapshot, const char *model, enum sl_stats_queue_kind kind);
