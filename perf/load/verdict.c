/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LATE_SHARE    0.1
#define BLOCKED_SHARE 0.01
#define ANSWERED      0.95
#define BEYOND        10.0

__attribute__((format(printf, 2, 3))) static void add_reason(struct sl_verdict *verdict, const char *format, ...)
{
        va_list arguments;

        verdict->valid = false;
        if (verdict->n_reasons == SL_VERDICT_REASONS)
                return;
        va_start(arguments, format);
        vsnprintf(verdict->reasons[verdict->n_reasons++], SL_VERDICT_REASON_BYTES, format, arguments);
        va_end(arguments);
}

/* What the last percent shows, where there are enough to say so, and what all show together. */
static void judge_lateness(const struct sl_tally *tally, struct sl_verdict *to)
{
        double p99 = sl_verdict_percentile(&tally->total, 0.99), prompt_p99 = sl_verdict_percentile(&tally->prompt, 0.99);
        double mean = sl_latencies_mean(&tally->total), prompt_mean = sl_latencies_mean(&tally->prompt);

        if (p99 > (1 + LATE_SHARE) * prompt_p99)
                add_reason(to, "the generator was late: the latency at p99 is %.1f us, and %.1f us without that", p99 / 1e3,
                        prompt_p99 / 1e3);
        else if (mean > (1 + LATE_SHARE) * prompt_mean)
                add_reason(to, "the generator was late: the latency is %.1f us on average, and %.1f us without that", mean / 1e3,
                        prompt_mean / 1e3);
}

static void judge_load(const struct sl_tally *tally, struct sl_verdict *to)
{
        double due = (double)tally->due;

        if ((double)tally->blocked > BLOCKED_SHARE * due)
                add_reason(to, "the load was not open: %" PRIu64 " of %" PRIu64 " requests had to wait for a place in flight",
                        tally->blocked, tally->due);
        if (tally->unsent)
                add_reason(to, "%" PRIu64 " of %" PRIu64 " requests were due and never sent", tally->unsent, tally->due);
        if ((double)(tally->answered_in_time + tally->refused + tally->expired) < ANSWERED * due)
                add_reason(to,
                        "the runtime did not keep up: %" PRIu64 " of %" PRIu64 " requests were answered in the measured time",
                        tally->answered_in_time, tally->due);
}

void sl_verdict_of(const struct sl_tally *tally, bool closed, struct sl_verdict *ret_verdict)
{
        *ret_verdict = (struct sl_verdict){.valid = true};
        if (!closed) {
                judge_lateness(tally, ret_verdict);
                judge_load(tally, ret_verdict);
        }
        if (tally->failed)
                add_reason(ret_verdict, "%" PRIu64 " of %" PRIu64 " requests failed, the first with: %s", tally->failed, tally->due,
                        strerror(-tally->first_failure));
        if (tally->answered < SL_VERDICT_LEAST)
                add_reason(
                        ret_verdict, "%" PRIu64 " answers are too few, at least %u are wanted", tally->answered, SL_VERDICT_LEAST);
}

double sl_verdict_percentile(const struct sl_latencies *latencies, double share)
{
        /* The share is a decimal fraction: 1 - 0.99 is a little less than 0.01. */
        return (double)latencies->n * (1 - share) * (1 + 1e-9) >= BEYOND ? sl_latencies_at(latencies, share) : NAN;
}
