/* SPDX-License-Identifier: Apache-2.0 */
#include "flight.h"

#include "base/error.h"
#include "quantity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t latest(const struct sl_flight_record *record)
{
        const uint64_t times[] = {record->taken_ns, record->since_ns, record->assigned_ns, record->started_ns, record->staged_ns,
                record->combined_ns};
        uint64_t last = 0;

        for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
                last = times[i] > last ? times[i] : last;
        return last;
}

/* Words of a request never contradict each other, unless it is torn. */
static bool is_possible(const struct flight *flight, const struct flight_entry *entry)
{
        const struct sl_flight_record *record = &entry->record;

        if (record->stage >= SL_FLIGHT_STAGE_LIMIT || record->taken_ns < flight->header.started_ns)
                return false;
        return entry->torn || (record->since_ns >= record->taken_ns && record->status <= 0 && record->broadcast <= record->samples);
}

static void name_model(const struct flight *flight, struct flight_entry *entry)
{
        struct sl_model_stats model;

        if (sl_stats_read_model(flight->view, entry->record.model, &model) == 0)
                quantity_text(model.name, entry->model, sizeof(entry->model));
        else
                snprintf(entry->model, sizeof(entry->model), "model %u", entry->record.model);
}

static void take_entry(struct flight *flight, struct flight_entry *entry)
{
        flight->n_records++;
        if (!is_possible(flight, entry)) {
                flight->n_damaged++;
                return;
        }
        flight->n_torn += entry->torn;
        name_model(flight, entry);
        if (latest(&entry->record) > flight->last_ns)
                flight->last_ns = latest(&entry->record);
        if (entry->record.stage == SL_FLIGHT_ENDED)
                flight->ended[flight->n_ended++] = *entry;
        else
                flight->in_flight[flight->n_in_flight++] = *entry;
}

static int compare_taken(const void *a, const void *b)
{
        const struct sl_flight_record *x = &((const struct flight_entry *)a)->record,
                                      *y = &((const struct flight_entry *)b)->record;

        if (x->taken_ns != y->taken_ns)
                return x->taken_ns < y->taken_ns ? -1 : 1;
        return (x->slot.used > y->slot.used) - (x->slot.used < y->slot.used);
}

static int compare_ended(const void *a, const void *b)
{
        const struct sl_flight_record *x = &((const struct flight_entry *)a)->record,
                                      *y = &((const struct flight_entry *)b)->record;

        if (x->since_ns != y->since_ns)
                return x->since_ns > y->since_ns ? -1 : 1;
        return compare_taken(b, a);
}

int flight_read(const struct sl_stats_view *view, struct flight *ret_flight, struct sl_error *error)
{
        uint32_t n = sl_stats_count(view, SL_STATS_RECORDS);
        int r;

        if (n == 0)
                return sl_error_set(error, ENODATA, "the stats page has no records of requests: it is of an older Starling");
        *ret_flight = (struct flight){.view = view, .live = sl_stats_is_live(view)};
        sl_stats_read_header(view, &ret_flight->header);
        ret_flight->in_flight = calloc(n, sizeof(*ret_flight->in_flight));
        ret_flight->ended = calloc(n, sizeof(*ret_flight->ended));
        if (!ret_flight->in_flight || !ret_flight->ended) {
                flight_deinit(ret_flight);
                return sl_error_set(error, ENOMEM, "no memory for %u records", n);
        }
        for (uint32_t i = 0; i < n; i++) {
                struct flight_entry entry = {0};

                r = sl_stats_read_record(view, SL_STATS_RECORDS, i, &entry.record);

                entry.torn = r == -EAGAIN;
                if (r == 0 || entry.torn)
                        take_entry(ret_flight, &entry);
        }
        qsort(ret_flight->in_flight, ret_flight->n_in_flight, sizeof(*ret_flight->in_flight), compare_taken);
        qsort(ret_flight->ended, ret_flight->n_ended, sizeof(*ret_flight->ended), compare_ended);
        r = sl_stats_check(view, error);
        if (r < 0)
                flight_deinit(ret_flight);
        return r;
}

void flight_deinit(struct flight *flight)
{
        free(flight->in_flight);
        free(flight->ended);
        flight->in_flight = flight->ended = NULL;
}

uint64_t flight_unix_ns(const struct flight *flight, uint64_t ns)
{
        return flight->header.started_unix_ns + (ns - flight->header.started_ns);
}

const char *flight_worker(const struct flight *flight, uint16_t worker, char *ret_text, size_t bytes)
{
        struct sl_worker_stats slot;
        char model[SL_STATS_MODEL_BYTES], executor[sizeof(slot.executor)];

        if (worker == SL_FLIGHT_SEVERAL)
                snprintf(ret_text, bytes, "several others");
        else if (sl_stats_read_worker(flight->view, worker - 1u, &slot) < 0)
                snprintf(ret_text, bytes, "a worker that is gone");
        else
                snprintf(ret_text, bytes, "worker %u of %s (%s, core %d)", worker - 1u,
                        quantity_text(slot.model, model, sizeof(model)), quantity_text(slot.executor, executor, sizeof(executor)),
                        slot.core);
        return ret_text;
}
