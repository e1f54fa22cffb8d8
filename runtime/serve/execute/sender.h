/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last stage, on whichever thread of the runtime has a piece's prediction first: delivers it to the accumulator (which combines
 * when it is the last) and counts it.
 */
#pragma once

#include "accumulator.h"
#include "job.h"

struct sl_worker_stats;

/* @prediction, of a piece of @job: staged_ns and combined_ns are filled here, and a status where combining came too late. */
void sl_sender_deliver(struct sl_accumulator *accumulator, const struct sl_job *job, struct sl_worker_stats *stats,
        struct sl_prediction *prediction);
