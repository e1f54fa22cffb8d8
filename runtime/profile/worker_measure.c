/* SPDX-License-Identifier: Apache-2.0 */
#include "worker_measure.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "quantile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROUND_NS         50000000ull
#define ROUNDS_MAX       1000u
#define BATCHES_OF_ROUND 4u /* of the slowest worker, when workers are beside each other */

/* One number a round for each worker: a latency, or a slow-down. */
struct series {
        double items[ROUNDS_MAX], sorted[ROUNDS_MAX];
        uint32_t n;
};

static struct sl_interval series_interval(struct series *series)
{
        memcpy(series->sorted, series->items, series->n * sizeof(*series->items));
        sl_quantile_sort(series->sorted, series->n);
        return sl_interval_of_median(series->sorted, series->n);
}

static bool is_narrow(struct series *series, double width)
{
        struct sl_interval interval = series_interval(series);

        return series->n >= SL_INTERVAL_MIN && sl_interval_width(&interval) <= width;
}

static double round_median(struct sl_timed_worker *worker, size_t first)
{
        size_t n = worker->n_latencies - first;
        SL_CLEANUP(sl_cleanup_free) double *sorted = n ? malloc(n * sizeof(*sorted)) : NULL;

        if (!sorted)
                return (double)worker->span_ns / (double)worker->n_runs;
        memcpy(sorted, worker->latencies_ns + first, n * sizeof(*sorted));
        sl_quantile_sort(sorted, n);
        return sl_quantile(sorted, n, 0.5);
}

static uint64_t end_of(const struct sl_measure_limits *limits)
{
        return sl_clock_ns() + (uint64_t)(limits->seconds * (double)SL_NS_PER_SECOND);
}

static void take_latencies(struct sl_timed_worker *worker, struct sl_worker_profile *profile)
{
        sl_quantile_sort(worker->latencies_ns, worker->n_latencies);
        profile->latency_p50_ns = sl_quantile(worker->latencies_ns, worker->n_latencies, 0.5);
        profile->latency_p95_ns = sl_quantile(worker->latencies_ns, worker->n_latencies, 0.95);
        profile->latency_p99_ns = sl_quantile(worker->latencies_ns, worker->n_latencies, 0.99);
}

/* The interval is that of rounds: it is made to hold the median of all batches as well. Too few rounds have none. */
static void take_interval(struct series *medians, struct sl_worker_profile *profile)
{
        struct sl_interval interval = series_interval(medians);

        if (medians->n < SL_INTERVAL_MIN)
                return;
        profile->latency_low_ns = interval.low < profile->latency_p50_ns ? interval.low : profile->latency_p50_ns;
        profile->latency_high_ns = interval.high > profile->latency_p50_ns ? interval.high : profile->latency_p50_ns;
}

static void add_run(struct sl_worker_profile *profile, const struct sl_timed_worker *worker, double *seconds)
{
        profile->runs += worker->n_runs;
        *seconds += (double)worker->span_ns / 1e9;
}

int sl_measure_alone(struct sl_timed_worker *worker, const struct sl_measure_limits *limits, struct sl_worker_profile *profile,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct series *medians = calloc(1, sizeof(*medians));
        uint64_t until = end_of(limits);
        double seconds = 0;
        bool narrow = false;
        int r = medians ? sl_worker_round(&worker, 1, ROUND_NS, false, limits->stops, error)
                        : sl_error_set(error, ENOMEM, "no memory for rounds");

        profile->runs = 0;
        while (r == 0 && !narrow && medians->n < ROUNDS_MAX && (!medians->n || sl_clock_ns() < until)) {
                size_t first = worker->n_latencies;

                r = sl_worker_round(&worker, 1, ROUND_NS, true, limits->stops, error);
                if (r < 0)
                        break;
                medians->items[medians->n++] = round_median(worker, first);
                add_run(profile, worker, &seconds);
                narrow = is_narrow(medians, limits->width);
        }
        if (r < 0)
                return r;
        take_latencies(worker, profile);
        take_interval(medians, profile);
        profile->rounds = medians->n;
        profile->converged = narrow;
        profile->samples_per_second = (double)(profile->runs * worker->batch) / seconds;
        profile->slowdown = 1;
        return 0;
}

/* ---- beside each other ---- */

struct together {
        struct sl_timed_worker *const *workers;
        uint32_t n;
        const struct sl_measure_limits *limits;
        struct sl_worker_profile *profiles;
        struct series *slowdowns, *medians; /* n of each */
        double seconds[SL_ROUND_WORKERS_MAX];
        uint64_t round_ns;
};

static double ns_of_batch(const struct sl_timed_worker *worker)
{
        return (double)worker->span_ns / (double)worker->n_runs;
}

/* A round is long beside the slowest batch: what begins and ends not quite together counts for little. */
static int choose_round(struct together *together, struct sl_error *error)
{
        int r = 0;

        together->round_ns = ROUND_NS;
        for (uint32_t i = 0; i < together->n && r == 0; i++) {
                r = sl_worker_round(&together->workers[i], 1, ROUND_NS, false, together->limits->stops, error);
                if (r < 0)
                        break;
                uint64_t wanted = BATCHES_OF_ROUND * (uint64_t)ns_of_batch(together->workers[i]);
                together->round_ns = wanted > together->round_ns ? wanted : together->round_ns;
        }
        return r;
}

static int together_round(struct together *together, struct sl_error *error)
{
        double alone_ns[SL_ROUND_WORKERS_MAX];
        size_t first[SL_ROUND_WORKERS_MAX];
        int r = 0;

        for (uint32_t i = 0; i < together->n && r == 0; i++) {
                r = sl_worker_round(&together->workers[i], 1, together->round_ns, false, together->limits->stops, error);
                alone_ns[i] = r == 0 ? ns_of_batch(together->workers[i]) : 0;
                first[i] = together->workers[i]->n_latencies;
        }
        if (r == 0)
                r = sl_worker_round(together->workers, together->n, together->round_ns, true, together->limits->stops, error);
        for (uint32_t i = 0; i < together->n && r == 0; i++) {
                struct sl_timed_worker *worker = together->workers[i];

                together->slowdowns[i].items[together->slowdowns[i].n++] = ns_of_batch(worker) / alone_ns[i];
                together->medians[i].items[together->medians[i].n++] = round_median(worker, first[i]);
                add_run(&together->profiles[i], worker, &together->seconds[i]);
        }
        return r;
}

static bool all_narrow(struct together *together)
{
        for (uint32_t i = 0; i < together->n; i++)
                if (!is_narrow(&together->slowdowns[i], together->limits->width))
                        return false;
        return true;
}

static void take_slowdown(struct together *together, uint32_t i)
{
        struct sl_worker_profile *profile = &together->profiles[i];
        struct sl_interval interval = series_interval(&together->slowdowns[i]);

        take_latencies(together->workers[i], profile);
        take_interval(&together->medians[i], profile);
        profile->samples_per_second = (double)(profile->runs * together->workers[i]->batch) / together->seconds[i];
        profile->rounds = together->slowdowns[i].n;
        profile->converged = is_narrow(&together->slowdowns[i], together->limits->width);
        profile->slowdown = interval.median;
        if (profile->rounds < SL_INTERVAL_MIN)
                return;
        profile->slowdown_low = interval.low;
        profile->slowdown_high = interval.high;
}

int sl_measure_together(struct sl_timed_worker *const *workers, uint32_t n, const struct sl_measure_limits *limits,
        struct sl_worker_profile *profiles, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct series *series = calloc(2 * n, sizeof(*series));
        struct together together = {
                .workers = workers, .n = n, .limits = limits, .profiles = profiles, .slowdowns = series, .medians = series + n};
        uint64_t until = end_of(limits);
        int r = series ? choose_round(&together, error) : sl_error_set(error, ENOMEM, "no memory for rounds");

        for (uint32_t i = 0; i < n; i++)
                profiles[i].runs = 0;
        for (uint32_t round = 0; r == 0 && round < ROUNDS_MAX && (!round || sl_clock_ns() < until); round++) {
                r = together_round(&together, error);
                if (r == 0 && all_narrow(&together))
                        break;
        }
        for (uint32_t i = 0; i < n && r == 0; i++)
                take_slowdown(&together, i);
        return r;
}
