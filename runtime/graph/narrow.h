/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph of float32 on bfloat16: products, and what carries their results on, read and write bfloat16 and add up in float32;
 * everything else (softmax, normalisations, functions that no kernel narrows, inputs and outputs of the model) stays float32, with
 * a Cast at each border and nowhere else. Weights are rounded once, to the nearest. One owner thread.
 */
#pragma once

struct sl_error;
struct sl_graph;

/* After the passes. The nodes are written anew, so their indices change. Return: 0, -ENOMEM, -E2BIG, what inference says. */
int sl_graph_narrow(struct sl_graph *graph, struct sl_error *error);
