/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of one run, printed as a table for people or as one JSON object for machines, with date, command and machine.
 * Keys and texts are kept by reference. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_REPORT_ROWS 192

enum sl_unit { SL_UNIT_NS, SL_UNIT_PER_SECOND, SL_UNIT_TIMES, SL_UNIT_SHARE, SL_UNIT_BYTES, SL_UNIT_COUNT, SL_UNIT_TEXT };

struct sl_report_row {
        const char *key; /* in JSON; the table shows it with blanks */
        enum sl_unit unit;
        double value; /* NaN: not measured, null in JSON */
        char text[240];
        const char *target; /* "<= 1.8 x floor"; NULL: none */
        int met;            /* 1 yes, 0 no; only with a target */
};

struct sl_report {
        const char *benchmark;
        int argc;
        char **argv;
        int n_rows;
        struct sl_report_row rows[SL_REPORT_ROWS];
};

void sl_report_init(struct sl_report *report, const char *benchmark, int argc, char **argv);
void sl_report_number(struct sl_report *report, const char *key, enum sl_unit unit, double value, const char *target, int met);
void sl_report_text(struct sl_report *report, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* @floor_ns: 0 when there is none; times are then not given as multiples of it. */
void sl_report_print(const struct sl_report *report, bool json, double floor_ns);

/* "1.2 us", "3.4 k/s", "2.00 x" and so on; "not measured" for NaN. */
void sl_report_format(char *to, size_t bytes, enum sl_unit unit, double value);
