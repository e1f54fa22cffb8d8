/*
 * Running a graph on the `ref` backend: slow, plain, the oracle of passes and compiler. Also what folds constants.
 * One owner thread; allocates as it goes.
 */
#pragma once

#include <stdint.h>

struct sl_error;
struct sl_graph;

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
