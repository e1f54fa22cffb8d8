/* SPDX-License-Identifier: Apache-2.0 */
#include "arrivals.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define NS_PER_SECOND 1e9
#define STREAM        1u
#define STREAM_SPIKES 2u

static const char *const names[] = {
#define X(id, name, text) name,
        SL_ARRIVALS(X)
#undef X
};

const char *sl_arrivals_name(enum sl_arrivals_kind kind)
{
        return names[kind];
}

int sl_arrivals_named(const char *name, enum sl_arrivals_kind *ret_kind)
{
        for (int i = 0; i < SL_ARRIVALS_N; i++) {
                if (strcmp(name, names[i]) == 0) {
                        *ret_kind = (enum sl_arrivals_kind)i;
                        return 0;
                }
        }
        return -EINVAL;
}

void sl_arrivals_init(struct sl_arrivals *arrivals, const struct sl_arrivals_options *options)
{
        *arrivals = (struct sl_arrivals){.options = *options};
        sl_random_seed(&arrivals->random, options->seed, STREAM);
}

static double diurnal_rate(const struct sl_arrivals_options *options, double at_s)
{
        return options->rate * (1 + options->swing * sin(2 * M_PI * at_s / options->period_s));
}

/* Between spikes, such that the mean is `rate`. */
static double usual_rate(const struct sl_arrivals_options *options)
{
        return options->rate / (1 + (options->spike_times - 1) * options->spike_s / options->period_s);
}

/* The spike of each period begins at a place of its own. */
static double spikes_rate(const struct sl_arrivals_options *options, double at_s)
{
        double period = floor(at_s / options->period_s), within_s = at_s - period * options->period_s;
        double begin_s = sl_random_of(options->seed + STREAM_SPIKES, (uint64_t)period) * (options->period_s - options->spike_s);
        bool inside = within_s >= begin_s && within_s < begin_s + options->spike_s;

        return usual_rate(options) * (inside ? options->spike_times : 1);
}

double sl_arrivals_rate_at(const struct sl_arrivals_options *options, double at_s)
{
        switch (options->kind) {
        case SL_ARRIVALS_DIURNAL:
                return diurnal_rate(options, at_s);
        case SL_ARRIVALS_SPIKES:
                return spikes_rate(options, at_s);
        default:
                return options->rate;
        }
}

static double highest_rate(const struct sl_arrivals_options *options)
{
        return options->kind == SL_ARRIVALS_DIURNAL ? options->rate * (1 + options->swing)
                                                    : usual_rate(options) * options->spike_times;
}

/* Candidates come at the highest rate, and each stays with the share that the rate of its moment is of that. */
static double next_thinned(struct sl_arrivals *arrivals)
{
        double highest = highest_rate(&arrivals->options), at_ns = arrivals->at_ns;

        do
                at_ns += sl_random_exponential(&arrivals->random, NS_PER_SECOND / highest);
        while (sl_random_uniform(&arrivals->random) * highest > sl_arrivals_rate_at(&arrivals->options, at_ns / NS_PER_SECOND));
        return at_ns;
}

static double next_of_burst(struct sl_arrivals *arrivals)
{
        if (arrivals->left == 0) {
                arrivals->left = arrivals->options.burst;
                arrivals->at_ns +=
                        sl_random_exponential(&arrivals->random, arrivals->options.burst * NS_PER_SECOND / arrivals->options.rate);
        }
        arrivals->left--;
        return arrivals->at_ns;
}

uint64_t sl_arrivals_next(struct sl_arrivals *arrivals)
{
        switch (arrivals->options.kind) {
        case SL_ARRIVALS_CONSTANT:
                arrivals->at_ns += NS_PER_SECOND / arrivals->options.rate;
                break;
        case SL_ARRIVALS_BURSTS:
                arrivals->at_ns = next_of_burst(arrivals);
                break;
        case SL_ARRIVALS_DIURNAL:
        case SL_ARRIVALS_SPIKES:
                arrivals->at_ns = next_thinned(arrivals);
                break;
        default:
                arrivals->at_ns += sl_random_exponential(&arrivals->random, NS_PER_SECOND / arrivals->options.rate);
        }
        return (uint64_t)arrivals->at_ns;
}
