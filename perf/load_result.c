/* SPDX-License-Identifier: Apache-2.0 */
#include "load_result.h"

#include "machine.h"
#include "scenario.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#define CDF_BUCKETS 8u /* of the histogram that make one point of the distribution: 32 per doubling */

void sl_load_result_deinit(struct sl_load_result *result)
{
        for (uint32_t i = 0; i < result->n_points; i++)
                sl_load_point_deinit(&result->points[i]);
        json_decref(result->machine);
        result->n_points = 0;
        result->machine = NULL;
}

bool sl_load_result_is_valid(const struct sl_load_result *result)
{
        bool valid = result->n_points > 0;

        for (uint32_t i = 0; i < result->n_points; i++)
                valid = valid && result->points[i].verdict.valid;
        return valid;
}

/* ---- JSON ---- */

/* Six digits are more than any of this is worth, and NaN has no place in JSON. */
static json_t *number(double value)
{
        char text[32];

        if (!isfinite(value))
                return json_null();
        snprintf(text, sizeof(text), "%.7g", value);
        sscanf(text, "%lf", &value);
        return json_real(value);
}

static json_t *count(uint64_t value)
{
        return json_integer((json_int_t)value);
}

static json_t *text_or_null(const char *text)
{
        return text ? json_string(text) : json_null();
}

static json_t *command_json(const struct sl_load_result *result)
{
        json_t *command = json_array();

        for (int i = 0; i < result->argc; i++)
                json_array_append_new(command, json_string(i ? result->argv[i] : "load"));
        return command;
}

static json_t *noise_json(const struct sl_noise *noise)
{
        return json_pack("{s:o, s:o, s:b}", "floor_before_ns", number(noise->before_ns), "floor_after_ns", number(noise->after_ns),
                "quiet", sl_noise_is_quiet(noise));
}

static json_t *models_json(const struct sl_load_options *options)
{
        json_t *models = json_array();

        for (uint32_t i = 0; i < options->client.n_models; i++)
                json_array_append_new(models, json_pack("{s:s, s:o, s:i}", "name", options->client.models[i], "weight",
                                                      number(options->weights[i]), "samples", (int)options->client.samples[i]));
        return models;
}

static json_t *load_json(const struct sl_load_result *result)
{
        const struct sl_load_options *options = result->options;
        json_t *cpus = json_array();

        for (uint32_t i = 0; i < options->n_cpus; i++)
                json_array_append_new(cpus, json_integer(options->cpus[i]));
        return json_pack("{s:o, s:b, s:o, s:i, s:i, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "runtime",
                text_or_null(result->own_runtime ? NULL : options->client.runtime), "own_runtime", result->own_runtime, "models",
                models_json(options), "threads", (int)options->threads, "in_flight_max", (int)options->client.in_flight, "cpus",
                cpus, "waiting", options->client.spin ? "spin" : "sleep", "seed", count(options->seed), "warm_up_s",
                number((double)options->warm_up_ns / 1e9), "duration_s", number((double)options->duration_ns / 1e9), "objective_ns",
                options->objective_ns ? count(options->objective_ns) : json_null(), "percentile", number(options->percentile),
                "deadline_ns", options->client.deadline_ns ? count(options->client.deadline_ns) : json_null());
}

static json_t *figure_json(const struct sl_load_point *point, enum sl_load_figure figure)
{
        static const char *const units[] = {[SL_UNIT_NS] = "ns",
                [SL_UNIT_PER_SECOND] = "1/s",
                [SL_UNIT_TIMES] = "1",
                [SL_UNIT_SHARE] = "share",
                [SL_UNIT_BYTES] = "bytes"};
        static const char *const better[] = {"neither", "less", "more"};
        const struct sl_load_figure_kind *kind = sl_load_figure_kind(figure);
        struct sl_estimate estimate = sl_load_point_figure(point, figure);
        json_t *repeats = json_array();

        for (uint32_t i = 0; i < point->n_repeats; i++)
                json_array_append_new(repeats, number(point->figures[figure][i]));
        return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "unit", units[kind->unit], "better", better[kind->better], "value",
                number(estimate.value), "low", number(estimate.low), "high", number(estimate.high), "repeats", repeats);
}

static json_t *figures_json(const struct sl_load_point *point)
{
        json_t *figures = json_object();

        for (int i = 0; i < SL_LOAD_FIGURES_N; i++)
                json_object_set_new(
                        figures, sl_load_figure_kind((enum sl_load_figure)i)->key, figure_json(point, (enum sl_load_figure)i));
        return figures;
}

static json_t *latencies_json(const struct sl_latencies *latencies)
{
        return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "mean_ns", number(sl_latencies_mean(latencies)), "p50_ns",
                number(sl_verdict_percentile(latencies, 0.5)), "p90_ns", number(sl_verdict_percentile(latencies, 0.9)), "p99_ns",
                number(sl_verdict_percentile(latencies, 0.99)), "p999_ns", number(sl_verdict_percentile(latencies, 0.999)),
                "p9999_ns", number(sl_verdict_percentile(latencies, 0.9999)), "max_ns", number(sl_latencies_at(latencies, 1)));
}

static json_t *stages_json(const struct sl_tally *tally)
{
        json_t *stages = json_object();

        for (int i = 0; i < SL_LOAD_STAGES_N; i++)
                json_object_set_new(stages, sl_load_stage_name((enum sl_load_stage)i), latencies_json(&tally->stages[i]));
        return stages;
}

static json_t *by_model_json(const struct sl_load_options *options, const struct sl_tally *tally)
{
        json_t *models = json_array();

        for (uint32_t i = 0; i < options->client.n_models; i++) {
                json_t *model = latencies_json(&tally->models[i].total);

                json_object_set_new(model, "name", json_string(options->client.models[i]));
                json_object_set_new(model, "due", count(tally->models[i].due));
                json_object_set_new(model, "failed", count(tally->models[i].failed));
                json_array_append_new(models, model);
        }
        return models;
}

/* [ns, how many are not above it]. */
static json_t *distribution_json(const struct sl_latencies *latencies)
{
        json_t *points = json_array();
        uint64_t below = 0, in = 0;

        for (uint32_t i = 0; i < SL_LATENCIES_BUCKETS; i++) {
                in += latencies->buckets[i];
                if ((i + 1) % CDF_BUCKETS || in == 0)
                        continue;
                uint64_t end_ns = sl_latencies_begin(i + 1);

                below += in;
                in = 0;
                json_array_append_new(
                        points, json_pack("[o, o]", count(end_ns < latencies->most ? end_ns : latencies->most), count(below)));
        }
        return points;
}

/* [seconds since the first repeat was measured, due, answered, p50, p99, max]. */
static json_t *timeline_json(const struct sl_load_point *point)
{
        json_t *slices = json_array();
        double from_s = 0;

        for (uint32_t r = 0; r < point->n_repeats && point->level.requests == 0; r++) {
                for (uint32_t i = 0; i < SL_TALLY_SLICES; i++) {
                        const struct sl_tally_slice *slice = &point->timeline[r * SL_TALLY_SLICES + i];
                        uint64_t n = sl_counter_read(&slice->latencies.count);

                        json_array_append_new(
                                slices, json_pack("[o, o, o, o, o, o]", number(from_s + i * point->measured_s[r] / SL_TALLY_SLICES),
                                                count(slice->due), count(n), count(sl_histogram_quantile(&slice->latencies, 0.5)),
                                                count(sl_histogram_quantile(&slice->latencies, 0.99)),
                                                count(sl_counter_read(&slice->latencies.max_ns))));
                }
                from_s += point->measured_s[r];
        }
        return slices;
}

static json_t *requests_json(const struct sl_tally *tally)
{
        return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "due", count(tally->due), "answered", count(tally->answered),
                "samples", count(tally->samples), "refused", count(tally->refused), "expired", count(tally->expired), "failed",
                count(tally->failed), "unsent", count(tally->unsent), "blocked", count(tally->blocked));
}

static json_t *reasons_json(const struct sl_verdict *verdict)
{
        json_t *reasons = json_array();

        for (uint32_t i = 0; i < verdict->n_reasons; i++)
                json_array_append_new(reasons, json_string(verdict->reasons[i]));
        return reasons;
}

static json_t *point_json(const struct sl_load_options *options, const struct sl_load_point *point)
{
        const struct sl_load_level *level = &point->level;
        bool is_open = !level->closed && !level->requests && !options->trace;

        return json_pack("{s:s, s:o, s:o, s:b, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "label", point->label, "rate",
                is_open ? number(level->arrivals.rate) : json_null(), "in_flight",
                level->closed ? count(level->in_flight) : json_null(), "valid", point->verdict.valid, "repeats",
                (int)point->n_repeats, "reasons", reasons_json(&point->verdict), "requests", requests_json(&point->tally),
                "figures", figures_json(point), "stages", stages_json(&point->tally), "models",
                by_model_json(options, &point->tally), "distribution", distribution_json(&point->tally.total), "timeline",
                timeline_json(point));
}

static json_t *search_json(const struct sl_load_search *search)
{
        json_t *steps = json_array();

        if (!search->done) {
                json_decref(steps);
                return json_null();
        }
        for (uint32_t i = 0; i < search->n_steps; i++)
                json_array_append_new(steps, json_pack("{s:o, s:o, s:b}", "rate", number(search->steps[i].rate), "latency_ns",
                                                     number(search->steps[i].latency_ns), "kept", search->steps[i].kept));
        return json_pack("{s:o, s:o, s:o}", "capacity_per_second", number(search->capacity_per_second), "found_per_second",
                search->found_per_second > 0 ? number(search->found_per_second) : json_null(), "steps", steps);
}

struct json_t *sl_load_result_json(const struct sl_load_result *result)
{
        json_t *points = json_array();

        for (uint32_t i = 0; i < result->n_points; i++)
                json_array_append_new(points, point_json(result->options, &result->points[i]));
        return json_pack("{s:s, s:s, s:o, s:O, s:o, s:o, s:b, s:o, s:o, s:o}", "schema", SL_LOAD_RESULT_SCHEMA, "benchmark", "load",
                "command", command_json(result), "machine", result->machine, "noise", noise_json(&result->noise), "load",
                load_json(result), "valid", sl_load_result_is_valid(result), "points", points, "search",
                search_json(&result->search), "scenario", result->scenario ? sl_scenario_json(result->scenario) : json_null());
}

/* ---- the table ---- */

static void print_figure(const struct sl_load_point *point, enum sl_load_figure figure, FILE *stream)
{
        const struct sl_load_figure_kind *kind = sl_load_figure_kind(figure);
        struct sl_estimate estimate = sl_load_point_figure(point, figure);
        char name[48], value[32], interval[32] = "";

        if (!isfinite(estimate.value))
                return;
        snprintf(name, sizeof(name), "%s", kind->key);
        for (char *c = name; *c; c++)
                *c = *c == '_' ? ' ' : *c;
        sl_report_format(value, sizeof(value), kind->unit, estimate.value);
        if (isfinite(estimate.low) && estimate.low + estimate.high > 0)
                snprintf(interval, sizeof(interval), "+- %.1f %%",
                        100 * (estimate.high - estimate.low) / (estimate.high + estimate.low));
        fprintf(stream, "  %-30s %14s %12s  %s\n", name, value, interval, kind->text);
}

static void print_point(const struct sl_load_options *options, const struct sl_load_point *point, FILE *stream)
{
        fprintf(stream, "\n%s: %llu requests in %u repeat%s%s\n", point->label, (unsigned long long)point->tally.due,
                point->n_repeats, point->n_repeats == 1 ? "" : "s", point->verdict.valid ? "" : ", NOT VALID");
        for (uint32_t i = 0; i < point->verdict.n_reasons; i++)
                fprintf(stream, "  not valid: %s\n", point->verdict.reasons[i]);
        for (int i = 0; i < SL_LOAD_FIGURES_N; i++)
                print_figure(point, (enum sl_load_figure)i, stream);
        for (uint32_t i = 0; options->client.n_models > 1 && i < options->client.n_models; i++) {
                char p50[32], p99[32];
                const struct sl_latencies *latencies = &point->tally.models[i].total;

                sl_report_format(p50, sizeof(p50), SL_UNIT_NS, sl_verdict_percentile(latencies, 0.5));
                sl_report_format(p99, sizeof(p99), SL_UNIT_NS, sl_verdict_percentile(latencies, 0.99));
                fprintf(stream, "  model %-24s %14llu requests, p50 %s, p99 %s\n", options->client.models[i],
                        (unsigned long long)point->tally.models[i].due, p50, p99);
        }
}

static void print_search(const struct sl_load_result *result, FILE *stream)
{
        const struct sl_load_search *search = &result->search;
        char text[32];

        if (!search->done)
                return;
        fprintf(stream, "\nhighest rate with p%g at most %.6g ms:", 100 * result->options->percentile,
                (double)result->options->objective_ns / 1e6);
        if (search->found_per_second > 0) {
                sl_report_format(text, sizeof(text), SL_UNIT_PER_SECOND, search->found_per_second);
                fprintf(stream, " %s\n", text);
        } else {
                fprintf(stream, " none keeps it of those that have enough requests in %.3g s\n",
                        (double)result->options->duration_ns / 1e9);
        }
        for (uint32_t i = 0; i < search->n_steps; i++) {
                sl_report_format(text, sizeof(text), SL_UNIT_NS, search->steps[i].latency_ns);
                fprintf(stream, "  %12.6g/s %14s  %s\n", search->steps[i].rate, text, search->steps[i].kept ? "kept" : "not kept");
        }
}

static void print_scenario(const struct sl_load_scenario *scenario, FILE *stream)
{
        if (!scenario)
                return;
        fprintf(stream, "\n%s: %.7g (%s)\n", sl_scenario_name(scenario->kind), scenario->metric,
                sl_scenario_metric(scenario->kind));
        if (isfinite(scenario->early_stopping))
                fprintf(stream, "  early-stopping estimate %.7g ns\n", scenario->early_stopping);
        fprintf(stream, "  %.1f s of %.0f, %llu queries of %llu%s\n", scenario->seconds, SL_SCENARIO_SECONDS,
                (unsigned long long)scenario->queries, (unsigned long long)scenario->queries_wanted,
                scenario->bound_kept ? "" : ", the bound is not kept");
        fprintf(stream, "  %s; never a result of MLPerf, which takes its own LoadGen and an accuracy run\n",
                sl_scenario_follows_rules(scenario) ? "as long as MLPerf's rules want" : "NOT as MLPerf's rules want");
}

void sl_load_result_print(const struct sl_load_result *result, FILE *stream)
{
        char machine[200];

        sl_machine_line(machine, sizeof(machine));
        fprintf(stream, "starling bench load on %s\nfloor %.0f ns before, %.0f after%s\n", machine, result->noise.before_ns,
                result->noise.after_ns, sl_noise_is_quiet(&result->noise) ? "" : ": the machine was NOT the same at both ends");
        for (uint32_t i = 0; i < result->n_points; i++)
                print_point(result->options, &result->points[i], stream);
        print_search(result, stream);
        print_scenario(result->scenario, stream);
}
