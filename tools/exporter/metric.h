/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is exported: one table of rows, from which come the text of a scrape and the list of starling-exporter(1). A row is one
 * value of a slot of the stats page; rows of one name, which follow each other, are one family and differ in their label.
 * Constants.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_INFO };

/* What the number in the slot counts, and what it becomes. */
enum metric_unit {
        METRIC_ONE,     /* as it is */
        METRIC_SECONDS, /* nanoseconds, to seconds */
        METRIC_AGE,     /* CLOCK_MONOTONIC of a moment or 0, to seconds since then */
        METRIC_BYTES,
};

/* What a row is about: each scope is read from slots of its own (page_scope.h), and gives its rows the same labels. */
enum metric_scope {
        SCOPE_EXPORTER,
        SCOPE_UP,
        SCOPE_RUNTIME,
        SCOPE_BUILD,
        SCOPE_MEMORY,
        SCOPE_STEP,
        SCOPE_DISPATCHER,
        SCOPE_MODEL,
        SCOPE_MODEL_INFO,
        SCOPE_QUEUE,
        SCOPE_CREW,
        SCOPE_WORKER,
        SCOPE_LET,
        SCOPE_USER,
        METRIC_SCOPES
};

struct metric {
        const char *name; /* of the family, with its unit and without what the type adds ("_total", "_bucket", "_info") */
        const char *help; /* NULL: as in the row before, of the same family */
        enum metric_type type;
        enum metric_unit unit;
        enum metric_scope scope;
        const char *label, *label_value; /* beside those of the scope; NULL: none. The value is written in small letters */
        const char *field;               /* of the slot, as in starling-stats(5) */
        size_t offset, bytes;            /* where it lies in the slot: 4 or 8 bytes, or a struct sl_histogram */
        bool compares;                   /* the value is whether the field is `equals`: 1 or 0 */
        uint32_t equals;
};

/* Sorted by scope. */
extern const struct metric metric_table[];
extern const size_t metric_table_rows;

/* Slots of a scope: their name in starling-stats(5), NULL where there are none, and the labels, for people. */
struct metric_scope_words {
        const char *section, *labels;
};
extern const struct metric_scope_words metric_scope_words[METRIC_SCOPES];

/* "_total", "" ...: what a type adds to the family's name. */
const char *metric_suffix(enum metric_type type);
const char *metric_type_name(enum metric_type type);

/* Whether the row begins a family. */
static inline int metric_begins_family(const struct metric *metric)
{
        return metric->help != NULL;
}
