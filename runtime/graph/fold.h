/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computing nodes while compiling: those whose inputs are all constant, and Shape of a static tensor. One owner thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_graph;

/* What one walk over a graph may spend, so that a small hostile file cannot ask for hours or gigabytes. */
struct sl_fold_budget {
        uint64_t bytes; /* of new constants */
        uint64_t work;  /* elements read and written, multiply-adds */
        bool shapes;    /* only what is as small as shape arithmetic is folded */
};

/* The constants that are there may double; a graph without any gets a small sum to start with. */
struct sl_fold_budget sl_fold_budget_of(const struct sl_graph *graph);

/*
 * sl_graph_specialise() on a budget of the caller: what is not folded on it stays a node whose inputs are constant.
 */
int sl_graph_specialise_within(const struct sl_graph *graph, int64_t batch, struct sl_fold_budget budget,
        struct sl_graph **ret_graph, struct sl_error *error);

/*
 * Folds the node if it can be: its values become constants and it is dead, or (when it makes an output of the graph) it is
 * an Identity of a new constant. Shapes of its inputs must have been inferred.
 * Return: 1 folded, 0 left as it is; -ERANGE an index in the data is out of bounds; -EINVAL; -ENOMEM.
 */
int sl_fold_node(struct sl_graph *graph, uint32_t node, struct sl_fold_budget *budget, struct sl_error *error);
