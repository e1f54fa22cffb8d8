/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether what a tally says is about the system or about the generator. Pure.
 *
 *     late        the generator was late by itself, and that shows: without its lateness the latencies would be shorter by over a
 *                 tenth, at p99 or on average
 *     blocked     over 1 % of the requests had to wait for a place in flight: the load was not open any more
 *     unsent      requests were due and given up
 *     saturated   under 95 % of what was due was answered in the measured time: latencies then tell how long the run was
 *     failed      requests ended otherwise than answered, refused (-EBUSY, -EDQUOT) or expired (-ETIME)
 *     few         under SL_VERDICT_LEAST answers
 *
 * All but the last two are for open loops: a closed loop waits for the system by itself, and says so by its name.
 */
#pragma once

#include "tally.h"

#define SL_VERDICT_LEAST        100u
#define SL_VERDICT_REASONS      6u
#define SL_VERDICT_REASON_BYTES 200u

struct sl_verdict {
        bool valid;
        uint32_t n_reasons;
        char reasons[SL_VERDICT_REASONS][SL_VERDICT_REASON_BYTES]; /* why it is not; whole sentences with their numbers */
};

void sl_verdict_of(const struct sl_tally *tally, bool closed, struct sl_verdict *ret_verdict);

/* @share of what was measured is a figure only if at least 10 values lie beyond it; otherwise NaN. */
double sl_verdict_percentile(const struct sl_latencies *latencies, double share);
