/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a graph on the `ref` backend: slow, plain, the oracle of passes and compiler. Also what folds constants.
 * One owner thread; allocates as it goes.
 */
#pragma once

#include <stdint.h>

struct sl_error;
struct sl_graph;
struct sl_live;
struct sl_pool;

/*
 * Runs the node over @inputs (n_inputs, NULL for absent ones) into @outputs (n_outputs, sized as its values say).
 * Return: 0; -ENOTSUP no such kernel (the text names node and operator); -ERANGE an index in the data is out of bounds; -ENOMEM.
 */
int sl_graph_run_node(
        const struct sl_graph *graph, uint32_t node, const void *const *inputs, void *const *outputs, struct sl_error *error);

/*
 * Evaluates a graph of static shapes (sl_graph_specialise()). inputs[i] and outputs[i] belong to graph input and output i, PLAIN,
 * of exactly their bytes. Return: as above; -EINVAL when a shape is not static.
 */
int sl_graph_evaluate(const struct sl_graph *graph, const void *const *inputs, void *const *outputs, struct sl_error *error);

/* Nodes and rounds of loops that one evaluation may run. */
#define SL_EVALUATE_STEPS_MAX (1u << 22)

/*
 * Evaluates a graph whose inputs have static shapes and whose outputs may be data-dependent. @ret_outputs: n_outputs holders of
 * memory of @pool, or of the inputs and constants; the caller drops them. Return: as above; -ENOMEM the limit of @pool; -E2BIG that
 * of steps.
 */
int sl_graph_evaluate_open(const struct sl_graph *graph, const void *const *inputs, struct sl_pool *pool,
        struct sl_live *ret_outputs, struct sl_error *error);
