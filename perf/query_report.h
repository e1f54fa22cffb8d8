/* SPDX-License-Identifier: Apache-2.0 */
/* What `starling bench query` prints, with --choice and without. One thread. */
#pragma once

#include "histogram.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* NULL where nothing was answered. */
json_t *sl_query_quantile_json(const struct sl_histogram *latencies, double q);
json_t *sl_query_command_json(int argc, char **argv);

/* @root goes with it. Return: 0, -EIO. */
int sl_query_print_json(json_t *root);

/* A choice among @variants, so many turns of so long, and its figures. Return: 0; -ENOMEM, -EAGAIN, -EINTR, -EIO. */
struct sl_query_choice_bench {
        int argc;
        char **argv;
        uint32_t variants, turns, seed;
        uint64_t turn_ns;
        bool json;
};
int sl_query_report_choice(const struct sl_query_choice_bench *bench);
