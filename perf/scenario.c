/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

static const struct {
        const char *name;
        uint32_t samples;
        double percentile;
        uint64_t queries;
} kinds[] = {
#define X(id, name, samples, percentile, queries) {name, samples, percentile, queries},
        SL_SCENARIOS(X)
#undef X
};

const char *sl_scenario_name(enum sl_scenario_kind kind)
{
        return kinds[kind].name;
}

int sl_scenario_named(const char *name, enum sl_scenario_kind *ret_kind)
{
        for (int i = 0; i < SL_SCENARIOS_N; i++) {
                if (strcmp(name, kinds[i].name) == 0) {
                        *ret_kind = (enum sl_scenario_kind)i;
                        return 0;
                }
        }
        return -EINVAL;
}

uint32_t sl_scenario_samples(enum sl_scenario_kind kind)
{
        return kinds[kind].samples;
}

double sl_scenario_percentile(enum sl_scenario_kind kind)
{
        return kinds[kind].percentile;
}

const char *sl_scenario_metric(enum sl_scenario_kind kind)
{
        static const char *const texts[] = {"90th percentile of latency, ns", "99th percentile of the latency of eight samples, ns",
                "queries per second with the 99th percentile below the bound", "samples per second"};

        return texts[kind];
}

/* P(at most @over slow ones of n) falls with n, if the share of slow ones is 1 - @percentile. */
uint64_t sl_scenario_queries(uint64_t over, double percentile)
{
        uint64_t low = over, high = 2 * over + 16;

        while (sl_estimate_binomial(over, high, 1 - percentile) >= 1 - SL_SCENARIO_CONFIDENCE)
                high *= 2;
        while (high - low > 1) {
                uint64_t middle = low + (high - low) / 2;

                if (sl_estimate_binomial(over, middle, 1 - percentile) < 1 - SL_SCENARIO_CONFIDENCE)
                        high = middle;
                else
                        low = middle;
        }
        return high;
}

/* The slowest ones that so many queries may leave out; 0: none may be, and there is no estimate. */
static uint64_t left_out(uint64_t queries, double percentile)
{
        uint64_t low = 0, high = queries;

        while (high - low > 1) {
                uint64_t middle = low + (high - low) / 2;

                if (sl_scenario_queries(middle, percentile) <= queries)
                        low = middle;
                else
                        high = middle;
        }
        return low;
}

/* The estimate is the largest latency that is not left out. */
static double stopped_percentile(const struct sl_latencies *latencies, double percentile)
{
        uint64_t out = left_out(latencies->n, percentile);

        return out == 0 ? NAN : sl_latencies_at(latencies, (double)(latencies->n - out + 1) / (double)latencies->n);
}

static double longest_s(const struct sl_load_point *point)
{
        double longest = 0;

        for (uint32_t i = 0; i < point->n_repeats; i++)
                longest = fmax(longest, point->measured_s[i]);
        return longest;
}

static void judge_server(const struct sl_load_point *point, struct sl_load_scenario *to)
{
        const struct sl_tally *tally = &point->tally;

        to->metric = sl_load_point_figure(point, SL_LOAD_FIGURE_OFFERED).value;
        to->early_stopping = stopped_percentile(&tally->total, kinds[SL_SCENARIO_SERVER].percentile);
        to->queries_wanted = sl_scenario_queries(tally->violations, kinds[SL_SCENARIO_SERVER].percentile);
        to->bound_kept = tally->options.objective_ns && tally->due >= to->queries_wanted;
}

void sl_scenario_judge(enum sl_scenario_kind kind, const struct sl_load_point *point, struct sl_load_scenario *ret_scenario)
{
        const struct sl_tally *tally = &point->tally;

        *ret_scenario = (struct sl_load_scenario){
                .kind = kind,
                .queries = kind == SL_SCENARIO_OFFLINE ? tally->samples : tally->due,
                .queries_wanted = kinds[kind].queries,
                .early_stopping = NAN,
                .seconds = longest_s(point),
                .bound_kept = true,
        };
        if (kind == SL_SCENARIO_SERVER) {
                judge_server(point, ret_scenario);
        } else if (kind == SL_SCENARIO_OFFLINE) {
                ret_scenario->metric = sl_load_point_figure(point, SL_LOAD_FIGURE_SAMPLES).value;
        } else {
                ret_scenario->metric = sl_load_point_percentile(point, kinds[kind].percentile);
                ret_scenario->early_stopping = stopped_percentile(&tally->total, kinds[kind].percentile);
        }
        ret_scenario->long_enough = ret_scenario->seconds >= SL_SCENARIO_SECONDS;
        ret_scenario->enough_queries = ret_scenario->queries >= ret_scenario->queries_wanted;
}

bool sl_scenario_follows_rules(const struct sl_load_scenario *scenario)
{
        return scenario->long_enough && scenario->enough_queries && scenario->bound_kept;
}

static json_t *number(double value)
{
        return isfinite(value) ? json_real(value) : json_null();
}

struct json_t *sl_scenario_json(const struct sl_load_scenario *scenario)
{
        return json_pack("{s:s, s:s, s:o, s:o, s:f, s:f, s:I, s:I, s:b, s:b, s:b, s:b, s:b, s:s}", "name",
                sl_scenario_name(scenario->kind), "metric", sl_scenario_metric(scenario->kind), "value", number(scenario->metric),
                "early_stopping_ns", number(scenario->early_stopping), "seconds", scenario->seconds, "seconds_wanted",
                SL_SCENARIO_SECONDS, "queries", (json_int_t)scenario->queries, "queries_wanted",
                (json_int_t)scenario->queries_wanted, "long_enough", scenario->long_enough, "enough_queries",
                scenario->enough_queries, "bound_kept", scenario->bound_kept, "follows_rules", sl_scenario_follows_rules(scenario),
                "mlperf_compliant", 0, "why_not_compliant", "not MLPerf's LoadGen, generated inputs, no accuracy run");
}
