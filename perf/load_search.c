/* SPDX-License-Identifier: Apache-2.0 */
#include "load_search.h"

#include "starling.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define RESOLUTION       0.02 /* of the rate */
#define BISECTIONS       10u
#define CONFIRMATIONS    12u
#define CONFIRM_FACTOR   0.9
#define ENOUGH_MARGIN    1.3
#define CAPACITY_MARGIN  1.1
#define CLOSED_IN_FLIGHT 64u

struct search {
        struct sl_load_session *session;
        const struct sl_load_level *level;
        struct sl_load_result *result;
        struct starling_error *error;
};

static const struct sl_load_options *options_of(const struct search *search)
{
        return search->result->options;
}

static int measure_capacity(const struct search *search)
{
        const struct sl_load_options *options = options_of(search);
        uint32_t most = options->client.in_flight;
        const struct sl_load_level level = {.closed = true, .in_flight = most < CLOSED_IN_FLIGHT ? most : CLOSED_IN_FLIGHT};
        struct sl_load_repeat repeat;
        int r = sl_load_session_run(search->session, &level, 0, &repeat, search->error);

        if (r < 0)
                return r;
        search->result->search.capacity_per_second = (double)repeat.tally.answered_in_time * 1e9 / (double)repeat.measured_ns;
        sl_tally_deinit(&repeat.tally);
        if (search->result->search.capacity_per_second > 0)
                return 0;
        snprintf(search->error->text, sizeof(search->error->text), "no request was answered in %.3g s",
                (double)options->duration_ns / 1e9);
        return -EIO;
}

/* Return: 1 the objective was kept, 0 it was not, -errno. */
static int try_rate(const struct search *search, double rate, uint32_t repeats, struct sl_load_point *point)
{
        struct sl_load_search *found = &search->result->search;
        struct sl_load_level level = *search->level;
        const struct sl_load_options *options = options_of(search);

        level.arrivals.rate = rate;
        int r = sl_load_point_init(point, options, &level);
        if (r == 0)
                r = sl_load_point_run(point, search->session, repeats, search->error);
        if (r < 0)
                return r;
        double latency_ns = sl_latencies_at(&point->tally.total, options->percentile);
        bool kept = point->verdict.valid && (double)point->tally.violations <= (1 - options->percentile) * (double)point->tally.due;

        if (found->n_steps < SL_LOAD_POINTS_MAX)
                found->steps[found->n_steps++] = (struct sl_load_step){.rate = rate, .latency_ns = latency_ns, .kept = kept};
        return kept;
}

/* Too few requests are no verdict. */
static bool has_enough(const struct search *search, double rate)
{
        return rate * (double)options_of(search)->duration_ns / 1e9 >= SL_VERDICT_LEAST * ENOUGH_MARGIN;
}

static int bisect(const struct search *search, double *ret_rate)
{
        double low = 0, high = search->result->search.capacity_per_second * CAPACITY_MARGIN;
        int r = 0;

        for (uint32_t i = 0; i < BISECTIONS && r >= 0 && high - low > RESOLUTION * high && has_enough(search, (low + high) / 2);
                i++) {
                struct sl_load_point point;
                double middle = (low + high) / 2;

                r = try_rate(search, middle, 1, &point);
                sl_load_point_deinit(&point);
                if (r > 0)
                        low = middle;
                else
                        high = middle;
        }
        *ret_rate = low;
        return r < 0 ? r : 0;
}

/* All repeats of the rate that was found, or of a lower one, become the point of the result. */
static int confirm(const struct search *search, double rate, uint32_t repeats)
{
        struct sl_load_result *result = search->result;
        struct sl_load_point *point = &result->points[result->n_points];
        int r = 0;

        for (uint32_t i = 0; i < CONFIRMATIONS && rate > 0; i++, rate *= CONFIRM_FACTOR) {
                r = try_rate(search, rate, repeats, point);
                if (r > 0) {
                        result->search.found_per_second = rate;
                        result->n_points++;
                        return 0;
                }
                if (r == 0 && i + 1 == CONFIRMATIONS) {
                        result->n_points++; /* the last one that was tried */
                        return 0;
                }
                sl_load_point_deinit(point);
                if (r < 0)
                        return r;
        }
        return r;
}

int sl_load_search(struct sl_load_session *session, const struct sl_load_level *level, uint32_t repeats,
        struct sl_load_result *result, struct starling_error *error)
{
        const struct search search = {.session = session, .level = level, .result = result, .error = error};
        double rate = 0;
        int r = measure_capacity(&search);

        if (r == 0)
                r = bisect(&search, &rate);
        if (r == 0)
                r = confirm(&search, rate, repeats);
        result->search.done = r == 0;
        return r;
}
