/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>

/* Any slot of either ring. */
union slot {
        struct sl_stats_slot slot;
        struct sl_flight_record record;
        struct sl_trace_span span;
};

static void begin_ring(const struct sl_stats_view *view, enum sl_stats_section section, struct trace_ring *ring)
{
        *ring = (struct trace_ring){.section = section, .count = sl_stats_count(view, section), .next = 1};
        for (uint32_t i = 0; i < ring->count; i++) {
                union slot slot;

                if (sl_stats_try_slot(view, section, i, &slot.slot) == 0 && slot.slot.used >= ring->next)
                        ring->next = slot.slot.used + 1;
        }
}

/* What workers did before for requests that end after the beginning; half of the ring, so that it is not lost on the way. */
static void step_back(struct trace_ring *ring)
{
        uint64_t steps = ring->count / 2;

        ring->next = ring->next > steps ? ring->next - steps : 1;
}

static uint32_t sampling_of(const struct sl_stats_view *view)
{
        struct sl_dispatcher_stats dispatcher;
        uint32_t sampling = 0;

        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_DISPATCHERS); i++)
                if (sl_stats_read_dispatcher(view, i, &dispatcher) == 0 && dispatcher.sampling > sampling)
                        sampling = dispatcher.sampling;
        return sampling;
}

int trace_begin(struct trace *trace, const struct sl_stats_view *view, uint32_t records_max, struct sl_error *error)
{
        struct sl_stats_header header;

        sl_stats_read_header(view, &header);
        *trace = (struct trace){.view = view, .records_max = records_max};
        begin_ring(view, SL_STATS_TRACED, &trace->records_ring);
        begin_ring(view, SL_STATS_SPANS, &trace->spans_ring);
        step_back(&trace->spans_ring);
        if (trace->records_ring.count && trace->spans_ring.count && sampling_of(view))
                return 0;
        return sl_error_set(error, ENODATA,
                "runtime \"%s\" traces no requests: set trace.sampling in its configuration, 0.01 is one of a hundred, and reload",
                header.runtime_name);
}

void trace_deinit(struct trace *trace)
{
        free(trace->records);
        free(trace->spans);
        trace->records = NULL;
        trace->spans = NULL;
}

/* A whole lap behind: what lies there now, and so the slots before it, were written again. */
static void skip_lost(struct trace_ring *ring, uint64_t used)
{
        uint64_t oldest = used - ring->count + 1;

        ring->lost += oldest - ring->next;
        ring->next = oldest;
}

/* Return: true: @ret_slot is the next one. A slot that is just being written is taken another time. */
static bool take_slot(const struct sl_stats_view *view, struct trace_ring *ring, union slot *ret_slot)
{
        for (;;) {
                uint32_t i = (uint32_t)((ring->next - 1) % ring->count);

                if (sl_stats_try_slot(view, ring->section, i, &ret_slot->slot) < 0)
                        return false;
                if (ret_slot->slot.used < ring->next || (ret_slot->slot.used - ring->next) % ring->count)
                        return false;
                if (ret_slot->slot.used == ring->next) {
                        ring->next++;
                        return true;
                }
                skip_lost(ring, ret_slot->slot.used);
        }
}

/* Return: 0, -ENOMEM. */
static int make_room(void **array, size_t n, size_t bytes, size_t *room)
{
        size_t more = *room ? 2 * *room : 1024;
        void *grown;

        if (n < *room)
                return 0;
        grown = reallocarray(*array, more, bytes);
        if (!grown)
                return -ENOMEM;
        *array = grown;
        *room = more;
        return 0;
}

int trace_drain(struct trace *trace)
{
        union slot slot;
        int r = 0;

        while (r == 0 && trace->n_records < trace->records_max && take_slot(trace->view, &trace->records_ring, &slot)) {
                r = make_room((void **)&trace->records, trace->n_records, sizeof(*trace->records), &trace->records_room);
                if (r == 0)
                        trace->records[trace->n_records++] = slot.record;
        }
        while (r == 0 && take_slot(trace->view, &trace->spans_ring, &slot)) {
                r = make_room((void **)&trace->spans, trace->n_spans, sizeof(*trace->spans), &trace->spans_room);
                if (r == 0)
                        trace->spans[trace->n_spans++] = slot.span;
        }
        return r;
}
