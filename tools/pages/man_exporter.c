/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of starling-exporter(1), from the table that they are exported by.
 */
#include "buckets.h"
#include "metric.h"
#include "page.h"
#include "triton_metrics.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static bool is_of_family(const struct metric *metric, const struct metric *first)
{
        return metric < metric_table + metric_table_rows && (metric == first || !metric_begins_family(metric));
}

/* "; outcome: done, failed" */
static void print_label_values(FILE *out, const struct metric *first)
{
        if (!first->label)
                return;
        fprintf(out, "; %s:", first->label);
        for (const struct metric *metric = first; is_of_family(metric, first); metric++) {
                fputs(metric == first ? " " : ", ", out);
                for (const char *c = metric->label_value; *c; c++)
                        fputc(tolower((unsigned char)*c), out);
        }
}

/* "models: completed, failed"; rows of one array are one field. */
static void print_fields(FILE *out, const struct metric *first, const char *section)
{
        const char *last = "";

        fprintf(out, ".br\nFrom: %s:", section);
        for (const struct metric *metric = first; is_of_family(metric, first); metric++) {
                if (strcmp(metric->field, last) != 0)
                        fprintf(out, "%s %s", *last ? "," : "", metric->field);
                last = metric->field;
        }
        fputc('\n', out);
}

static void print_family(FILE *out, const struct metric *metric)
{
        const char *section = metric_scope_words[metric->scope].section;

        fprintf(out, ".It Cm %s%s No ( %s", metric->name, metric_suffix(metric->type), metric_type_name(metric->type));
        print_label_values(out, metric);
        fputs(" )\n", out);
        page_text(out, metric->help);
        if (section && metric->field)
                print_fields(out, metric, section);
}

static void print_scope(FILE *out, enum metric_scope scope)
{
        const char *labels = metric_scope_words[scope].labels;

        if (scope == 0 || strcmp(labels, metric_scope_words[scope - 1].labels) != 0)
                fprintf(out, ".Ss Labels: %s\n", labels);
        fputs(".Bl -tag -width Ds\n", out);
        for (size_t i = 0; i < metric_table_rows; i++)
                if (metric_table[i].scope == scope && metric_begins_family(&metric_table[i]))
                        print_family(out, &metric_table[i]);
        fputs(".El\n", out);
}

static void print_buckets(FILE *out)
{
        fputs(".Ss Buckets\nBounds of histograms, in seconds (le). Each is the last nanosecond of buckets of the stats page, so "
              "that "
              "counts are exact:\n",
                out);
        for (uint32_t i = 0; i < BUCKET_BOUNDS; i++)
                fprintf(out, "%.9f%s\n", (double)bucket_bound_ns(i) / 1e9, i + 1 < BUCKET_BOUNDS ? "," : ", and infinity.");
}

static void print_counterpart(FILE *out, const char *triton, const char *here, const char *remark)
{
        fprintf(out, ".It %s\n", triton);
        if (*here)
                fprintf(out, ".Cm %s%s\n", here, *remark ? " ;" : "");
        if (*remark)
                page_text(out, remark);
}

static void print_triton(FILE *out)
{
        fputs(".Sh TRITON'S NAMES\nWhat Triton Inference Server calls by other names, and what says the same here:\n.Bl -tag "
              "-width Ds\n",
                out);
#define X(triton, here, remark) print_counterpart(out, triton, here, remark);
        TRITON_METRICS(X)
#undef X
        fputs(".El\n", out);
}

void page_metrics(FILE *out)
{
        fputs(".Sh METRICS\n", out);
        page_paragraphs(out, "Counters begin with the runtime: they go back when another one of its name starts "
                             "(`starling_start_time_seconds` says when), or when the exporter does, if models or workers were "
                             "removed before. Those of sizes of an open model stay when the sizes make room for others. The fields "
                             "are those of starling-stats(5). In OpenMetrics, names of families lack "
                             "`_total` and `_info`.");
        for (int scope = 0; scope < METRIC_SCOPES; scope++)
                print_scope(out, (enum metric_scope)scope);
        print_buckets(out);
        print_triton(out);
}
