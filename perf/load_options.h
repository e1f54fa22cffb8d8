/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of `starling bench load`, as what is to be done. One thread; texts stay in argv.
 */
#pragma once

#include "load_result.h"
#include "scenario.h"

#define SL_LOAD_NOOP "@noop"

struct sl_load_command {
        struct sl_load_options options;
        struct sl_load_level levels[SL_LOAD_POINTS_MAX];
        uint32_t n_levels, repeats;
        const char *serve, *output, *save_trace; /* NULL: not asked for */
        bool search, json, has_scenario;
        enum sl_scenario_kind scenario;
        struct sl_trace trace; /* sl_load_command_deinit() */

        char names[SL_LOAD_MODELS_MAX][128]; /* what the options point to */
        const char *models[SL_LOAD_MODELS_MAX];
        uint32_t samples[SL_LOAD_MODELS_MAX];
};

/* What is wrong is said on stderr, in one line. @ret_command is not moved afterwards. Return: 0; 2 wrong usage. */
int sl_load_command_parse(int argc, char **argv, struct sl_load_command *ret_command);
void sl_load_command_deinit(struct sl_load_command *command);
