/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph compiled in memory and run sample by sample: what a tool measures is what is served. One thread.
 */
#pragma once

#include <stdint.h>

struct sl_error;
struct sl_graph;
struct sl_lower_options;
struct sl_runner;

/* @graph: before the passes, which run on a copy; must outlive the runner. Return: as sl_lowered_new(), sl_plan_open(), ... */
int sl_runner_new(const struct sl_graph *graph, const struct sl_lower_options *options, struct sl_runner **ret_runner,
        struct sl_error *error);
struct sl_runner *sl_runner_free(struct sl_runner *runner);

/* Floats of all float32 outputs of one sample, one output after the other; of these, those of output 0 if it is one row of them. */
uint64_t sl_runner_floats(const struct sl_runner *runner);
uint64_t sl_runner_classes(const struct sl_runner *runner);

/* The output that a float of sl_runner_run() belongs to. */
const char *sl_runner_output_of(const struct sl_runner *runner, uint64_t index);

/* Return: 0; as sl_instance_run(); the text names the node. */
int sl_runner_run(struct sl_runner *runner, const void *const *inputs, float *ret_floats, struct sl_error *error);
