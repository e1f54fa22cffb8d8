/* SPDX-License-Identifier: Apache-2.0 */
#include "load_point.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_label(struct sl_load_point *point, const struct sl_load_options *options)
{
        const struct sl_load_level *level = &point->level;

        if (level->requests)
                snprintf(point->label, sizeof(point->label), "%llu requests at once", (unsigned long long)level->requests);
        else if (level->closed)
                snprintf(point->label, sizeof(point->label), "closed, %u in flight", level->in_flight);
        else if (options->trace)
                snprintf(
                        point->label, sizeof(point->label), "trace, %.6g times its speed", options->speed > 0 ? options->speed : 1);
        else
                snprintf(point->label, sizeof(point->label), "%s, %.6g/s", sl_arrivals_name(level->arrivals.kind),
                        level->arrivals.rate);
}

int sl_load_point_init(struct sl_load_point *point, const struct sl_load_options *options, const struct sl_load_level *level)
{
        const struct sl_tally_options window = {
                .until_ns = 1, .objective_ns = options->objective_ns, .n_models = options->client.n_models};

        *point = (struct sl_load_point){.level = *level};
        write_label(point, options);
        return sl_tally_init(&point->tally, &window);
}

void sl_load_point_deinit(struct sl_load_point *point)
{
        sl_tally_deinit(&point->tally);
        free(point->timeline);
        point->timeline = NULL;
}

static int add_timeline(struct sl_load_point *point, const struct sl_tally *tally)
{
        size_t bytes = SL_TALLY_SLICES * sizeof(*point->timeline);
        struct sl_tally_slice *timeline = aligned_alloc(alignof(struct sl_tally_slice), (point->n_repeats + 1) * bytes);

        if (!timeline)
                return -ENOMEM;
        if (point->timeline)
                memcpy(timeline, point->timeline, point->n_repeats * bytes);
        memcpy(timeline + (size_t)point->n_repeats * SL_TALLY_SLICES, tally->slices, bytes);
        free(point->timeline);
        point->timeline = timeline;
        return 0;
}

static int add_repeat(struct sl_load_point *point, const struct sl_load_repeat *repeat)
{
        double figures[SL_LOAD_FIGURES_N];
        int r = add_timeline(point, &repeat->tally);

        if (r < 0)
                return r;
        sl_load_figures_of(repeat, figures);
        for (int i = 0; i < SL_LOAD_FIGURES_N; i++)
                point->figures[i][point->n_repeats] = figures[i];
        point->measured_s[point->n_repeats++] = (double)repeat->measured_ns / 1e9;
        sl_tally_merge(&point->tally, &repeat->tally);
        return 0;
}

int sl_load_point_run(struct sl_load_point *point, struct sl_load_session *session, uint32_t repeats, struct starling_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < repeats && point->n_repeats < SL_LOAD_REPEATS_MAX && r == 0; i++) {
                struct sl_load_repeat repeat;

                r = sl_load_session_run(session, &point->level, point->n_repeats, &repeat, error);
                if (r < 0)
                        return r;
                r = add_repeat(point, &repeat);
                sl_tally_deinit(&repeat.tally);
        }
        sl_verdict_of(&point->tally, point->level.closed || point->level.requests, &point->verdict);
        return r;
}

/* Of all values together; NaN for what is no quantile. */
static double quantile_of_all(const struct sl_load_point *point, enum sl_load_figure figure)
{
        static const double shares[] = {0.5, 0.9, 0.95, 0.99, 0.999, 0.9999};
        int quantile = (int)figure - SL_LOAD_FIGURE_LATENCY_P50;

        if (figure == SL_LOAD_FIGURE_LATENCY_MAX)
                return sl_latencies_at(&point->tally.total, 1);
        return quantile >= 0 && quantile < (int)(sizeof(shares) / sizeof(shares[0]))
                       ? sl_verdict_percentile(&point->tally.total, shares[quantile])
                       : NAN;
}

struct sl_estimate sl_load_point_figure(const struct sl_load_point *point, enum sl_load_figure figure)
{
        struct sl_estimate estimate = sl_estimate_mean(point->figures[figure], point->n_repeats);
        double quantile = quantile_of_all(point, figure);

        for (uint32_t i = 0; i < point->n_repeats; i++)
                if (isnan(point->figures[figure][i]))
                        estimate.low = estimate.high = NAN;
        if (figure >= SL_LOAD_FIGURE_LATENCY_P50 && figure <= SL_LOAD_FIGURE_LATENCY_MAX)
                estimate.value = quantile;
        return estimate;
}

double sl_load_point_percentile(const struct sl_load_point *point, double share)
{
        return sl_verdict_percentile(&point->tally.total, share);
}
