/* SPDX-License-Identifier: Apache-2.0 */
#include "lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t later(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

/* A time that is missing ends it; one that another clock reading has put before the last is as late as that. */
uint32_t lane_stages(const struct sl_flight_record *record, uint64_t ret_ends[4])
{
        const uint64_t ends[4] = {record->assigned_ns, record->started_ns, record->staged_ns, record->combined_ns};
        uint64_t last = record->taken_ns;
        uint32_t n = 0;

        for (; n < 4 && ends[n]; n++)
                ret_ends[n] = last = later(last, ends[n]);
        return n;
}

uint64_t lane_request_end(const struct sl_flight_record *record)
{
        uint64_t ends[4];
        uint32_t n = lane_stages(record, ends);

        return later(record->since_ns, n ? ends[n - 1] : record->taken_ns);
}

static int compare(uint64_t a, uint64_t b)
{
        return (a > b) - (a < b);
}

static int compare_spans(const void *a, const void *b)
{
        const struct sl_trace_span *x = a, *y = b;
        int r = compare(x->worker, y->worker);

        if (r == 0)
                r = compare(x->begun_ns, y->begun_ns);
        return r ? r : compare(x->slot.used, y->slot.used);
}

static int compare_items(const void *a, const void *b)
{
        const struct lane_item *x = a, *y = b;
        int r = compare(x->kind, y->kind);

        if (r == 0)
                r = compare(x->key, y->key);
        if (r == 0)
                r = compare(x->queue, y->queue);
        if (r == 0)
                r = compare(x->begun_ns, y->begun_ns);
        return r ? r : compare(x->record, y->record);
}

struct number {
        uint64_t request;
        uint32_t record;
};

static int compare_numbers(const void *a, const void *b)
{
        return compare(((const struct number *)a)->request, ((const struct number *)b)->request);
}

/* Records by the number of their request. NULL: no memory. */
static struct number *number_records(const struct trace *trace)
{
        struct number *numbers = calloc(trace->n_records + 1, sizeof(*numbers));

        if (!numbers)
                return NULL;
        for (size_t i = 0; i < trace->n_records; i++)
                numbers[i] = (struct number){.request = trace->records[i].number, .record = (uint32_t)i};
        qsort(numbers, trace->n_records, sizeof(*numbers), compare_numbers);
        return numbers;
}

static const struct number *find(const struct trace *trace, const struct number *numbers, uint64_t request)
{
        const struct number wanted = {.request = request};

        return bsearch(&wanted, numbers, trace->n_records, sizeof(*numbers), compare_numbers);
}

static uint64_t span_end(const struct sl_trace_span *span)
{
        return later(later(span->begun_ns, span->ended_ns), span->combined_ns);
}

/* Spans of one worker that began at once are of one batch. */
static void add_batches(struct lanes *lanes, size_t n_spans)
{
        struct lane_item *item = NULL;

        for (size_t i = 0; i < n_spans; i++) {
                const struct sl_trace_span *span = &lanes->spans[i];

                if (span->worker == SL_STATS_NONE)
                        continue;
                if (!item || item->key != span->worker || item->begun_ns != span->begun_ns) {
                        item = &lanes->items[lanes->n_items++];
                        *item = (struct lane_item){
                                .kind = LANE_WORKER, .key = span->worker, .begun_ns = span->begun_ns, .first_span = (uint32_t)i};
                }
                item->n_spans++;
                item->ended_ns = later(item->ended_ns, span_end(span));
        }
}

static void add_request(struct lanes *lanes, uint32_t i)
{
        const struct sl_flight_record *record = &lanes->trace->records[i];
        uint64_t ends[4];

        lanes->items[lanes->n_items++] = (struct lane_item){.kind = LANE_CLIENT,
                .key = record->client,
                .queue = record->queue,
                .begun_ns = record->taken_ns,
                .ended_ns = lane_request_end(record),
                .record = i};
        lanes->items[lanes->n_items++] = (struct lane_item){.kind = LANE_QUEUE,
                .key = record->model,
                .begun_ns = record->taken_ns,
                .ended_ns = lane_stages(record, ends) ? ends[0] : lane_request_end(record),
                .record = i};
}

/* The item of record i is number 2 i. */
static void add_waking(struct lanes *lanes, const struct number *numbers, size_t n_spans)
{
        for (size_t i = 0; i < n_spans; i++) {
                const struct sl_trace_span *span = &lanes->spans[i];

                if (span->worker != SL_STATS_NONE)
                        continue;
                struct lane_item *item = &lanes->items[2ul * find(lanes->trace, numbers, span->request)->record];

                item->first_span = (uint32_t)i;
                item->n_spans = 1;
                item->ended_ns = later(item->ended_ns, span_end(span));
        }
}

static size_t keep_known(struct lanes *lanes, const struct number *numbers)
{
        const struct trace *trace = lanes->trace;
        size_t kept = 0;

        for (size_t i = 0; i < trace->n_spans; i++)
                if (find(trace, numbers, trace->spans[i].request))
                        lanes->spans[kept++] = trace->spans[i];
        qsort(lanes->spans, kept, sizeof(*lanes->spans), compare_spans);
        return kept;
}

static bool same_key(const struct lane_item *a, const struct lane_item *b)
{
        return a->kind == b->kind && a->key == b->key && a->queue == b->queue;
}

/* The first of a key's lanes in which the last item is over. @ends: of these lanes, as many as there may be items. */
static void place_items(struct lanes *lanes, uint64_t *ends)
{
        uint32_t first = 0, copies = 0, copy;

        for (size_t i = 0; i < lanes->n_items; i++) {
                struct lane_item *item = &lanes->items[i];

                if (i == 0 || item->kind != item[-1].kind)
                        first = copies = 0;
                else if (!same_key(item, &item[-1])) {
                        first += copies;
                        copies = 0;
                }
                for (copy = 0; copy < copies && ends[copy] > item->begun_ns; copy++)
                        ;
                item->is_first = copy == copies;
                copies += item->is_first;
                ends[copy] = item->ended_ns;
                item->copy = copy;
                item->lane = first + copy;
        }
}

static int lay_out(struct lanes *lanes, const struct number *numbers)
{
        uint64_t *ends = calloc(2 * lanes->trace->n_records + lanes->trace->n_spans + 1, sizeof(*ends));
        size_t n_spans = keep_known(lanes, numbers);

        if (!ends)
                return -ENOMEM;
        for (uint32_t i = 0; i < lanes->trace->n_records; i++)
                add_request(lanes, i);
        add_waking(lanes, numbers, n_spans);
        add_batches(lanes, n_spans);
        qsort(lanes->items, lanes->n_items, sizeof(*lanes->items), compare_items);
        place_items(lanes, ends);
        free(ends);
        return 0;
}

int lanes_init(struct lanes *lanes, const struct trace *trace)
{
        struct number *numbers = number_records(trace);
        int r = -ENOMEM;

        *lanes = (struct lanes){.trace = trace};
        lanes->spans = calloc(trace->n_spans + 1, sizeof(*lanes->spans));
        lanes->items = calloc(2 * trace->n_records + trace->n_spans + 1, sizeof(*lanes->items));
        if (numbers && lanes->spans && lanes->items)
                r = lay_out(lanes, numbers);
        free(numbers);
        return r;
}

void lanes_deinit(struct lanes *lanes)
{
        free(lanes->spans);
        free(lanes->items);
        lanes->spans = NULL;
        lanes->items = NULL;
}
