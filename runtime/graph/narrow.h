/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph of float32 on bfloat16: products, and what carries their results on, read and write bfloat16 and add up in float32;
 * everything else (functions that no kernel narrows, inputs and outputs of the model) stays float32, with a Cast at each border and
 * nowhere else. Weights are rounded once, to the nearest. One owner thread.
 */
#pragma once

#include <stdbool.h>

struct sl_error;
struct sl_graph;

/*
 * After the passes. The nodes are written anew, so their indices change. @halves: the backend wants them wherever it computes
 * float32 (SL_PLANNER_NARROW): attention, softmax and normalisations are narrow, too, with masks and parameters in float32, while
 * what makes an output of the model, and is no product, rounds nothing. Return: 0, -ENOMEM, -E2BIG, what inference says.
 */
int sl_graph_narrow(struct sl_graph *graph, bool halves, struct sl_error *error);
