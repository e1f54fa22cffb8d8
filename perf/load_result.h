/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `starling bench load` hands over: a JSON object as results.schema.json says, and a table for people. Pure but for stdout.
 */
#pragma once

#include "load_point.h"
#include "noise.h"

#include <stdio.h>

struct json_t;

#define SL_LOAD_RESULT_SCHEMA "starling-load/1"
#define SL_LOAD_POINTS_MAX    64u

struct sl_load_search {
        bool done;
        double capacity_per_second; /* of a closed loop, where it began */
        double found_per_second;    /* 0: no rate keeps the objective */
        uint32_t n_steps;
        struct sl_load_step {
                double rate, latency_ns; /* NaN: too few answers */
                bool kept;
        } steps[SL_LOAD_POINTS_MAX];
};

struct sl_load_scenario;

struct sl_load_result {
        int argc;
        char **argv;
        const struct sl_load_options *options;
        bool own_runtime;
        struct json_t *machine; /* as it was before */
        struct sl_noise noise;
        struct sl_load_point points[SL_LOAD_POINTS_MAX];
        uint32_t n_points;
        struct sl_load_search search;
        const struct sl_load_scenario *scenario; /* NULL: none */
};

void sl_load_result_deinit(struct sl_load_result *result);

/* True when all points are valid. */
bool sl_load_result_is_valid(const struct sl_load_result *result);

/* The caller's reference; NULL: no memory. */
struct json_t *sl_load_result_json(const struct sl_load_result *result);

void sl_load_result_print(const struct sl_load_result *result, FILE *stream);
