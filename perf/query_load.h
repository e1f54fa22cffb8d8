/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load of queries on a task, and what became of each: one connection, one queue pair, an open loop. The same requests are asked
 * in several *ways*: each query chooses its variant, or all go to one, whatever they wish.
 *
 *     right      in time, and as accurate as wished
 *     degraded   in time, and at least as accurate as `least` says
 *     poor       in time, and less accurate than wished
 *     late       answered after its latency, given up at its deadline, or not sent any more
 *     refused    no variant would do, or had room
 *     failed     anything else
 *
 * Times count from when a request was due. One thread.
 */
#pragma once

#include "choice.h"
#include "histogram.h"
#include "starling.h"
#include "trace.h"

#include <stdbool.h>
#include <stdint.h>

struct starling_error;
struct sl_query_load;

#define SL_QUERY_WISHES_MAX   8u
#define SL_QUERY_STEPS_MAX    64u
#define SL_QUERY_VARIANTS_MAX 256u /* of a task */

#define SL_QUERY_ENDS(X)                                                                                                           \
        X(RIGHT, "right") X(DEGRADED, "degraded") X(POOR, "poor") X(LATE, "late") X(REFUSED, "refused") X(FAILED, "failed")

enum sl_query_end {
#define X(id, name) SL_QUERY_##id,
        SL_QUERY_ENDS(X)
#undef X
                SL_QUERY_ENDS_N
};

const char *sl_query_end_name(enum sl_query_end end);

struct sl_query_load_options {
        const char *runtime, *task;
        struct sl_needs wishes[SL_QUERY_WISHES_MAX];
        uint32_t samples[SL_QUERY_WISHES_MAX]; /* of a request of each */
        uint32_t n_wishes;
        uint32_t in_flight;           /* at most; 1 to 1024 */
        bool deadlines;               /* a wish's latency is its requests' deadline, too */
        const struct sl_trace *trace; /* what is due when; a request's model is its wish. NULL: closed loops alone */
        uint64_t step_ns;             /* of the trace */
        uint32_t n_steps;
};

struct sl_query_counts {
        uint64_t due, ends[SL_QUERY_ENDS_N];
        double accuracy; /* sum, of what was answered */
        uint64_t answered;
        struct sl_histogram latencies; /* of those */
};

struct sl_query_result {
        struct sl_query_counts wishes[SL_QUERY_WISHES_MAX], steps[SL_QUERY_STEPS_MAX];
        uint64_t answered_by[SL_QUERY_VARIANTS_MAX];
        int64_t begun_unix_ns; /* when the first was due */
        double seconds;        /* until the last was answered */
        double computed_s;     /* of all workers of the runtime, and of its dispatcher where that computes */
        char first_error[STARLING_TEXT_BYTES];
};

/* A variant, as the task had it at the start. */
struct sl_query_variant {
        char name[1152];
        double accuracy, cost;
        bool serves;
};

/*
 * Connects, and asks each variant that serves a few times, so that it is known what they take. @options outlives it. Return: 0;
 * -errno with text.
 */
int sl_query_load_new(const struct sl_query_load_options *options, struct sl_query_load **ret_load, struct starling_error *error);
struct sl_query_load *sl_query_load_free(struct sl_query_load *load);

/* In the order of the configuration. */
const struct sl_query_variant *sl_query_load_variants(const struct sl_query_load *load, uint32_t *ret_n);

/* @variant: all requests go to this one; UINT32_MAX: each query chooses. Return: 0; -EINTR; -errno with text. */
int sl_query_load_run(
        struct sl_query_load *load, uint32_t variant, struct sl_query_result *ret_result, struct starling_error *error);

/* A closed loop instead, of the first wish: as many in flight as may be, for so long. Latencies count from the submit. Return: as
 * sl_query_load_run(). */
int sl_query_load_close(struct sl_query_load *load, uint32_t variant, uint64_t for_ns, struct sl_query_result *ret_result,
        struct starling_error *error);
