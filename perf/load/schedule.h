/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked for, and when: arrivals with a mix of models, or a trace that is replayed. The same options give the same requests.
 * Several threads that share a schedule each have one with a `part` of their own: together they ask for exactly what one would.
 * Pure; one thread.
 */
#pragma once

#include "arrivals.h"
#include "trace.h"

struct sl_mix;

struct sl_schedule_options {
        struct sl_arrivals_options arrivals;
        const struct sl_mix *mix;     /* outlives the schedule */
        const uint32_t *samples;      /* of a request to each model of the mix */
        const struct sl_trace *trace; /* not NULL: instead of all of the above; again from its start when it has ended */
        double speed;                 /* of the trace: 2 asks for it in half its time; 0 is 1 */
        uint64_t seed;                /* of the mix */
        uint32_t part, parts;         /* every parts-th request, beginning with number `part`; parts 0 is 1 */
};

struct sl_schedule {
        struct sl_schedule_options options;
        struct sl_arrivals arrivals;
        struct sl_random random;
        uint64_t number; /* of requests until now, those of other parts included */
};

void sl_schedule_init(struct sl_schedule *schedule, const struct sl_schedule_options *options);

/* The next request of this part. A trace begins again one mean gap after its last request. */
void sl_schedule_next(struct sl_schedule *schedule, struct sl_load_request *ret_request);
