/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace, asked of somebody, with what became of each of its requests. Latencies count from when a request was due. One thread.
 */
#pragma once

#include "trace.h"

struct sl_error;

struct replay_answer {
        uint64_t latency_ns;
        uint64_t queued_ns, batched_ns, computing_ns, combining_ns; /* of a runtime */
        int status;
};

/* @ret_answers: one for each request, in the trace's order. */

/* Of a runtime, by its name or socket. Return: 0; -errno with text. */
int replay_live(const struct sl_trace *trace, const char *runtime, struct replay_answer *ret_answers, struct sl_error *error);

/* Of the simulator; serving.h says what it serves. Return: the same. */
struct serving;
int replay_simulated(
        const struct sl_trace *trace, const struct serving *serving, struct replay_answer *ret_answers, struct sl_error *error);
