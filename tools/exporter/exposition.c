/* SPDX-License-Identifier: Apache-2.0 */
#include "exposition.h"

#include "base/bytes.h"

#include <ctype.h>
#include <string.h>

/* The samples of one series: its labels are those of the runtime, of the slot and of the row. */
struct sample {
        struct text *out;
        const struct metric *metric;
        const char *runtime; /* NULL: of none */
        const char *labels;  /* of the slot; "" */
        const struct ledger *ledger;
        uint32_t series, at; /* where its values begin */
};

const char *exposition_content_type(enum exposition_format format)
{
        return format == EXPOSITION_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                                : "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- one family ---- */

static const char *unit_suffix(enum metric_unit unit)
{
        return unit == METRIC_SECONDS || unit == METRIC_AGE ? "seconds" : unit == METRIC_BYTES ? "bytes" : NULL;
}

/* Help may hold what both formats escape. */
static void write_help(struct text *out, const char *name, const char *suffix, const char *help, enum exposition_format format)
{
        text_add_format(out, "# HELP %s%s ", name, suffix);
        for (; *help; help++)
                if (*help == '\\' || *help == '\n' || (*help == '"' && format == EXPOSITION_OPENMETRICS))
                        text_add_format(out, "\\%c", *help == '\n' ? 'n' : *help);
                else
                        text_add_bytes(out, help, 1);
        text_add(out, "\n");
}

/* The older format has the whole name of a sample here, and does not know infos. */
static void write_head(struct text *out, const struct metric *metric, enum exposition_format format)
{
        bool is_open = format == EXPOSITION_OPENMETRICS;
        const char *suffix = is_open ? "" : metric_suffix(metric->type), *unit = unit_suffix(metric->unit);
        enum metric_type type = !is_open && metric->type == METRIC_INFO ? METRIC_GAUGE : metric->type;

        write_help(out, metric->name, suffix, metric->help, format);
        text_add_format(out, "# TYPE %s%s %s\n", metric->name, suffix, metric_type_name(type));
        if (is_open && unit)
                text_add_format(out, "# UNIT %s %s\n", metric->name, unit);
}

/* ---- one sample ---- */

static void write_label(const struct sample *sample, const char *name, const char *value, bool *any)
{
        text_add_format(sample->out, "%s%s=\"", *any ? "," : "{", name);
        for (; *value; value++)
                text_add_format(sample->out, "%c", tolower((unsigned char)*value));
        text_add(sample->out, "\"");
        *any = true;
}

static void write_name(const struct sample *sample, const char *suffix, bool *ret_any)
{
        *ret_any = false;
        text_add_format(sample->out, "%s%s", sample->metric->name, suffix);
        if (sample->runtime) {
                text_add(sample->out, "{runtime=\"");
                text_add_label_value(sample->out, sample->runtime, SIZE_MAX);
                text_add(sample->out, "\"");
                *ret_any = true;
        }
        if (*sample->labels) {
                text_add(sample->out, *ret_any ? "," : "{");
                text_add(sample->out, sample->labels);
                *ret_any = true;
        }
        if (sample->metric->label)
                write_label(sample, sample->metric->label, sample->metric->label_value, ret_any);
}

static void write_value(const struct sample *sample, uint64_t value)
{
        if (sample->metric->type == METRIC_GAUGE && value == UINT64_MAX)
                text_add(sample->out, "+Inf");
        else if (sample->metric->unit == METRIC_SECONDS || sample->metric->unit == METRIC_AGE)
                text_add_seconds(sample->out, value);
        else
                text_add_number(sample->out, value);
        text_add(sample->out, "\n");
}

static void write_single(const struct sample *sample)
{
        bool any;

        write_name(sample, metric_suffix(sample->metric->type), &any);
        text_add(sample->out, any ? "} " : " ");
        write_value(sample, ledger_value(sample->ledger, sample->series, sample->at));
}

static void write_bucket(const struct sample *sample, uint32_t bucket, uint64_t count)
{
        bool any;

        write_name(sample, "_bucket", &any);
        text_add(sample->out, any ? ",le=\"" : "{le=\"");
        if (bucket < BUCKET_BOUNDS)
                text_add_seconds(sample->out, bucket_bound_ns(bucket));
        else
                text_add(sample->out, "+Inf");
        text_add(sample->out, "\"} ");
        text_add_number(sample->out, count);
        text_add(sample->out, "\n");
}

/* The count is the sum of the buckets, which changes while it is read no more than they do. */
static void write_histogram(const struct sample *sample)
{
        uint64_t count = 0;
        bool any;

        for (uint32_t i = 0; i < BUCKETS; i++) {
                if (sl_add_overflows(count, ledger_value(sample->ledger, sample->series, sample->at + i), &count))
                        count = UINT64_MAX; /* a damaged page may count more than there is */
                write_bucket(sample, i, count);
        }
        write_name(sample, "_sum", &any);
        text_add(sample->out, any ? "} " : " ");
        write_value(sample, ledger_value(sample->ledger, sample->series, sample->at + BUCKETS));
        write_name(sample, "_count", &any);
        text_add(sample->out, any ? "} " : " ");
        text_add_number(sample->out, count);
        text_add(sample->out, "\n");
}

/* ---- all ---- */

/* Rows of the family that begins with @metric. */
static size_t family_rows(const struct metric *metric)
{
        size_t n = 1;

        while (metric + n < metric_table + metric_table_rows && !metric_begins_family(metric + n))
                n++;
        return n;
}

/* Values before those of @metric in its scope. */
static uint32_t place_of(const struct metric *metric)
{
        uint32_t at = 0;

        for (const struct metric *row = metric_table; row < metric; row++)
                at += row->scope == metric->scope ? metric_width(row) : 0;
        return at;
}

static void write_series(struct sample sample, size_t n_rows)
{
        for (size_t row = 0; row < n_rows; row++, sample.metric++) {
                if (sample.metric->type == METRIC_HISTOGRAM)
                        write_histogram(&sample);
                else
                        write_single(&sample);
                sample.at += metric_width(sample.metric);
        }
}

static void write_ledger(struct sample sample, const struct ledger *ledger, size_t n_rows)
{
        bool counts = sample.metric->type == METRIC_COUNTER || sample.metric->type == METRIC_HISTOGRAM;

        sample.ledger = ledger;
        for (sample.series = 0; sample.series < ledger_count(ledger); sample.series++) {
                if (!ledger_is_present(ledger, sample.series) && !(counts && ledger_stays(ledger, sample.series)))
                        continue;
                sample.labels = ledger_labels(ledger, sample.series);
                write_series(sample, n_rows);
        }
}

/* The exporter's own rows are the same whatever runtime they are read with. */
static void write_family(
        struct text *out, const struct metric *metric, const struct watch *watches, uint32_t n, enum exposition_format format)
{
        struct sample sample = {.out = out, .metric = metric, .at = place_of(metric)};
        uint32_t n_sources = metric->scope == SCOPE_EXPORTER && n > 1 ? 1 : n;

        write_head(out, metric, format);
        for (uint32_t i = 0; i < n_sources; i++) {
                sample.runtime = metric->scope == SCOPE_EXPORTER ? NULL : watches[i].name;
                if (watches[i].ledgers[metric->scope])
                        write_ledger(sample, watches[i].ledgers[metric->scope], family_rows(metric));
        }
}

void exposition_write(struct text *out, const struct watch *watches, uint32_t n, enum exposition_format format)
{
        for (const struct metric *metric = metric_table; metric < metric_table + metric_table_rows; metric += family_rows(metric))
                write_family(out, metric, watches, n, format);
        if (format == EXPOSITION_OPENMETRICS)
                text_add(out, "# EOF\n");
}
