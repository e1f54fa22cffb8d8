/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "machine.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void sl_report_init(struct sl_report *report, const char *benchmark, int argc, char **argv)
{
        memset(report, 0, sizeof(*report));
        report->benchmark = benchmark;
        report->argc = argc;
        report->argv = argv;
}

static struct sl_report_row *new_row(struct sl_report *report, const char *key, enum sl_unit unit)
{
        struct sl_report_row *row = &report->rows[report->n_rows < SL_REPORT_ROWS ? report->n_rows++ : SL_REPORT_ROWS - 1];

        *row = (struct sl_report_row){.key = key, .unit = unit};
        return row;
}

void sl_report_number(struct sl_report *report, const char *key, enum sl_unit unit, double value, const char *target, int met)
{
        struct sl_report_row *row = new_row(report, key, unit);

        row->value = value;
        row->target = target;
        row->met = met;
}

void sl_report_text(struct sl_report *report, const char *key, const char *format, ...)
{
        struct sl_report_row *row = new_row(report, key, SL_UNIT_TEXT);
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(row->text, sizeof(row->text), format, arguments);
        va_end(arguments);
}

static json_t *row_json(const struct sl_report_row *row)
{
        if (row->unit == SL_UNIT_TEXT)
                return json_string(row->text);
        if (!isfinite(row->value))
                return json_null();
        switch (row->unit) {
        case SL_UNIT_BYTES:
        case SL_UNIT_COUNT:
                return json_integer((json_int_t)llround(row->value));
        case SL_UNIT_PER_SECOND:
                return row->value < 1e4 ? json_real(round(row->value * 100) / 100) : json_integer((json_int_t)llround(row->value));
        case SL_UNIT_NS:
                return json_real(round(row->value * 10) / 10);
        default:
                return json_real(round(row->value * 1e5) / 1e5);
        }
}

static void print_json(const struct sl_report *report)
{
        json_t *root = json_object(), *command = json_array(), *missed = json_array();

        json_object_set_new(root, "benchmark", json_string(report->benchmark));
        for (int i = 0; i < report->n_rows; i++) {
                const struct sl_report_row *row = &report->rows[i];

                json_object_set_new(root, row->key, row_json(row));
                if (row->target && isfinite(row->value) && !row->met)
                        json_array_append_new(missed, json_sprintf("%s %s", row->key, row->target));
        }
        json_object_set_new(root, "targets_missed", missed);
        /* The first word is what messages begin with. */
        for (int i = 0; i < report->argc; i++)
                json_array_append_new(command, json_string(i ? report->argv[i] : report->benchmark));
        json_object_set_new(root, "command", command);
        json_object_set_new(root, "machine", sl_machine_json());
        json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(8));
        putchar('\n');
        json_decref(root);
}

static void format_ns(char *to, size_t bytes, double ns)
{
        if (ns < 1e4)
                snprintf(to, bytes, "%.1f ns", ns);
        else if (ns < 1e7)
                snprintf(to, bytes, "%.1f us", ns / 1e3);
        else
                snprintf(to, bytes, "%.1f ms", ns / 1e6);
}

static void format_rate(char *to, size_t bytes, double per_second)
{
        if (per_second < 1e4)
                snprintf(to, bytes, "%.1f /s", per_second);
        else if (per_second < 1e6)
                snprintf(to, bytes, "%.1f k/s", per_second / 1e3);
        else
                snprintf(to, bytes, "%.2f M/s", per_second / 1e6);
}

void sl_report_format(char *to, size_t bytes, enum sl_unit unit, double value)
{
        if (!isfinite(value)) {
                snprintf(to, bytes, "not measured");
                return;
        }
        switch (unit) {
        case SL_UNIT_NS:
                format_ns(to, bytes, value);
                break;
        case SL_UNIT_PER_SECOND:
                format_rate(to, bytes, value);
                break;
        case SL_UNIT_TIMES:
                snprintf(to, bytes, "%.2f x", value);
                break;
        case SL_UNIT_SHARE:
                snprintf(to, bytes, "%.3f %%", 100 * value);
                break;
        case SL_UNIT_BYTES:
                snprintf(to, bytes, "%.1f MB", value / 1e6);
                break;
        default:
                snprintf(to, bytes, "%.0f", value);
        }
}

static void print_row(const struct sl_report_row *row, double floor_ns)
{
        char value[64], multiple[32] = "", name[64];

        snprintf(name, sizeof(name), "%s", row->key);
        for (char *c = name; *c; c++)
                *c = *c == '_' ? ' ' : *c;
        if (row->unit == SL_UNIT_TEXT) {
                printf("%-34s  %s\n", name, row->text);
                return;
        }
        sl_report_format(value, sizeof(value), row->unit, row->value);
        if (row->unit == SL_UNIT_NS && floor_ns > 0 && isfinite(row->value))
                snprintf(multiple, sizeof(multiple), "%.2f x", row->value / floor_ns);
        printf("%-34s %14s %12s", name, value, multiple);
        if (row->target)
                printf("  %-32s %s", row->target, !isfinite(row->value) ? "" : row->met ? "met" : "MISSED");
        putchar('\n');
}

static void print_table(const struct sl_report *report, double floor_ns)
{
        char machine[200];

        sl_machine_line(machine, sizeof(machine));
        printf("starling bench %s on %s\n\n", report->benchmark, machine);
        printf("%-34s %14s %12s  %s\n", "", "figure", floor_ns > 0 ? "of the floor" : "", "target");
        for (int i = 0; i < report->n_rows; i++)
                print_row(&report->rows[i], floor_ns);
}

void sl_report_print(const struct sl_report *report, bool json, double floor_ns)
{
        if (json)
                print_json(report);
        else
                print_table(report, floor_ns);
}
