/* SPDX-License-Identifier: Apache-2.0 */
#include "team_print.h"

#include "node_profile.h"
#include "part.h"
#include "team_model.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>

static const char *const axis_names[SL_AXIS_COUNT] = {
        [SL_AXIS_NONE] = "whole", [SL_AXIS_ROWS] = "rows", [SL_AXIS_COLUMNS] = "columns"};

/* NaN: a team of that size was not measured. */
static double measured_ns(const struct team_report *report, const struct sl_team_point *point)
{
        return point->threads == 1 ? report->alone_ns : point->threads == report->n_cores ? report->team_ns : NAN;
}

/* The same of a step. */
static double measured_step_ns(const struct team_report *report, const struct sl_team_point *point, uint64_t i)
{
        return point->threads == 1                 ? report->profile->step_ns[i]
               : point->threads == report->n_cores ? report->together->step_ns[i]
                                                   : NAN;
}

/* Of model and measurement, in percent of what was measured. */
static double difference(const struct team_report *report, const struct sl_team_point *point)
{
        return 100 * (point->ns / measured_ns(report, point) - 1);
}

/* By the model: one thread is all steps. */
static double speedup(const struct team_report *report, const struct sl_team_point *point)
{
        double alone_ns = 0;

        for (uint64_t i = 0; i < report->profile->n_steps; i++)
                alone_ns += report->profile->step_ns[i];
        return point->ns > 0 ? alone_ns / point->ns : 1;
}

/* ---- text ---- */

static void print_number(double number, FILE *stream)
{
        if (isnan(number))
                fprintf(stream, " %11s", "-");
        else
                fprintf(stream, " %11.1f", number);
}

#define MEMBERS_TEXT_BYTES 24

/* Who of the team computes it: "4-7". */
static void name_members(const struct sl_step_split *split, char ret_text[MEMBERS_TEXT_BYTES])
{
        if (split->members > 1)
                snprintf(ret_text, MEMBERS_TEXT_BYTES, "%u-%u", split->first, split->first + split->members - 1);
        else
                snprintf(ret_text, MEMBERS_TEXT_BYTES, "%u", split->first);
}

static void print_steps(const struct team_report *report, const struct sl_team_point *point, FILE *stream)
{
        fprintf(stream, "%u thread%s\n%5s %-8s %7s %7s %9s %6s %10s %8s %11s  %s\n", point->threads, point->threads == 1 ? "" : "s",
                "step", "split", "members", "parts", "units", "calls", "part us", "call us", "measured us", "node");
        for (uint64_t i = 0; i < report->model->n_steps; i++) {
                const struct sl_team_step *step = &point->steps[i];
                const struct sl_step_info *info = &report->profile->steps[i];
                char members[MEMBERS_TEXT_BYTES];

                name_members(&step->split, members);
                fprintf(stream, "%5llu %-8s %7s %7u %9lld %6lld %10.1f %8.1f", (unsigned long long)i, axis_names[step->split.axis],
                        members, step->split.members, (long long)step->split.units, (long long)step->split.stages,
                        step->part_ns / 1e3, step->call_ns / 1e3);
                print_number(measured_step_ns(report, point, i) / 1e3, stream);
                fprintf(stream, "  %s %s\n", info->operator_name, info->name);
        }
        fputc('\n', stream);
}

static void print_point(const struct team_report *report, const struct sl_team_point *point, FILE *stream)
{
        double measured = measured_ns(report, point);

        fprintf(stream, "%7u %10.3f %9.3f %9.3f %9.3f %8.2f", point->threads, point->divided_ns / 1e6, point->call_ns / 1e6,
                point->whole_ns / 1e6, point->ns / 1e6, speedup(report, point));
        if (isnan(measured))
                fprintf(stream, " %11s %11s\n", "-", "-");
        else
                fprintf(stream, " %11.3f %+9.1f %%\n", measured / 1e6, difference(report, point));
}

void team_print_text(const struct team_report *report, FILE *stream)
{
        const struct sl_team_model *model = report->model;

        for (uint32_t i = 0; i < model->n_points; i++)
                print_steps(report, &model->points[i], stream);
        fprintf(stream,
                "batch %u, %llu steps; the planner reckons %.3f us to call a team of two, and %.1f GB/s that all cores bring from "
                "memory at once. By the model, in ms:\n",
                report->profile->batch, (unsigned long long)model->n_steps, report->barrier_ns / 1e3, report->shared / 1e9);
        fprintf(stream, "%7s %10s %9s %9s %9s %8s %11s %11s\n", "threads", "divided", "calls", "whole", "model", "speed-up",
                "measured", "difference");
        for (uint32_t i = 0; i < model->n_points; i++)
                print_point(report, &model->points[i], stream);
        fprintf(stream, "measured: %.3f ms on 1 thread, %.3f ms by a team on %u core%s, speed-up %.2f\n", report->alone_ns / 1e6,
                report->team_ns / 1e6, report->n_cores, report->n_cores == 1 ? "" : "s", report->alone_ns / report->team_ns);
        fprintf(stream, "%u independent instance%s at once: %.3f ms a batch, speed-up %.2f, of which the team reaches %.2f\n",
                report->n_singles, report->n_singles == 1 ? "" : "s", report->singles_ns / 1e6,
                report->alone_ns / report->singles_ns, report->singles_ns / report->team_ns);
}

/* ---- JSON ---- */

static json_t *number_json(double number)
{
        return isnan(number) ? json_null() : json_real(number);
}

static json_t *step_json(const struct team_report *report, const struct sl_team_point *point, uint64_t i)
{
        const struct sl_team_step *step = &point->steps[i];
        const struct sl_step_info *info = &report->profile->steps[i];

        return json_pack("{s:I, s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:f, s:f, s:o}", "step", (json_int_t)i, "name", info->name,
                "operator", info->operator_name, "split", axis_names[step->split.axis], "first_member", (int)step->split.first,
                "parts", (int)step->split.members, "units", (json_int_t)step->split.units, "calls", (json_int_t)step->split.stages,
                "part_ns", step->part_ns, "call_ns", step->call_ns, "measured_ns", number_json(measured_step_ns(report, point, i)));
}

static json_t *point_json(const struct team_report *report, const struct sl_team_point *point)
{
        json_t *steps = json_array();

        for (uint64_t i = 0; i < report->model->n_steps; i++)
                json_array_append_new(steps, step_json(report, point, i));
        return json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:o}", "threads", (int)point->threads, "divided_ns",
                point->divided_ns, "calls_ns", point->call_ns, "whole_ns", point->whole_ns, "model_ns", point->ns, "speedup",
                speedup(report, point), "measured_ns", number_json(measured_ns(report, point)), "difference_percent",
                number_json(difference(report, point)), "steps", steps);
}

int team_print_json(const struct team_report *report, FILE *stream)
{
        json_t *points = json_array(), *document;
        int r;

        for (uint32_t i = 0; i < report->model->n_points; i++)
                json_array_append_new(points, point_json(report, &report->model->points[i]));
        document = json_pack("{s:i, s:f, s:f, s:i, s:f, s:f, s:i, s:f, s:o}", "batch", (int)report->profile->batch, "barrier_ns",
                report->barrier_ns, "shared_bytes_per_second", report->shared, "cores", (int)report->n_cores, "alone_ns",
                report->alone_ns, "team_ns", report->team_ns, "singles", (int)report->n_singles, "singles_ns", report->singles_ns,
                "teams", points);
        if (!document)
                return -ENOMEM;
        r = json_dumpf(document, stream, JSON_INDENT(1)) < 0 || fputc('\n', stream) < 0 ? -EIO : 0;
        json_decref(document);
        return r;
}
