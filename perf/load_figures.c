/* SPDX-License-Identifier: Apache-2.0 */
#include "load_figures.h"

#include <math.h>

#define FIGURE(name) figures[SL_LOAD_FIGURE_##name]

const struct sl_load_figure_kind *sl_load_figure_kind(enum sl_load_figure figure)
{
        static const struct sl_load_figure_kind kinds[] = {
#define X(id, key, unit, better, text) {key, text, SL_UNIT_##unit, SL_BETTER_##better},
                SL_LOAD_FIGURES(X)
#undef X
        };

        return &kinds[figure];
}

static void fill_rates(const struct sl_load_repeat *repeat, double *figures)
{
        const struct sl_tally *tally = &repeat->tally;
        double seconds = (double)repeat->measured_ns / 1e9;
        double within = (double)(tally->due - tally->violations);

        FIGURE(OFFERED) = (double)tally->due / seconds;
        FIGURE(ANSWERED) = (double)tally->answered_in_time / seconds;
        FIGURE(SAMPLES) = (double)tally->samples_in_time / seconds;
        FIGURE(WITHIN) = tally->options.objective_ns ? within / seconds : NAN;
        FIGURE(VIOLATIONS) = (double)tally->violations / (double)tally->due;
}

static void fill_latencies(const struct sl_tally *tally, double *figures)
{
        FIGURE(LATENCY_MEAN) = sl_latencies_mean(&tally->total);
        FIGURE(LATENCY_P50) = sl_verdict_percentile(&tally->total, 0.5);
        FIGURE(LATENCY_P90) = sl_verdict_percentile(&tally->total, 0.9);
        FIGURE(LATENCY_P95) = sl_verdict_percentile(&tally->total, 0.95);
        FIGURE(LATENCY_P99) = sl_verdict_percentile(&tally->total, 0.99);
        FIGURE(LATENCY_P999) = sl_verdict_percentile(&tally->total, 0.999);
        FIGURE(LATENCY_P9999) = sl_verdict_percentile(&tally->total, 0.9999);
        FIGURE(LATENCY_MAX) = sl_latencies_at(&tally->total, 1);
        for (int i = 0; i < SL_LOAD_STAGES_N; i++)
                figures[SL_LOAD_FIGURE_SENDING_MEAN + i] = sl_latencies_mean(&tally->stages[i]);
        FIGURE(LATENESS_P99) = sl_verdict_percentile(&tally->lateness, 0.99);
}

static double over(double value, double by)
{
        return by > 0 ? value / by : NAN;
}

static void fill_costs(const struct sl_load_repeat *repeat, double *figures)
{
        const struct sl_runtime_account *before = &repeat->before, *after = &repeat->after;
        double answered = (double)repeat->tally.answered_in_time, compute = (double)(after->compute_ns - before->compute_ns);
        double busy = (double)(after->busy_ns - before->busy_ns), combining = (double)(after->combining_ns - before->combining_ns);
        double cpu = (double)(after->cpu_ns - before->cpu_ns);
        bool known = before->known && after->known, measured = before->measured && after->measured;

        FIGURE(CLIENT_CPU) = over((double)repeat->client_cpu_ns, answered);
        FIGURE(CLIENT_RSS) = (double)repeat->client_rss_bytes;
        FIGURE(RUNTIME_CPU) = measured ? over(cpu, answered) : NAN;
        FIGURE(RUNTIME_RSS) = measured ? (double)after->rss_bytes : NAN;
        FIGURE(OWN) = known ? over(busy - compute + combining, compute) : NAN;
        FIGURE(OWN_CPU) = measured ? over(cpu - compute, compute) : NAN;
        FIGURE(WAKES) = known ? over((double)(after->wakes - before->wakes), answered) : NAN;
        FIGURE(BATCH) =
                known ? over((double)(after->batch_samples - before->batch_samples), (double)(after->batches - before->batches))
                      : NAN;
}

void sl_load_figures_of(const struct sl_load_repeat *repeat, double ret_figures[SL_LOAD_FIGURES_N])
{
        fill_rates(repeat, ret_figures);
        fill_latencies(&repeat->tally, ret_figures);
        fill_costs(repeat, ret_figures);
}
