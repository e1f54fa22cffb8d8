/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shape parameters: small inputs (axes, pads, a shape) that become attributes once they are constant. Import, the fold pass and
 * sl_graph_specialise() all end them the same way. One owner thread, the graph's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_graph;
struct sl_node;

/*
 * Turns every parameter input of the node that is constant into its attribute.
 * Return: 0; -EINVAL a parameter of the wrong type, rank or length (the text names the node); -E2BIG; -ENOMEM.
 */
int sl_parameters_absorb(struct sl_graph *graph, uint32_t node, struct sl_error *error);

/* Some parameter of the node is still an input: its shape is not decided. */
bool sl_parameters_pending(const struct sl_node *node);
