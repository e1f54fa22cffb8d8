/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scopes of metric.h, read: which slots of a runtime's page belong to one, what their labels are, and the values of the rows.
 * Functions without state.
 */
#pragma once

#include "buckets.h"
#include "metric.h"
#include "runtime_facts.h"
#include "stats.h"
#include "text.h"

/* No page holds more in a section of slots; a damaged one may say so. */
#define PAGE_SLOTS_MAX 5120u

/* A runtime at one moment. */
struct page {
        const struct sl_stats_view *view; /* NULL: there has been none yet; then only SCOPE_UP has a slot */
        struct runtime_facts facts;
        uint64_t now_ns; /* CLOCK_MONOTONIC; of a runtime that is gone, when it was seen last */
};

union page_slot {
        struct runtime_facts facts;
        struct sl_dispatcher_stats dispatcher;
        struct sl_model_stats model;
        struct sl_client_stats client;
        struct sl_worker_stats worker;
        struct sl_queue_stats queue;
        struct sl_let_stats let;
        struct sl_memory_stats memory;
        struct sl_step_stats step;
        struct sl_stats_slot any;
};

/* Slots, used or not; at most PAGE_SLOTS_MAX. */
uint32_t page_slots(const struct page *page, enum metric_scope scope);

/*
 * Copies slot @index and adds its labels, without the runtime's: `model="lenet"`, or "". Return: 0; -ENOENT unused; -EAGAIN it is
 * being changed, or a crash left it so.
 */
int page_read(const struct page *page, enum metric_scope scope, uint32_t index, union page_slot *ret_slot, struct text *labels);

/* Of the labels of a slot: those that say whose it is; a worker may go on in another place. 0: all of them. */
size_t page_owner_bytes(enum metric_scope scope, const char *labels);

/* The labels of what @slot is a part of, of an open model the sizes. False: it is no part. */
bool page_whole(enum metric_scope scope, const union page_slot *slot, struct text *labels);

/* What a row has in the values of its slot: one; of a histogram its buckets and the sum. */
static inline uint32_t metric_width(const struct metric *metric)
{
        return metric->type == METRIC_HISTOGRAM ? BUCKETS + 1 : 1;
}

/* The values of one row, metric_width() of them. */
void page_values(const struct page *page, const struct metric *metric, const union page_slot *slot, uint64_t *ret_values);
