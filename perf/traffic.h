/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load of requests to one model: slots with tensors of their own, filled once, sent again and again.
 *
 *     closed loop   a slot is sent again as soon as it has completed: `concurrency` requests are always in flight
 *     open loop     requests are due at Poisson times that do not depend on what the runtime does; a latency counts from the time
 *                   when the request was due, so that waiting for a slot counts too
 *
 * One thread, which owns the queue pair.
 */
#pragma once

#include "latencies.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct starling_error;
struct sl_traffic;

/* What an input's tensors are, where the model leaves more than the batch open. */
struct sl_traffic_shape {
        const char *input;
        size_t name_bytes;
        uint32_t rank, dims[8];
};

#define SL_TRAFFIC_SHAPES_MAX 16

struct sl_traffic_options {
        const char *runtime, *model;
        uint32_t samples;     /* of a request */
        uint32_t concurrency; /* slots, 1 to 1024 */
        double rate;          /* requests due per second; 0: closed loop */
        uint64_t warm_up_ns, duration_ns;
        uint32_t n_shapes;
        struct sl_traffic_shape shapes[SL_TRAFFIC_SHAPES_MAX]; /* what is open and is not here is 1 */
};

struct sl_traffic_result {
        struct sl_latencies latencies; /* ns; of requests that completed with 0 */
        uint64_t completed, failed;
        int first_failure; /* -errno of the first that failed */
        uint64_t elapsed_ns;
        uint64_t queued_ns, batched_ns, computing_ns, combining_ns; /* sums over `completed` */
        uint64_t latest_ns;                                         /* open loop: how late the last request was sent, at most */
        bool ensemble;
};

/* Connects, opens the model, makes slots. Return: 0, -errno with text. */
int sl_traffic_new(const struct sl_traffic_options *options, struct sl_traffic **ret_traffic, struct starling_error *error);

/* Runs for warm-up and duration, then waits for what is in flight. @result is zeroed by the caller, who frees its latencies.
 * Return: 0, -errno. */
int sl_traffic_run(struct sl_traffic *traffic, struct sl_traffic_result *result);

/* What the last request was refused with; "". */
const char *sl_traffic_error(const struct sl_traffic *traffic);

struct sl_traffic *sl_traffic_free(struct sl_traffic *traffic);
