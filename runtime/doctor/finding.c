/* SPDX-License-Identifier: Apache-2.0 */
#include "finding.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define PRINT_TO(text, bytes)                                                                                                      \
        do {                                                                                                                       \
                va_list sl_arguments;                                                                                              \
                va_start(sl_arguments, format);                                                                                    \
                vsnprintf(text, bytes, format, sl_arguments);                                                                      \
                va_end(sl_arguments);                                                                                              \
        } while (0)

void sl_found(struct sl_finding *finding, enum sl_verdict verdict, const char *format, ...)
{
        finding->verdict = verdict;
        PRINT_TO(finding->found, sizeof(finding->found));
}

void sl_found_too(struct sl_finding *finding, const char *format, ...)
{
        size_t used = strlen(finding->found);

        PRINT_TO(finding->found + used, sizeof(finding->found) - used);
}

void sl_change(struct sl_finding *finding, const char *format, ...)
{
        PRINT_TO(finding->change, sizeof(finding->change));
}

void sl_gain(struct sl_finding *finding, const char *format, ...)
{
        PRINT_TO(finding->gain, sizeof(finding->gain));
}

void sl_figure(struct sl_finding *finding, const char *name, double value)
{
        SL_ASSERT(finding->n_figures < SL_FINDING_FIGURES);
        if (finding->n_figures < SL_FINDING_FIGURES)
                finding->figures[finding->n_figures++] = (struct sl_figure){.name = name, .value = value};
}
