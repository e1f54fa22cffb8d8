/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a runtime traces (stats_layout.h), drained from its stats page while it goes on: records of sampled requests as they end,
 * and the spans of workers and of clients that woke for them, those of others among them. A reader that comes too late for some
 * says how many. One thread.
 */
#pragma once

#include "stats.h"

struct sl_error;

struct trace_ring {
        enum sl_stats_section section;
        uint32_t count;
        uint64_t next; /* number of the slot that is read next */
        uint64_t lost;
};

struct trace {
        const struct sl_stats_view *view; /* the caller's, and open as long as this is used */
        struct trace_ring records_ring, spans_ring;
        uint32_t records_max;
        struct sl_flight_record *records; /* in the order in which they ended */
        struct sl_trace_span *spans;
        size_t n_records, n_spans, records_room, spans_room;
};

/* From now on; at most @records_max. Return: 0; -ENODATA the runtime traces nothing. With text. */
int trace_begin(struct trace *trace, const struct sl_stats_view *view, uint32_t records_max, struct sl_error *error);
void trace_deinit(struct trace *trace);

/* Takes what is there. Return: 0, -ENOMEM. All spans of a request that is there are there, but that of its client's waking. */
int trace_drain(struct trace *trace);
