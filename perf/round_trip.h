/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests through the client library, one after the other or in batches; no-ops cost what the path itself costs. The calling
 * thread owns the queue pair, which has nothing in flight before and after.
 */
#pragma once

#include "latencies.h"

#include <stdint.h>

struct starling_queue;
struct starling_request;

/*
 * @rounds times: submit one request, poll until it has completed, never sleep; stops early after @limit_ns (0: no limit). Adds the
 * ticks (ticks.h) of each round after the first @warm_up. Return: 0; -ETIMEDOUT: no answer for seconds; a status of a completion;
 * as starling_submit() and starling_poll().
 */
int sl_round_trip_spin(
        struct starling_queue *queue, uint32_t warm_up, uint32_t rounds, uint64_t limit_ns, struct sl_latencies *samples);

/* The same with a request to a model, @warm_up and then @rounds times without a limit of time. */
int sl_round_trip_request(struct starling_queue *queue, const struct starling_request *request, uint32_t warm_up, uint32_t rounds,
        struct sl_latencies *samples);

/* @rounds times starling_infer(), which sleeps when spinning does not help. Adds ticks. Return: as starling_infer(). */
int sl_round_trip_infer(
        struct starling_queue *queue, const struct starling_request *request, uint32_t rounds, struct sl_latencies *samples);

/*
 * @rounds times: sleep @pause_us, submit, wait. Adds nanoseconds. Client and runtime sleep when the request comes, and the client
 * sleeps while it is answered. Return: as above.
 */
int sl_round_trip_sleep(struct starling_queue *queue, uint32_t rounds, uint32_t pause_us, struct sl_latencies *samples);

/* Requests answered per second when they are published in batches of 32, with up to @depth in flight, for @duration_ns. */
int sl_round_trip_throughput(struct starling_queue *queue, uint32_t depth, uint64_t duration_ns, double *ret_per_second);
