/* SPDX-License-Identifier: Apache-2.0 */
#include "sender.h"

#include "base/clock.h"
#include "stats.h"

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
        int last;

        count(stats, prediction);
        last = sl_accumulator_deliver(accumulator, piece->segment, piece->samples, prediction->status);
        if (last)
                prediction->combined_ns = sl_clock_ns();
        if (last < 0 && prediction->status == 0)
                prediction->status = last;
}
