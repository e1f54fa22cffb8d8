/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of a program of perf/ as one table, from which come what getopt_long() reads and the help. A row: letter, name, what
 * follows or NULL, help; as a row of tools/starling/command_options.h. No state.
 *
 *     static const struct option options[] = {OPTIONS(SL_OPTION_GETOPT){0}};
 *     OPTIONS(SL_OPTION_PRINT)        on stdout
 */
#pragma once

#include <getopt.h>
#include <stdio.h>

#define SL_OPTION_GETOPT(letter, name, argument, help) {name, (argument) ? required_argument : no_argument, NULL, letter},
#define SL_OPTION_PRINT(letter, name, argument, help)  sl_option_print(name, argument, help);

static inline void sl_option_print(const char *name, const char *argument, const char *help)
{
        char text[64];

        snprintf(text, sizeof(text), "--%s%s%s", name, argument ? " " : "", argument ? argument : "");
        printf("  %-26s%s\n", text, help);
}
