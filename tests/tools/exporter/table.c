/* SPDX-License-Identifier: Apache-2.0 */
/* The table of metrics keeps the rules of the field, so that no scraper and no linter complains of a row. */
#include "metric.h"
#include "page_scope.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <string.h>

#define EACH(metric)                                                                                                               \
        const struct metric *metric = metric_table;                                                                                \
        metric < metric_table + metric_table_rows;                                                                                 \
        metric++

static bool ends_with(const char *name, const char *end)
{
        return strlen(name) > strlen(end) && strcmp(name + strlen(name) - strlen(end), end) == 0;
}

Test(exporter_table, names_are_in_base_units_and_leave_to_the_type_what_it_adds)
{
        for (EACH(metric)) {
                cr_expect_eq(strncmp(metric->name, "starling_", 9), 0, "%s", metric->name);
                for (const char *c = metric->name; *c; c++)
                        cr_expect(islower((unsigned char)*c) || *c == '_', "%s", metric->name);
                cr_expect_eq(ends_with(metric->name, "_seconds"), metric->unit == METRIC_SECONDS || metric->unit == METRIC_AGE,
                        "%s", metric->name);
                cr_expect_eq(ends_with(metric->name, "_bytes"), metric->unit == METRIC_BYTES, "%s", metric->name);
                for (size_t i = 0; i < 6; i++)
                        cr_expect_not(ends_with(metric->name,
                                              ((const char *[]){"_total", "_count", "_sum", "_bucket", "_info", "_created"})[i]),
                                "%s", metric->name);
        }
}

Test(exporter_table, rows_of_a_family_follow_each_other_and_differ_in_their_label)
{
        for (EACH(metric)) {
                if (metric_begins_family(metric)) {
                        for (const struct metric *before = metric_table; before < metric; before++)
                                cr_expect_str_neq(before->name, metric->name);
                        cr_expect_eq(metric->help[strlen(metric->help) - 1], '.', "%s", metric->name);
                        cr_expect(metric == metric_table || metric->scope >= metric[-1].scope, "%s is not in order", metric->name);
                        continue;
                }
                cr_expect_str_eq(metric->name, metric[-1].name);
                cr_expect(metric->scope == metric[-1].scope && metric->type == metric[-1].type && metric->unit == metric[-1].unit,
                        "%s", metric->name);
                cr_expect_str_eq(metric->label, metric[-1].label, "%s", metric->name);
                cr_expect_str_neq(metric->label_value, metric[-1].label_value, "%s", metric->name);
        }
}

Test(exporter_table, every_row_lies_in_its_slot)
{
        for (EACH(metric)) {
                if (metric->type == METRIC_INFO)
                        continue;
                cr_expect_not_null(metric->field, "%s", metric->name);
                if (metric->type == METRIC_HISTOGRAM)
                        cr_expect(metric->offset < SL_STAGES && metric->bytes == sizeof(struct sl_histogram), "%s", metric->name);
                else
                        cr_expect((metric->bytes == 4 || metric->bytes == 8) &&
                                          metric->offset + metric->bytes <= sizeof(union page_slot),
                                "%s", metric->name);
        }
}
