/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "seqlock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One word of a record, inside of a change. Its size is known here: sl_seqlock_store() would ask for it each time. */
#define PUT(record, field, value)                                                                                                  \
        _Generic((record)->field, uint64_t : put_long, uint32_t : put_word, int32_t : put_word)(&(record)->field, (value))

static inline void put_long(void *shared, uint64_t value)
{
        atomic_store_explicit((sl_seqlock_long *)shared, value, memory_order_release);
}

static inline void put_word(void *shared, uint32_t value)
{
        atomic_store_explicit((sl_seqlock_word *)shared, value, memory_order_release);
}

int sl_recorder_init(struct sl_recorder *recorder, struct sl_stats *stats)
{
        *recorder = (struct sl_recorder){.stats = stats, .random = 0x9e3779b97f4a7c15};
        recorder->records = sl_stats_slots(stats, SL_STATS_RECORDS, &recorder->n_records);
        recorder->traced = sl_stats_slots(stats, SL_STATS_TRACED, &recorder->n_traced);
        recorder->spans = sl_stats_slots(stats, SL_STATS_SPANS, &recorder->n_spans);
        if (!recorder->n_records)
                return 0;
        SL_ASSERT((recorder->n_records & (recorder->n_records - 1)) == 0);
        recorder->free = malloc(recorder->n_records * sizeof(*recorder->free));
        if (!recorder->free)
                return -ENOMEM;
        return 0;
}

void sl_recorder_deinit(struct sl_recorder *recorder)
{
        free(recorder->free);
        recorder->free = NULL;
}

/* Marsaglia's xorshift: even over all requests, in step with no load. */
static bool draw(struct sl_recorder *recorder)
{
        uint64_t x = recorder->random;

        if (!recorder->sampling || !recorder->n_traced)
                return false;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        recorder->random = x;
        return (uint32_t)(x >> 32) <= recorder->sampling;
}

/* Q1 of a whole one: words of 8 bytes. */
static inline void write_slot(struct sl_stats_slot *slot, const struct sl_stats_slot *content, size_t bytes)
{
        uint64_t value;

        sl_seqlock_begin(&slot->seq);
        for (size_t i = offsetof(struct sl_stats_slot, used); i < bytes; i += sizeof(value)) {
                memcpy(&value, (const char *)content + i, sizeof(value));
                put_long((char *)slot + i, value);
        }
        sl_seqlock_end(&slot->seq);
}

/* The record after this one is in no near cache any more: it comes while this one is used. */
static void prefetch(const struct sl_recorder *recorder)
{
        const char *next = (const char *)&recorder->records[recorder->free[recorder->taken & (recorder->n_records - 1)]];

        __builtin_prefetch(next, 1);
        __builtin_prefetch(next + SL_LINE_BYTES, 1);
}

static void give_back(struct sl_recorder *recorder, uint32_t number)
{
        recorder->free[recorder->given_back++ & (recorder->n_records - 1)] = number;
}

/* NULL: all are of requests in flight. */
static struct sl_flight_record *find_free(struct sl_recorder *recorder)
{
        uint32_t ended = recorder->given_back - recorder->taken;

        if (ended < SL_RECORDS_ENDED && recorder->n_used < recorder->n_records)
                return &recorder->records[recorder->n_used++];
        return ended ? &recorder->records[recorder->free[recorder->taken++ & (recorder->n_records - 1)]] : NULL;
}

struct sl_flight_record *sl_recorder_take(struct sl_recorder *recorder, struct sl_flight_record *content)
{
        struct sl_flight_record *record = find_free(recorder);

        recorder->number++;
        if (!record)
                return NULL;
        prefetch(recorder);
        content->slot.used = recorder->number;
        content->sampled = draw(recorder);
        write_slot(&record->slot, &content->slot, sizeof(*content));
        return record;
}

/* Inside of a change. */
static void put_stage(struct sl_flight_record *record, enum sl_flight_stage stage, uint64_t now_ns)
{
        PUT(record, stage, (uint32_t)stage);
        PUT(record, since_ns, now_ns);
}

void sl_record_stage(struct sl_flight_record *record, enum sl_flight_stage stage, uint64_t now_ns)
{
        if (!record)
                return;
        sl_seqlock_begin(&record->slot.seq);
        put_stage(record, stage, now_ns);
        sl_seqlock_end(&record->slot.seq);
}

void sl_record_model(struct sl_flight_record *record, uint32_t model)
{
        if (!record)
                return;
        sl_seqlock_begin(&record->slot.seq);
        PUT(record, model, model);
        sl_seqlock_end(&record->slot.seq);
}

void sl_record_broadcast(struct sl_flight_record *record, uint32_t samples, uint64_t now_ns)
{
        if (!record)
                return;
        sl_seqlock_begin(&record->slot.seq);
        PUT(record, broadcast, record->broadcast + samples);
        if (record->stage < SL_FLIGHT_BROADCAST)
                put_stage(record, SL_FLIGHT_BROADCAST, now_ns);
        sl_seqlock_end(&record->slot.seq);
}

static void put_place(struct sl_flight_place *place, uint16_t worker, int change)
{
        struct sl_flight_place now = {.worker = worker, .pieces = (uint16_t)(place->pieces + change)};

        if (now.pieces == 0)
                now.worker = 0;
        put_word(place, (uint32_t)now.pieces << 16 | now.worker); /* little-endian */
}

static struct sl_flight_place *place_of(struct sl_flight_record *record, uint16_t worker)
{
        for (uint32_t i = 0; i < SL_FLIGHT_PLACES; i++)
                if (record->places[i].worker == worker)
                        return &record->places[i];
        return NULL;
}

/* Its own place, or an unused one, or the last, which is several workers' from then on. */
static void put_given(struct sl_flight_record *record, uint16_t worker)
{
        struct sl_flight_place *place = place_of(record, worker);

        if (!place)
                place = place_of(record, 0);
        if (place)
                put_place(place, worker, 1);
        else
                put_place(&record->places[SL_FLIGHT_PLACES - 1], SL_FLIGHT_SEVERAL, 1);
}

void sl_record_given(struct sl_flight_record *record, uint16_t worker, uint64_t now_ns)
{
        if (!record)
                return;
        sl_seqlock_begin(&record->slot.seq);
        put_given(record, worker);
        if (!record->assigned_ns)
                PUT(record, assigned_ns, now_ns);
        if (record->stage < SL_FLIGHT_GIVEN)
                put_stage(record, SL_FLIGHT_GIVEN, now_ns);
        sl_seqlock_end(&record->slot.seq);
}

void sl_record_answered(
        struct sl_flight_record *record, uint16_t worker, uint64_t started_ns, uint64_t staged_ns, uint64_t combined_ns)
{
        struct sl_flight_place *place;

        if (!record)
                return;
        place = place_of(record, worker);
        if (!place)
                place = &record->places[SL_FLIGHT_PLACES - 1];
        sl_seqlock_begin(&record->slot.seq);
        if (place->pieces)
                put_place(place, place->worker, -1);
        PUT(record, answered, record->answered + 1);
        PUT(record, started_ns, started_ns);
        PUT(record, staged_ns, staged_ns);
        PUT(record, combined_ns, combined_ns);
        sl_seqlock_end(&record->slot.seq);
}

/* Another record, at the next place of the ring. */
static void trace_record(struct sl_recorder *recorder, const struct sl_flight_record *record)
{
        struct sl_flight_record content = *record;
        uint64_t next = recorder->next_traced++;

        content.slot.used = next + 1;
        content.number = record->slot.used;
        write_slot(&recorder->traced[next % recorder->n_traced].slot, &content.slot, sizeof(content));
}

void sl_recorder_end(struct sl_recorder *recorder, struct sl_flight_record *record, int32_t status, uint64_t now_ns)
{
        if (!record)
                return;
        sl_seqlock_begin(&record->slot.seq);
        PUT(record, status, status);
        put_stage(record, SL_FLIGHT_ENDED, now_ns);
        sl_seqlock_end(&record->slot.seq);
        if (record->sampled)
                trace_record(recorder, record);
        give_back(recorder, (uint32_t)(record - recorder->records));
}

void sl_recorder_span(struct sl_recorder *recorder, struct sl_trace_span *span)
{
        uint64_t next = recorder->next_span++;

        if (!recorder->n_spans)
                return;
        span->slot.used = next + 1;
        write_slot(&recorder->spans[next % recorder->n_spans].slot, &span->slot, sizeof(*span));
}
