/* SPDX-License-Identifier: Apache-2.0 */
#include "sender.h"

#include "base/clock.h"
#include "stats.h"

#include <stdbool.h>

static void count(struct sl_worker_stats *stats, const struct sl_prediction *prediction)
{
        if (!prediction->batches)
                return;
        sl_counter_add(&stats->samples, prediction->job_samples);
        sl_counter_add(&stats->batches, prediction->batches);
        sl_counter_add(&stats->busy_ns, prediction->busy_ns);
}

void sl_sender_deliver(struct sl_accumulator *accumulator, const struct sl_job *job, struct sl_worker_stats *stats,
        struct sl_prediction *prediction)
{
        const struct sl_piece *piece = &job->pieces[prediction->piece];
        bool staged = sl_accumulator_segment(accumulator, piece->segment)->staging_bytes > 0;
        int last;

        count(stats, prediction);
        if (staged)
                prediction->staged_ns = sl_clock_ns();
        if (prediction->status == 0)
                sl_accumulator_note(accumulator, piece);
        last = sl_accumulator_deliver(accumulator, piece->segment, piece->samples, prediction->status);
        if (last)
                prediction->combined_ns = staged ? sl_clock_ns() : prediction->staged_ns;
        if (last < 0 && prediction->status == 0)
                prediction->status = last;
}
