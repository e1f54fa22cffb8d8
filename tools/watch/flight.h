/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of a stats page's flight recorder: what is or was in flight, and what ended last. Nothing of the page is believed: a
 * record that cannot be is counted and left out. One thread.
 */
#pragma once

#include "stats.h"

struct sl_error;

struct flight_entry {
        struct sl_flight_record record;
        bool torn; /* it was being changed: parts of it are as before, or it was another request's */
        char model[SL_STATS_MODEL_BYTES];
};

struct flight {
        struct sl_stats_header header;
        bool live;
        uint64_t last_ns; /* the latest time in any record; CLOCK_MONOTONIC */
        uint32_t n_records, n_torn, n_damaged;
        uint32_t n_in_flight, n_ended;
        struct flight_entry *in_flight; /* the oldest first */
        struct flight_entry *ended;     /* the latest first */
        const struct sl_stats_view *view;
};

/* @view stays the caller's, and open. Return: 0; -ENODATA no records are kept; -EBADMSG the page was cut off meanwhile; -ENOMEM.
 * With text. */
int flight_read(const struct sl_stats_view *view, struct flight *ret_flight, struct sl_error *error);
void flight_deinit(struct flight *flight);

/* CLOCK_REALTIME of a time in a record. */
uint64_t flight_unix_ns(const struct flight *flight, uint64_t ns);

/* "lenet (thread, core 1)" into @ret_text, of a place's worker. */
const char *flight_worker(const struct flight *flight, uint16_t worker, char *ret_text, size_t bytes);
