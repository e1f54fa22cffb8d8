/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a check has to say: a value that it fills.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* From good to bad. */
enum sl_verdict { SL_VERDICT_OK, SL_VERDICT_UNKNOWN, SL_VERDICT_BETTER, SL_VERDICT_WRONG };

#define SL_FINDING_FIGURES 4

struct sl_finding {
        const char *check;
        enum sl_verdict verdict;
        char found[512];
        char change[512]; /* the command or setting; "" where there is nothing to change */
        char gain[512];   /* what that is good for; "" likewise */
        uint32_t n_figures;
        struct sl_figure {
                const char *name; /* with its unit: "clock_ns" */
                double value;
        } figures[SL_FINDING_FIGURES]; /* that were measured */
};

void sl_found(struct sl_finding *finding, enum sl_verdict verdict, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Behind what was found, in the same sentence. */
void sl_found_too(struct sl_finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));

void sl_change(struct sl_finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sl_gain(struct sl_finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sl_figure(struct sl_finding *finding, const char *name, double value);
