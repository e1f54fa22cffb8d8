/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

#include "mix.h"

#define STREAM_MIX 3u

void sl_schedule_init(struct sl_schedule *schedule, const struct sl_schedule_options *options)
{
        *schedule = (struct sl_schedule){.options = *options};
        if (schedule->options.parts == 0)
                schedule->options.parts = 1;
        if (!(schedule->options.speed > 0))
                schedule->options.speed = 1;
        sl_arrivals_init(&schedule->arrivals, &options->arrivals);
        sl_random_seed(&schedule->random, options->seed, STREAM_MIX);
}

/* How long a trace takes until it begins again. */
static double trace_round_ns(const struct sl_trace *trace)
{
        double last_ns = (double)trace->requests[trace->n_requests - 1].due_ns;

        return trace->n_requests > 1 ? last_ns + last_ns / (double)(trace->n_requests - 1) : last_ns + 1;
}

static void next_of_trace(const struct sl_schedule *schedule, struct sl_load_request *ret_request)
{
        const struct sl_trace *trace = schedule->options.trace;
        double round = (double)(schedule->number / trace->n_requests);

        *ret_request = trace->requests[schedule->number % trace->n_requests];
        ret_request->due_ns = (uint64_t)(((double)ret_request->due_ns + round * trace_round_ns(trace)) / schedule->options.speed);
}

static void next_of_all(struct sl_schedule *schedule, struct sl_load_request *ret_request)
{
        if (schedule->options.trace) {
                next_of_trace(schedule, ret_request);
        } else {
                ret_request->due_ns = sl_arrivals_next(&schedule->arrivals);
                ret_request->model = sl_mix_pick(schedule->options.mix, &schedule->random);
                ret_request->samples = schedule->options.samples[ret_request->model];
        }
        schedule->number++;
}

void sl_schedule_next(struct sl_schedule *schedule, struct sl_load_request *ret_request)
{
        do
                next_of_all(schedule, ret_request);
        while ((schedule->number - 1) % schedule->options.parts != schedule->options.part);
}
