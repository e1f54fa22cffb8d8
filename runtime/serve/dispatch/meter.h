/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the dispatcher counts, and where: its own counters, those of clients, of ensembles. Dispatcher only; relaxed stores into
 * the stats page (shm/stats.h), no system call.
 */
#pragma once

#include "stats.h"

#include <stdint.h>

struct sl_dispatcher;
struct sl_ensemble;
struct sl_prediction;
struct sl_queue;
struct sl_request;

/* @n entries were taken from this queue pair in one pass. */
void sl_meter_taken(struct sl_dispatcher *dispatcher, struct sl_queue *queue, uint32_t n);

/* What a status says by itself about why an entry was refused. */
enum sl_refusal sl_meter_cause(int status);

/* An entry was refused; @ensemble is NULL when none was found. */
void sl_meter_refused(
        struct sl_dispatcher *dispatcher, struct sl_queue *queue, const struct sl_ensemble *ensemble, enum sl_refusal cause);

/* A request that was accepted is about to end with -EDQUOT, so that a user with less gets its place. */
void sl_meter_taken_back(struct sl_dispatcher *dispatcher);

/* An entry became a request. */
void sl_meter_accepted(const struct sl_request *request);

/* @n completions were published. */
void sl_meter_published(struct sl_dispatcher *dispatcher, struct sl_queue *queue, uint32_t n);

/* A piece was answered. */
void sl_meter_prediction(const struct sl_request *request, const struct sl_prediction *prediction);

/* The same for the worker that made it, and for the let on which that was. */
void sl_meter_piece(struct sl_histogram_set *histograms, const struct sl_request *request, const struct sl_prediction *prediction);
void sl_meter_let(struct sl_let_stats *let, const struct sl_prediction *prediction, uint32_t priority);

/* Members were not asked for so many predictions; were asked, and are not in the result. */
void sl_meter_skipped(const struct sl_request *request, uint64_t predictions);
void sl_meter_missed(const struct sl_request *request, uint64_t predictions);

/* The process that had a piece is gone. */
void sl_meter_lost(const struct sl_request *request);

/* A request that has failed here goes to another ensemble, where it is accepted anew. */
void sl_meter_moved(const struct sl_request *request);

/* A request ends; its times are final. @now_ns is for the total. */
void sl_meter_ended(const struct sl_request *request, int status, uint64_t now_ns);
