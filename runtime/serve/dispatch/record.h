/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stages of a request, as the flight recorder and the trace keep them (shm/recorder.h): what the dispatcher knows of it, in the
 * words of the stats page. Dispatcher only. A request without a record costs a look at its pointer.
 */
#pragma once

#include "recorder.h"

struct sl_dispatcher;
struct sl_executor;
struct sl_prediction;
struct sl_queue;
struct sl_request;

/* It gets a record, or with one that it has (it was parked) comes to this stage. */
void sl_record_begin(struct sl_dispatcher *dispatcher, struct sl_request *request, enum sl_flight_stage stage);

/* A piece was answered, or lost: times of the request are as they are from now on. */
void sl_record_piece(struct sl_dispatcher *dispatcher, const struct sl_request *request, const struct sl_executor *worker,
        const struct sl_prediction *prediction);

/* It is over. The record is not its any more. */
void sl_record_end(struct sl_dispatcher *dispatcher, struct sl_request *request, int32_t status);

/* The client of the queue pair slept so long, although a sampled request of it was done. */
void sl_record_woken(struct sl_dispatcher *dispatcher, const struct sl_queue *queue, uint64_t awake_ns);

/* What a worker is known by in records, from its slot in the stats page. */
void sl_record_worker(const struct sl_dispatcher *dispatcher, struct sl_executor *worker);
