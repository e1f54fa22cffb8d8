/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace laid out in lanes: of each worker the batches that it computed, of each queue the requests that waited, of each queue
 * pair of a client its requests. What overlaps goes to further lanes of the same, so that in each lane one thing ends before the
 * next begins. Pure.
 */
#pragma once

#include "trace.h"

enum lane_kind { LANE_WORKER = 1, LANE_QUEUE, LANE_CLIENT };

struct lane_item {
        enum lane_kind kind;
        uint64_t key;   /* which worker, model, or client */
        uint32_t queue; /* pair, of a client */
        uint32_t lane;  /* from 0, of its kind */
        uint32_t copy;  /* 0: the first lane of its key */
        bool is_first;  /* of its lane */
        uint64_t begun_ns, ended_ns;
        uint32_t record;              /* of a queue or client: which of the trace */
        uint32_t first_span, n_spans; /* of a worker: those of one batch; of a client: its waking, if it is known */
};

struct lanes {
        const struct trace *trace;
        struct sl_trace_span *spans; /* sorted: of workers by worker and begin */
        struct lane_item *items;     /* by kind, key, queue and begin */
        size_t n_items;
};

/* Spans of requests that @trace has no record of are left out. Return: 0, -ENOMEM. */
int lanes_init(struct lanes *lanes, const struct trace *trace);
void lanes_deinit(struct lanes *lanes);

/*
 * When the stages of a request were over: queued, batched, computing, combining begin where the one before ended, the first when it
 * was taken. Return: how many it has come through, at most 4.
 */
uint32_t lane_stages(const struct sl_flight_record *record, uint64_t ret_ends[4]);

/* When it was over: its completion, or what is known to be later. */
uint64_t lane_request_end(const struct sl_flight_record *record);
