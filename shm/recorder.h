/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's side of records and spans (stats_layout.h): which record a request gets, and how it changes. A record goes in and
 * out of the hands of requests in the order in which they end, so that those that stay behind are the latest. No more records are
 * used than are in flight and SL_RECORDS_ENDED behind them: what comes back soon is still in a cache, all of them fill one.
 *
 * One thread writes, the dispatcher; readers are other processes, which never hold it up.
 *
 *   (Q1) dispatcher: seq odd; each word that changes, store-release; seq even, store-release.
 *   (Q2) reader:     load-acquire seq, even; each word, load-acquire; seq is still the same.      pairs with Q1 (seqlock.h)
 *
 * A crash between two stores leaves what the stores before it have made of the memory: the file is the memory. Of the one record
 * that was being changed seq stays odd, so a reader knows that it is torn. Whoever sees a record sees all that the dispatcher did
 * before it.
 */
#pragma once

#include "stats.h"

/* So many requests that have ended stay behind at least, where there are as many records. */
#define SL_RECORDS_ENDED 256u

struct sl_recorder {
        struct sl_flight_record *records; /* NULL: none is kept */
        uint32_t *free;                   /* [n_records] numbers, a ring: those in [taken, given_back) */
        uint32_t n_records, taken, given_back; /* n_records: a power of two */
        uint32_t n_used;                       /* [0, n_used) were taken some time */
        uint64_t number; /* of the latest request */

        /* The trace. Counted from the start; number n lies at n % count. */
        struct sl_flight_record *traced;
        struct sl_trace_span *spans;
        uint32_t n_traced, n_spans;
        uint64_t next_traced, next_span;
        uint32_t sampling; /* of 2^32 - 1 requests, how many are traced */
        uint64_t random;

        const struct sl_stats *stats;
};

/* Into the sections of @stats. Return: 0, -ENOMEM. */
int sl_recorder_init(struct sl_recorder *recorder, struct sl_stats *stats);
void sl_recorder_deinit(struct sl_recorder *recorder);

/* A record for a new request; of @content, number and `sampled` are set here. NULL: all are of requests in flight, or there are
 * none. NULL is fine below. */
struct sl_flight_record *sl_recorder_take(struct sl_recorder *recorder, struct sl_flight_record *content);

/* It has come to another stage, or another model takes it. */
void sl_record_stage(struct sl_flight_record *record, enum sl_flight_stage stage, uint64_t now_ns);
void sl_record_model(struct sl_flight_record *record, uint32_t model);

/* @samples more had their turn. */
void sl_record_broadcast(struct sl_flight_record *record, uint32_t samples, uint64_t now_ns);

/* A worker has got a piece of it; has answered one. @worker: as in the place. */
void sl_record_given(struct sl_flight_record *record, uint16_t worker, uint64_t now_ns);
void sl_record_answered(
        struct sl_flight_record *record, uint16_t worker, uint64_t started_ns, uint64_t staged_ns, uint64_t combined_ns);

/* The request ends: the record is another's from now on. What was sampled goes into the trace. */
void sl_recorder_end(struct sl_recorder *recorder, struct sl_flight_record *record, int32_t status, uint64_t now_ns);

/* What a worker did for the request of @record, or its client. Nothing happens unless that is sampled. */
void sl_recorder_span(struct sl_recorder *recorder, struct sl_trace_span *span);
